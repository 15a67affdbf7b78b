"""Who sits where on the bus, and what each was asked."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field

from podium.agents.bus.wire import Answered, Asked, Failed

MISSED_BEATS = 4
"""So many beats without a word, and nobody sits there any more."""


@dataclass
class Asking:
    """A turn that is not answered yet."""

    asked: Asked
    tell: Callable[[str], None]
    ended: asyncio.Future[Answered | Failed]
    taken: bool = False
    """Whoever sits there has it. Until then it is said again with every beat."""


@dataclass
class Seat:
    """One side of one pair."""

    name: str = ""
    """Of the program. Empty: nobody has ever sat here."""
    identity: bytes = b""
    """By which the socket reaches it. Empty: nobody sits here now."""
    heard_at: float = 0.0
    askings: dict[str, Asking] = field(default_factory=dict)
    taken: asyncio.Event = field(default_factory=asyncio.Event)

    def sit(self, name: str, identity: bytes) -> None:
        self.name, self.identity = name, identity
        self.heard_now()
        self.taken.set()

    def leave(self) -> None:
        self.identity = b""
        self.taken.clear()

    def heard_now(self) -> None:
        self.heard_at = asyncio.get_running_loop().time()

    def is_silent(self, beat_seconds: float) -> bool:
        """Whether it should have been heard of by now."""
        return asyncio.get_running_loop().time() - self.heard_at > beat_seconds * MISSED_BEATS

    def end(self, id_: str, how: Answered | Failed) -> bool:
        """False: nobody waits for it."""
        asking = self.askings.get(id_)
        if asking is None or asking.ended.done():
            return False
        asking.ended.set_result(how)
        return True

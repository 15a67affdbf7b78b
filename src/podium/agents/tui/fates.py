"""What became of words that were put into a program's input and have not been seen there."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Literal, Protocol

from podium.agents.tui.adapting import Status, Written
from podium.agents.tui.capturing import Screen, history_size, look
from podium.agents.tui.control import Control
from podium.agents.tui.injecting import Injector
from podium.agents.tui.letters import Letter
from podium.domain.gating import digest_of

Fate = Literal["taken", "gone", "unknown"]
"""The program took them, or may have; they are gone, and it never had them; or that cannot be told as long as it works,
asks or has something in its input."""


class Fates(Protocol):
    """Tells by what a program shows and writes. Does nothing to it."""

    async def face(self) -> str:
        """Stands for all that the pane shows and has shown. Another one as soon as anything changes."""
        ...

    async def of(self, letter: Letter) -> Fate:
        """What became of words that were put in by an earlier attempt."""
        ...

    async def is_bare(self, words: str = "") -> bool:
        """Whether the program is ready, and has had nothing in its input for a while."""
        ...


class SeenFates:
    """What one program's screen tells of it, and its own record where it keeps one."""

    def __init__(
        self,
        control: Control,
        pane: str,
        injector: Injector,
        status: Callable[[Screen], Status],
        written: Written | None,
    ) -> None:
        self._control = control
        self._pane = pane
        self._injector = injector
        self._status = status
        self._written = written

    async def face(self) -> str:
        size, screen = await asyncio.gather(
            history_size(self._control, self._pane), look(self._control, self._pane)
        )
        return digest_of([size, *screen.lines])

    async def of(self, letter: Letter) -> Fate:
        if self._written is not None and await self._is_written(self._written, letter):
            return "taken"
        if not await self.is_bare(letter.text):
            return "unknown"
        if letter.given_up:  # whether it was or not, nobody waits for its answer
            return "taken"
        if self._written is not None:
            return "taken" if await self._is_written(self._written, letter) else "gone"
        # Whoever takes a message shows something: where all is as it was before, nothing was taken.
        return "gone" if letter.face == await self.face() else "taken"

    async def is_bare(self, words: str = "") -> bool:
        if not await self._injector.composer.stays_empty(words):
            return False
        return self._status(await look(self._control, self._pane)) == "ready"

    async def _is_written(self, written: Written, letter: Letter) -> bool:
        said, _ = await asyncio.to_thread(written.since, letter.mark)
        return any(each.kind == "prompt" and letter.may_be_in(each.text) for each in said)

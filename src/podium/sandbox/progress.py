"""What an agent says while it works, put together into a few events."""

from __future__ import annotations

import asyncio

from podium.domain.asking import Turn
from podium.domain.events import AgentProgressed, ProgressKind
from podium.ports import Journal

PAUSE_SECONDS = 0.5
"""Pieces of one kind that come within this time become one event."""
LONGEST_CHARACTERS = 2_000
MOST_EVENTS = 1_000
"""A turn that says more is followed by its transcript alone."""


class Progress:
    """Gathers pieces and notes them in the run's journal. Never waits and never raises."""

    def __init__(self, journal: Journal, turn: Turn, agent: str) -> None:
        self._journal = journal
        self._turn = turn
        self._agent = agent
        self._kind: ProgressKind = "text"
        self._pieces: list[str] = []
        self._length = 0
        self._noted = 0
        self._timer: asyncio.TimerHandle | None = None

    def tell(self, kind: ProgressKind, text: str) -> None:
        if not text or self._noted >= MOST_EVENTS:
            return
        if kind != self._kind:
            self.flush()
            self._kind = kind
        room = LONGEST_CHARACTERS - self._length
        if room > 0:
            self._pieces.append(text[:room])
        self._length += len(text)
        if kind not in ("text", "thinking"):
            self.flush()
        elif self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(PAUSE_SECONDS, self.flush)

    def flush(self) -> None:
        """Note what was gathered."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if not self._pieces:
            return
        words = "".join(self._pieces)
        if self._length > LONGEST_CHARACTERS:
            words += f" [… {self._length - LONGEST_CHARACTERS} more characters]"
        self._pieces.clear()
        self._length = 0
        self._noted += 1
        body = AgentProgressed(role=self._turn.role, agent=self._agent, kind=self._kind, text=words)
        self._journal.note(self._turn.run_id, body)

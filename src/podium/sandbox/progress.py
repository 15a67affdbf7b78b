"""What an agent says while it works, put together into a few events."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from podium.domain.asking import Turn
from podium.domain.events import AgentProgressed, ProgressKind
from podium.ports import Journal

PAUSE_SECONDS = 0.5
"""Pieces of one kind that come within this time become one event."""
LONGEST_CHARACTERS = 2_000
HELD_BACK = 400
"""Characters kept for the next event of a stream: as long as any usual key, also with its characters escaped."""
MOST_EVENTS = 1_000
"""A turn that says more is followed by its transcript alone."""


class Progress:
    """Gathers pieces and notes them in the run's journal. Never waits and never raises."""

    def __init__(
        self, journal: Journal, turn: Turn, agent: str, redact: Callable[[str], str] = str
    ) -> None:
        """`redact` takes secrets out of what was gathered, before it is cut."""
        self._redact = redact
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
        room = LONGEST_CHARACTERS + HELD_BACK - self._length
        if room > 0:
            self._pieces.append(text[:room])
        self._length += len(text)
        if kind not in ("text", "thinking"):
            self.flush()
        elif self._timer is None:
            later = asyncio.get_running_loop().call_later
            self._timer = later(PAUSE_SECONDS, self._flush_all_but_the_end)

    def flush(self) -> None:
        """Note what was gathered."""
        self._stop_timer()
        words, length = "".join(self._pieces), self._length
        self._pieces.clear()
        self._length = 0
        self._note(words, length)

    def _flush_all_but_the_end(self) -> None:
        """Note what was gathered, without what may be the beginning of a secret that goes on."""
        self._timer = None
        words = self._redact("".join(self._pieces))
        if self._length > LONGEST_CHARACTERS:
            self.flush()
        elif len(words) > HELD_BACK:
            self._pieces[:] = [words[-HELD_BACK:]]
            self._length = HELD_BACK
            self._note(words[:-HELD_BACK], len(words) - HELD_BACK)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _note(self, words: str, length: int) -> None:
        if not words:
            return
        words = self._redact(words)[:LONGEST_CHARACTERS]
        if length > LONGEST_CHARACTERS:
            words += f" [… {length - LONGEST_CHARACTERS} more characters]"
        self._noted += 1
        body = AgentProgressed(role=self._turn.role, agent=self._agent, kind=self._kind, text=words)
        self._journal.note(self._turn.run_id, body)

"""The tape: a recorded run, and how far it has happened again."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence

from podium.domain.events import AnyEvent
from podium.domain.model import Json
from podium.wiring.replay.comparing import Difference
from podium.wiring.replay.reading import Recorded, Recording


class Tape:
    """Moves on by one for each event that happened again as it was recorded. Stops for good at the first that did not."""

    def __init__(self, recording: Recording) -> None:
        self.recording = recording
        self.events = recording.events
        self.place = 0
        """Number of events that have happened again."""
        self.lines: list[dict[str, Json]] = []
        self.difference: Difference | None = None
        self._news = asyncio.Event()

    @property
    def next(self) -> Recorded | None:
        return self.events[self.place] if self.place < len(self.events) else None

    @property
    def is_over(self) -> bool:
        return self.difference is not None or self.next is None

    def rest(self, start: int | None = None) -> Iterator[tuple[int, AnyEvent]]:
        """What is still to come, with its place."""
        begin = self.place if start is None else start
        return ((at, self.events[at].body) for at in range(begin, len(self.events)))

    def advance(self, lines: Sequence[dict[str, Json]]) -> None:
        if lines:
            self.lines.extend(lines)
            self.place += len(lines)
            self.stir()

    def differs(self, difference: Difference) -> None:
        """Only the first counts: what comes behind it follows from it."""
        self.difference = self.difference or difference
        self.stir()

    def stir(self) -> None:
        """Let whoever waits for news look again."""
        news, self._news = self._news, asyncio.Event()
        news.set()

    async def news(self) -> None:
        await self._news.wait()

    async def reached(self, place: int) -> None:
        """Return when all before this place has happened again."""
        while self.place < place:
            await self.news()

    async def moved(self, place: int) -> None:
        """Return when it stands elsewhere, or is over."""
        while self.place == place and not self.is_over:
            await self.news()

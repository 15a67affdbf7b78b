"""Fakes of an agent, a classifier, transcripts and an outlet of notices."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from podium.core.errors import AgentLost, TimedOut
from podium.core.turns import Reply, Turn
from podium.ports import DeliveryStatus, Notice

PreparedReply = Reply | str | Exception | Callable[[Turn], Reply | Awaitable[Reply]]
"""A reply, its text alone, an error to raise, or a function of the turn, which may act and wait."""


class FakeAgent:
    """Gives its replies one after the other and remembers what it was asked.

    Asked once more than it has replies it is lost, as a process that ended would be. A function
    that waits longer than the turn may take is ended.
    """

    def __init__(self, replies: Iterable[PreparedReply] = (), name: str = "fake") -> None:
        self._name = name
        self._replies = deque(replies)
        self.turns: list[Turn] = []

    @property
    def name(self) -> str:
        return self._name

    async def ask(self, turn: Turn) -> Reply:
        self.turns.append(turn)
        if not self._replies:
            raise AgentLost(
                f"agent {self._name!r} has no reply left for turn {len(self.turns)}; give it more replies"
            )
        prepared = await self._reply(self._replies.popleft(), turn)
        return prepared.model_copy(update={"agent": prepared.agent or self._name})

    async def _reply(self, prepared: PreparedReply, turn: Turn) -> Reply:
        if isinstance(prepared, Exception):
            raise prepared
        if isinstance(prepared, str):
            return Reply(text=prepared)
        if isinstance(prepared, Reply):
            return prepared
        result = prepared(turn)
        return result if isinstance(result, Reply) else await self._in_time(result, turn)

    async def _in_time(self, acting: Awaitable[Reply], turn: Turn) -> Reply:
        deadline = asyncio.timeout(turn.limits.seconds)
        try:
            async with deadline:
                return await acting
        except TimeoutError:
            if not deadline.expired():
                raise
            seconds = turn.limits.seconds
            raise TimedOut(f"agent {self._name!r} gave no answer within {seconds} s") from None


@dataclass
class MemoryTranscript:
    """Lines of one turn."""

    path: str
    lines: list[str] = field(default_factory=list)

    def write(self, line: str) -> None:
        self.lines.append(line)


class MemoryTranscripts:
    """Remembers the turns and every line."""

    def __init__(self) -> None:
        self.turns: list[Turn] = []
        self.transcripts: list[MemoryTranscript] = []

    @contextmanager
    def open(self, turn: Turn, agent: str) -> Iterator[MemoryTranscript]:
        self.turns.append(turn)
        self.transcripts.append(MemoryTranscript(f"memory:{agent}:{len(self.transcripts)}"))
        yield self.transcripts[-1]

    @property
    def text(self) -> str:
        """Return the lines of all turns."""
        return "\n".join(line for transcript in self.transcripts for line in transcript.lines)


class MemoryOutlet:
    """Delivers every notice, after returning the prepared statuses."""

    def __init__(self, name: str = "memory", answers: Iterable[DeliveryStatus] = ()) -> None:
        self._name = name
        self._answers = list(answers)
        self.delivered: list[Notice] = []
        """Delivered notices."""
        self.tries = 0

    @property
    def name(self) -> str:
        return self._name

    @property
    def texts(self) -> list[str]:
        """List the texts of all delivered notices, part by part."""
        return [part.text for notice in self.delivered for part in notice.parts]

    async def send(self, notice: Notice) -> DeliveryStatus:
        self.tries += 1
        answer = self._answers.pop(0) if self._answers else DeliveryStatus(done=True)
        if answer.done:
            self.delivered.append(notice)
        return answer

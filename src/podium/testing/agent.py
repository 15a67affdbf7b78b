"""An agent whose answers are written down beforehand."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Iterable

from podium.domain.asking import Reply, Turn
from podium.domain.errors import AgentLost, TimedOut

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
        given = prepared(turn)
        return given if isinstance(given, Reply) else await self._in_time(given, turn)

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

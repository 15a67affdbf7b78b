"""An agent whose answers are written down beforehand."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable

from podium.domain.asking import Reply, Turn
from podium.domain.errors import AgentLost

PreparedReply = Reply | str | Exception | Callable[[Turn], Reply]
"""A reply, its text alone, an error to raise, or a function of the turn."""


class FakeAgent:
    """Gives its replies one after the other and remembers what it was asked.

    Asked once more than it has replies it is lost, as a process that ended would be.
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
        return self._signed(self._replies.popleft(), turn)

    def _signed(self, prepared: PreparedReply, turn: Turn) -> Reply:
        if isinstance(prepared, Exception):
            raise prepared
        if isinstance(prepared, str):
            prepared = Reply(text=prepared)
        elif not isinstance(prepared, Reply):
            prepared = prepared(turn)
        return prepared.model_copy(update={"agent": prepared.agent or self._name})

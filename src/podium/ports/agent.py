"""The agent: prompt and contract in, validated reply out, whatever the medium."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from podium.domain.asking import Reply, Turn


class Agent(Protocol):
    """A brain. It thinks; it never acts but through the tool door it was handed."""

    @property
    def name(self) -> str: ...

    async def ask(self, turn: Turn) -> Reply:
        """Put one turn to the agent.

        Raises `AgentLost` when it went away without an answer and `TimedOut` when the turn's
        seconds ran out. Cancelling ends its whole process tree before it returns.
        """
        ...

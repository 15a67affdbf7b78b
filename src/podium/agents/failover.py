"""An ordered list of agents for one role: the next is asked when one cannot answer."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence

from podium.core.decisions import Usage
from podium.core.errors import (
    AgentNotLoggedIn,
    AgentUnavailable,
    BadInput,
    PodiumError,
    RateLimited,
    TimedOut,
    ToolMissing,
)
from podium.core.events import AgentSwitched
from podium.core.turns import Reply, Turn, TurnLimits
from podium.ports import Agent, Journal

REASONS = (AgentUnavailable, RateLimited, AgentNotLoggedIn, ToolMissing)
"""Outage, quota, login, not installed. What an agent answered, even badly, is its answer."""


ASKINGS = 10
"""More than one agent needs for one turn."""


class FailoverAgent:
    """Asks the first that can answer. The reply says who it was."""

    def __init__(
        self,
        agents: Sequence[Agent],
        journal: Journal,
        limits: Mapping[str, TurnLimits] | None = None,
    ) -> None:
        """`journal` is told of every switch. `limits` are those of single agents, by name."""
        if not agents:
            raise BadInput("a role needs at least one agent; name it with `agent:` in podium.yaml")
        self._agents = tuple(agents)
        self._journal = journal
        self._limits = dict(limits or {})

    @property
    def name(self) -> str:
        return ", else ".join(agent.name for agent in self._agents)

    async def ask(self, turn: Turn) -> Reply:
        """A conversation stays with the agent that began it while that one can answer.

        Raises what the last agent raised; when another could be asked sooner, what that one did.
        """
        began = asyncio.get_running_loop().time()
        spent = Usage()
        errors: list[PodiumError] = []
        order = self._order(turn)
        for number, (agent, session) in enumerate(order):
            try:
                reply = await agent.ask(self._turn_for(agent, session, turn, number, began))
            except REASONS as error:
                errors.append(error)
                spent = spent.plus(error.usage or Usage())
                if number + 1 < len(order):
                    await self._switch(turn, agent, order[number + 1][0], error)
            except PodiumError as error:
                if spent != Usage():
                    error.usage = spent.plus(error.usage or Usage(complete=False))
                raise
            else:
                return self._signed(reply, agent, spent)
        raise _soonest(errors, spent)

    def _turn_for(
        self, agent: Agent, session: str | None, turn: Turn, number: int, began: float
    ) -> Turn:
        """The turn as one agent gets it: its own limits, and what is left of the time of all."""
        limits = self._limits.get(agent.name, turn.limits)
        left = limits.model_copy(update={"seconds": _time_left(turn, began)})
        asking = turn.asking + number * ASKINGS
        return turn.model_copy(update={"session": session, "limits": left, "asking": asking})

    def _order(self, turn: Turn) -> list[tuple[Agent, str | None]]:
        """Return the agents in the order they are asked, each with its conversation."""
        holder, session = _read_session(turn.session)
        first = [agent for agent in self._agents if agent.name == holder]
        rest = [agent for agent in self._agents if agent.name != holder]
        return [(agent, session) for agent in first] + [(agent, None) for agent in rest]

    def _signed(self, reply: Reply, agent: Agent, spent: Usage) -> Reply:
        session = None
        if reply.session is not None:
            session = json.dumps({"agent": agent.name, "session": reply.session})
        return reply.model_copy(
            update={
                "agent": reply.agent or agent.name,
                "session": session,
                "usage": reply.usage.plus(spent),
            }
        )

    async def _switch(self, turn: Turn, agent: Agent, after: Agent, why: PodiumError) -> None:
        body = AgentSwitched(
            role=turn.role, agent=agent.name, next_agent=after.name, reason=str(why)
        )
        await self._journal.append(turn.run_id, body)


def _read_session(session: str | None) -> tuple[str, str | None]:
    if session is None:
        return "", None
    try:
        value = json.loads(session)
        return str(value["agent"]), str(value["session"])
    except (ValueError, KeyError, TypeError):
        raise BadInput(f"{session[:80]!r} is not a conversation of this role's agents") from None


def _time_left(turn: Turn, began: float) -> float | None:
    """The turn's seconds are for all of its agents together."""
    seconds = turn.limits.seconds
    if seconds is None:
        return None
    left = seconds - (asyncio.get_running_loop().time() - began)
    if left <= 0:
        raise TimedOut(f"no agent of role {turn.role!r} answered within {seconds:g} s")
    return left


def _soonest(errors: Sequence[PodiumError], spent: Usage) -> PodiumError:
    """The trouble that passes first: a known reset or an outage, rather than what a person must mend.

    A reset that is known comes first, because then a run waits until it is worth it.
    """
    outages = [error for error in errors if isinstance(error, AgentUnavailable)]
    limits = [error for error in errors if isinstance(error, RateLimited)]
    with_reset = [error for error in limits if error.retry_at is not None]
    by_reset = sorted(with_reset, key=lambda error: str(error.retry_at))
    chosen = (*by_reset, *outages, *limits, *errors)[0]
    if len(errors) > 1:
        others = "; ".join(str(error) for error in errors if error is not chosen)
        chosen.args = (f"{chosen} (before that: {others})", *chosen.args[1:])
    chosen.usage = spent if spent != Usage() else None
    return chosen

"""Asking an agent from a flow: one turn is one step, and what needs a person waits for one."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from itertools import count

from podium.domain.asking import Reply, Turn, TurnLimits
from podium.domain.errors import AgentLost, TimedOut
from podium.domain.events import AgentAsked, AgentReplied
from podium.domain.gating import Usage
from podium.flows.spending import Purse
from podium.ports import Agent, FlowContext, Step, Store

MOST_TURNS = 10


@dataclass(frozen=True)
class Player:
    """An agent in a role, with what the settings say of both."""

    role: str
    agent: Agent
    allowed_tools: tuple[str, ...] | None = None
    """Names of tools the role may ask for. None: all that the gate allows."""
    timeout_seconds: float = 600.0
    """How long one turn may take."""


async def ask(
    ctx: FlowContext,
    player: Player,
    prompt: str,
    *,
    purse: Purse,
    name: str,
    workspace: str,
    index: int = 0,
    session: str | None = None,
) -> Reply:
    """Put one turn to a player, remembered as step `name` and `index`.

    The turn is asked only while every budget has something left, else `BudgetSpent` is raised and
    the step stays undone. What it used is counted, also when no answer came.
    """

    async def take_turn(step: Step) -> Reply:
        await purse.check(ctx.run, step.key)
        ctx.note(AgentAsked(role=player.role, agent=player.agent.name, prompt=prompt))
        turn = Turn(
            run_id=step.run_id,
            step_key=step.key,
            role=player.role,
            prompt=prompt,
            workspace=workspace,
            session=session,
            limits=TurnLimits(seconds=player.timeout_seconds),
            allowed_tools=player.allowed_tools,
        )
        reply = await _reply(player, turn, purse)
        # Before the spending, whose transaction carries it along.
        ctx.note(
            AgentReplied(
                role=player.role,
                agent=player.agent.name,
                text=reply.text,
                usage=reply.usage,
                seconds=reply.seconds,
            )
        )
        await purse.spend(turn.run_id, turn.step_key, f"agent:{player.agent.name}", reply.usage)
        deadlines = await _deadlines(purse.store, reply.waiting_approvals)
        return reply.model_copy(update={"approval_deadlines": deadlines})

    return await ctx.step(name, take_turn, index=index, returns=Reply)


async def ask_until_answered(
    ctx: FlowContext,
    player: Player,
    prompt: str,
    *,
    purse: Purse,
    name: str,
    workspace: str,
    most_turns: int = MOST_TURNS,
) -> Reply:
    """Ask until nothing waits for a person any more.

    Between two turns of the conversation every approval it waits for is answered or too late; what
    came too late is asked anew by the next turn. After each `most_turns` turns a person is asked
    whether to go on.
    """
    session: str | None = None
    for number in count():
        if number and number % most_turns == 0:
            reason = (
                f"{name!r} has asked for approval in {number} turns and is not done; look at what "
                "it asks for, then resume the run for more turns or cancel it"
            )
            await ctx.ask_person(f"{name}:go-on", reason, index=number // most_turns - 1)
        reply = await ask(
            ctx,
            player,
            prompt,
            purse=purse,
            name=name,
            workspace=workspace,
            index=number,
            session=session,
        )
        if not reply.waiting_approvals:
            return reply
        for approval, deadline in reply.approval_deadlines.items():
            await ctx.wait(f"approval:{approval}", index=number, until=deadline)
        session = reply.session
    raise AssertionError("turns are counted without end")


async def _reply(player: Player, turn: Turn, purse: Purse) -> Reply:
    """The answer. A turn that brought none has still been used."""
    began = purse.clock.monotonic()
    try:
        return await player.agent.ask(turn)
    except (AgentLost, TimedOut):
        seconds = purse.clock.monotonic() - began
        unknown = Usage(turns=1, seconds=seconds, complete=False)
        await purse.spend(turn.run_id, turn.step_key, f"agent:{player.agent.name}", unknown)
        raise


async def _deadlines(store: Store, approvals: tuple[str, ...]) -> dict[str, datetime]:
    """Until when each can be answered. One that the store does not know cannot be waited for."""
    if not approvals:
        return {}
    known = await store.read(lambda view: [view.approval(each) for each in approvals])
    return {each.id: each.deadline for each in known if each is not None}

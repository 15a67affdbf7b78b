"""Asking an agent from a flow: one turn is one step, and what needs a person waits for one."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from itertools import count

from pydantic import BaseModel

from podium.domain.asking import Reply, Turn, TurnLimits
from podium.domain.errors import AgentLost, PodiumError, TimedOut
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
    own_tools: tuple[str, ...] | None = None
    """What the agent may use of its own beside files and shell."""
    limits: TurnLimits = field(default_factory=TurnLimits)
    """What one turn may take."""


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
    contract: type[BaseModel] | None = None,
    provenance: tuple[str, ...] = (),
) -> Reply:
    """Put one turn to a player, remembered as step `name` and `index`.

    With a `contract` the reply's payload validates as it, or `ReplyInvalid` is raised. `provenance`
    names the untrusted sources that the prompt holds words of.

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
            limits=player.limits,
            allowed_tools=player.allowed_tools,
            own_tools=player.own_tools,
            contract=contract,
            provenance=provenance,
        )
        reply = await _reply(player, turn, purse)
        # Before the spending, whose transaction carries it along.
        ctx.note(
            AgentReplied(
                role=player.role,
                agent=reply.agent or player.agent.name,
                text=reply.text,
                usage=reply.usage,
                seconds=reply.seconds,
                model=reply.model,
                agent_version=reply.version,
                found=reply.found,
                transcript=reply.transcript,
                warnings=reply.warnings,
            )
        )
        source = f"agent:{reply.agent or player.agent.name}"
        await purse.spend(turn.run_id, turn.step_key, source, reply.usage)
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
    contract: type[BaseModel] | None = None,
    provenance: tuple[str, ...] = (),
) -> Reply:
    """Ask until nothing waits for a person any more.

    Between two turns of the conversation every approval it waits for is answered or too late; what
    came too late is asked anew by the next turn, which is also told of refusals that the agent's
    protocol could not carry. After each `most_turns` turns a person is asked
    whether to go on.
    """
    session: str | None = None
    untold: tuple[str, ...] = ()
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
            _with_refusals(prompt, untold),
            purse=purse,
            name=name,
            workspace=workspace,
            index=number,
            session=session,
            contract=contract,
            provenance=provenance,
        )
        if not reply.waiting_approvals:
            return reply
        for approval, deadline in reply.approval_deadlines.items():
            await ctx.wait(f"approval:{approval}", index=number, until=deadline)
        session, untold = reply.session, reply.untold
    raise AssertionError("turns are counted without end")


def _with_refusals(prompt: str, untold: tuple[str, ...]) -> str:
    """The prompt, behind what the agent was refused and not told why."""
    if not untold:
        return prompt
    reasons = "\n".join(f"- {reason}" for reason in untold)
    return f"Permission Denied, in your last turn:\n{reasons}\n\n{prompt}"


async def _reply(player: Player, turn: Turn, purse: Purse) -> Reply:
    """The answer. A turn that brought none has still been used."""
    began = purse.clock.monotonic()
    try:
        return await player.agent.ask(turn)
    except PodiumError as error:
        used = error.usage
        if used is None and isinstance(error, AgentLost | TimedOut):
            seconds = purse.clock.monotonic() - began
            used = Usage(turns=1, seconds=seconds, complete=False)
        if used is not None:
            await purse.spend(turn.run_id, turn.step_key, f"agent:{player.agent.name}", used)
        raise


async def _deadlines(store: Store, approvals: tuple[str, ...]) -> dict[str, datetime]:
    """Until when each can be answered. One that the store does not know cannot be waited for."""
    if not approvals:
        return {}
    known = await store.read(lambda view: [view.approval(each) for each in approvals])
    return {each.id: each.deadline for each in known if each is not None}

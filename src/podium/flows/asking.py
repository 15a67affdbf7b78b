"""Asking an agent from a flow: one turn is one step, and what needs a person waits for one."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import count

from pydantic import BaseModel

from podium.domain.asking import Reply, Turn, TurnLimits
from podium.domain.errors import AgentLost, PodiumError, RateLimited, TimedOut
from podium.domain.events import (
    AgentAsked,
    AgentReplied,
    AgentStopped,
    ModelAnswered,
    RunRetried,
)
from podium.domain.gating import Approval, ApprovalStatus, Usage
from podium.domain.messages import Awaited
from podium.domain.model import Moment, Noun
from podium.domain.work import RATE_LIMIT, Run
from podium.flows.finishing import to_the_end
from podium.flows.spending import Purse
from podium.flows.watching import folder_of, watched
from podium.ports import Agent, EventQuery, FlowContext, Step, StepFunction, Store, Workspace

Prepare = Callable[[], Awaitable[None]]

MOST_TURNS = 10
LONGEST_LIMIT = timedelta(hours=6)
"""A rate limit that ends later is not waited for: the run is let go of, and can be resumed then."""
MOST_LIMITS = 10
"""Rate limits that one turn waits out."""


class Limited(Noun):
    """A turn that its agent did not take: too much was asked of it."""

    limited_until: Moment
    why: str


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
    workspace: str | Workspace,
    index: int = 0,
    earlier: Reply | None = None,
    contract: type[BaseModel] | None = None,
    nonce_slot: str = "",
    awaits: Awaited | None = None,
    provenance: tuple[str, ...] = (),
    prepare: Prepare | None = None,
) -> Reply:
    """Put one turn to a player, remembered as step `name` and `index`.

    With an `earlier` reply its conversation goes on: the agent is told what people said to what it
    waited for, and of refusals whose reason its protocol could not carry.

    With a `contract` the reply's payload validates as it, or `ReplyInvalid` is raised; `nonce_slot` is the text
    in the prompt's own examples that the nonce of the turn goes in place of. `provenance`
    names the untrusted sources that the prompt holds words of. `awaits` is the message that the turn is to
    bring, for agents that are heard by looking. `prepare` is called each time before the
    turn is asked, also when it is asked again after a crash: it puts things where the turn starts from.

    The turn is asked only while every budget has something left, else `BudgetSpent` is raised and
    the step stays undone. What it used is counted, also when no answer came.

    In a `Workspace` the turn is watched: `WorkspaceTampered` is raised when it changed what it had to
    leave alone. A rate limit whose end is known and not too far is slept through, and the turn asked again.
    """

    async def take_turn(step: Step) -> Reply:
        key = await _turn_key(purse.store, step, f"{name}#{index}" if index else name)
        await purse.check(ctx.run, key)
        words = await _with_news(purse.store, prompt, earlier)
        if not await _asked_before(purse.store, ctx.run, key):
            asked = AgentAsked(role=player.role, agent=player.agent.name, prompt=words, step=key)
            ctx.note(asked)
        turn = Turn(
            run_id=step.run_id,
            step_key=key,
            role=player.role,
            prompt=words,
            workspace=folder_of(workspace),
            session=earlier.session if earlier else None,
            limits=player.limits,
            allowed_tools=player.allowed_tools,
            own_tools=player.own_tools,
            contract=contract,
            nonce_slot=nonce_slot,
            provenance=provenance,
            awaits=awaits,
        )
        if prepare is not None:
            await prepare()
        async with watched(ctx, workspace):
            reply = await _reply(player, turn, purse)
        # Before the spending, whose transaction carries it along.
        if reply.stopped is not None:
            ctx.note(AgentStopped(role=player.role, agent=reply.agent, stop=reply.stopped))
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
                read_from=reply.read_from,
            )
        )
        source = f"agent:{reply.agent or player.agent.name}"
        deadlines = await _deadlines(purse.store, reply.waiting_approvals)
        known = reply.model_copy(update={"approval_deadlines": deadlines})
        # Reply, spending and step in one: a crash in between would count the turn twice.
        await purse.spend(
            turn.run_id,
            turn.step_key,
            source,
            reply.usage,
            lambda tx: step.checkpoint(tx, known),
        )
        return known

    return await _past_limits(ctx, take_turn, purse, name, index)


async def _past_limits(
    ctx: FlowContext, take_turn: StepFunction[Reply], purse: Purse, name: str, index: int
) -> Reply:
    """The turn's reply, after as many rate limits as it takes. Each is a step, so each is remembered."""
    place = f"{name}-{index}"
    for limits in count():

        async def unless_limited(step: Step, limits: int = limits) -> Reply | Limited:
            try:
                return await take_turn(step)
            except RateLimited as error:
                until = _worth_waiting(error, purse.clock.now(), limits)
                if until is None:
                    raise
                return Limited(limited_until=until, why=str(error))

        found: Reply | Limited = await ctx.step(
            f"{place}:again" if limits else name,
            unless_limited,
            index=limits or index,
            returns=Reply | Limited,
        )
        if isinstance(found, Reply):
            return found
        await ctx.wait(f"{RATE_LIMIT}{place}", index=limits, until=found.limited_until)
    raise AssertionError("limits are counted without end")


def _worth_waiting(error: RateLimited, now: datetime, limits: int) -> datetime | None:
    """Until when. None: that is not known, too far off, or was in vain too often."""
    ends = error.retry_at
    if ends is None or ends > now + LONGEST_LIMIT or limits >= MOST_LIMITS:
        return None
    # What a provider says may be in the past.
    return max(ends, now + timedelta(seconds=2.0**limits))


async def ask_until_answered(
    ctx: FlowContext,
    player: Player,
    prompt: str,
    *,
    purse: Purse,
    name: str,
    workspace: str | Workspace,
    most_turns: int = MOST_TURNS,
    earlier: Reply | None = None,
    contract: type[BaseModel] | None = None,
    nonce_slot: str = "",
    awaits: Awaited | None = None,
    provenance: tuple[str, ...] = (),
    prepare: Prepare | None = None,
) -> Reply:
    """Ask until nothing waits for a person any more.

    Between two turns of the conversation every approval it waits for is answered or too late; what
    came too late is asked anew by the next turn. After each `most_turns` turns a person is asked
    whether to go on. `prepare` is for the first turn: later ones go on with what it left. The first turn
    goes on with the conversation of an `earlier` reply.
    """
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
            earlier=earlier,
            contract=contract,
            nonce_slot=nonce_slot,
            awaits=awaits,
            provenance=provenance,
            prepare=None if number else prepare,
        )
        if not reply.waiting_approvals:
            return reply
        for approval, deadline in reply.approval_deadlines.items():
            await ctx.wait(f"approval:{approval}", index=number, until=deadline)
        earlier = reply
    raise AssertionError("turns are counted without end")


async def _turn_key(store: Store, step: Step, first: str) -> str:
    """By which the turn is known. After a rate limit one whose model's answers are kept goes on where it was;
    any other begins anew, and its calls with it."""
    if step.key == first:
        return first
    query = EventQuery(run_id=step.run_id, types=("model_answered",), limit=100_000)
    bodies = [event.body for event in await store.read(lambda view: view.events(query))]
    kept = any(isinstance(body, ModelAnswered) and body.step == first for body in bodies)
    return first if kept else step.key


async def _asked_before(store: Store, run: Run, step_key: str) -> bool:
    """Whether an owner of the run that died had put this very turn to its agent."""
    if run.fence <= 1:
        return False
    types = ("agent_asked", "run_retried")
    query = EventQuery(run_id=run.id, types=types, limit=100_000)
    asked = False
    for event in await store.read(lambda view: view.events(query)):
        match event.body:
            case AgentAsked(step=step) if step == step_key:
                asked = True
            case RunRetried(discarded_steps=steps) if step_key in steps:
                asked = False
    return asked


async def _with_news(store: Store, prompt: str, earlier: Reply | None) -> str:
    """The prompt, behind what became of the agent's last turn."""
    if earlier is None:
        return prompt
    waited = earlier.waiting_approvals
    approvals = await store.read(lambda view: [view.approval(each) for each in waited])
    news = [*earlier.untold, *(_answer_to(each) for each in approvals if each is not None)]
    if not news:
        return prompt
    told = "\n".join(f"- {' '.join(line.split())}" for line in news)
    return f"What became of your last turn:\n{told}\n\n{prompt}"


def _answer_to(approval: Approval) -> str:
    """What a person said to a call, in words for the agent that asked for it."""
    match approval.status:
        case ApprovalStatus.GRANTED:
            said = f" They said: {approval.said}" if approval.said else ""
            return f"Approved: {approval.summary}. Ask for exactly this call again.{said}"
        case ApprovalStatus.REJECTED:
            why = f": {approval.why}" if approval.why else " without a reason"
            return f"Rejected{why}: {approval.summary}. Do not ask for it again."
        case ApprovalStatus.EXPIRED | ApprovalStatus.PENDING:
            return f"Nobody answered in time: {approval.summary}. Ask again only if it is needed."
    return f"Already used: {approval.summary}."


async def _reply(player: Player, turn: Turn, purse: Purse) -> Reply:
    """The answer. A turn that brought none has still been used."""
    began = purse.clock.monotonic()
    try:
        return await player.agent.ask(turn)
    except (PodiumError, asyncio.CancelledError) as error:
        # Agents leave what was used on whatever ends their turn, a cancellation too.
        used: Usage | None = getattr(error, "usage", None)
        if used is None and isinstance(error, AgentLost | TimedOut | asyncio.CancelledError):
            seconds = purse.clock.monotonic() - began
            used = Usage(turns=1, seconds=seconds, complete=False)
        if used is not None:
            spending = purse.spend(turn.run_id, turn.step_key, f"agent:{player.agent.name}", used)
            await to_the_end(spending)
        raise


async def _deadlines(store: Store, approvals: tuple[str, ...]) -> dict[str, datetime]:
    """Until when each can be answered. One that the store does not know cannot be waited for."""
    if not approvals:
        return {}
    known = await store.read(lambda view: [view.approval(each) for each in approvals])
    return {each.id: each.deadline for each in known if each is not None}

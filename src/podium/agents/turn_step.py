"""Asking an agent from a flow: one turn is one step, and what needs a person waits for one."""

from __future__ import annotations

import asyncio
import re
import shlex
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from itertools import count
from textwrap import shorten

from pydantic import BaseModel

from podium.agents.budget_tracker import BudgetTracker
from podium.agents.turn_rollback import (
    folder_of,
    roll_back_calls,
    snapshot_turn,
    watched,
)
from podium.core.decisions import Approval, ApprovalStatus, Usage
from podium.core.errors import AgentLost, PodiumError, RateLimited, TimedOut
from podium.core.events import (
    AgentAsked,
    AgentReplied,
    AgentStopped,
    ModelAnswered,
    RunRetried,
    StepBroke,
)
from podium.core.ids import short_id
from podium.core.model import FrozenModel, UtcDatetime
from podium.core.turns import AwaitedMessage, Reply, Turn, TurnLimits
from podium.core.work import AGENT_LOST, RATE_LIMIT, Failure, Run, Signal
from podium.platform.completion import run_to_completion
from podium.platform.invisible_text import written_out
from podium.ports import Agent, EventQuery, FlowContext, StepContext, Store, Workspace

Prepare = Callable[[], Awaitable[bool]]
"""Puts things where a turn starts from. False: that is not possible, and nothing is rolled back."""

ASK_HUMAN = "ask_human"
ANSWERED = (ApprovalStatus.GRANTED, ApprovalStatus.RESERVED, ApprovalStatus.CONSUMED)
"""States of a question that a person has answered."""
MAX_LIMIT = timedelta(hours=6)
"""A rate limit that ends later is not waited for: the run is let go of, and can be resumed then."""
MAX_LIMITS = 10
"""Rate limits that one turn waits out."""
MAX_LOSSES = 6
"""Times in a row that a turn's agent may be lost before a person is asked."""
_QUESTION_CHARACTERS = 300
FIRST_PAUSE_SECONDS = 1.0
"""Pause after the first loss; each later one is twice as long."""
MAX_TIMEOUTS = 3
"""Times in a row that a turn may run out of time before a person is asked, where such turns are asked again."""
_FIRST_LIMIT = timedelta(seconds=30)
_MAX_PAUSE = timedelta(minutes=30)
"""Pauses after rate limits whose end is not known."""


class Limited(FrozenModel):
    """A turn that brought no answer and is asked again later: too much was asked of the agent, it was lost, or it was too slow."""

    limited_until: UtcDatetime
    why: str
    lost: bool = False
    timed_out: bool = False
    turn: str = ""
    """The key under which it was asked. Empty: recorded before losses were."""


@dataclass(frozen=True)
class RoleAgent:
    """An agent in a role, with what the settings say of both."""

    role: str
    agent: Agent
    allowed_tools: tuple[str, ...] | None = None
    """Names of tools the role may ask for. None: all that the gate allows."""
    own_tools: tuple[str, ...] | None = None
    """Grants for the agent's own tools beside files and shell."""
    limits: TurnLimits = field(default_factory=TurnLimits)
    """Limits of one turn."""
    max_losses: int = MAX_LOSSES
    """Times in a row it may be lost before a person is asked. 0: the first loss ends the step."""
    is_patient: bool = False
    """A turn that ran out of time is asked again, and one that met a rate limit without a known end."""


async def ask(
    ctx: FlowContext,
    role_agent: RoleAgent,
    prompt: str,
    *,
    budget: BudgetTracker,
    name: str,
    workspace: str | Workspace,
    index: int = 0,
    earlier: Reply | None = None,
    news: str = "",
    notes: Sequence[str] = (),
    contract: type[BaseModel] | None = None,
    nonce_slot: str = "",
    awaits: AwaitedMessage | None = None,
    provenance: tuple[str, ...] = (),
    prepare: Prepare | None = None,
    for_person: str = "",
) -> Reply:
    """Put one turn to an agent in its role, remembered as step `name` and `index`.

    With an `earlier` reply its conversation goes on: the agent is told what people said to what it
    waited for, and of refusals whose reason its protocol could not carry. An agent that kept the
    conversation gets `news`, if there are any, in place of the prompt; `notes` of people are added to either.

    With a `contract` the reply's payload validates as it, or `ReplyInvalid` is raised; `nonce_slot` is the text
    in the prompt's own examples that the nonce of the turn goes in place of. `provenance`
    names the untrusted sources that the prompt holds words of. `awaits` is the message that the turn is to
    bring, for agents that are heard by looking. `prepare` is called each time before the
    turn is asked, also when it is asked again after a crash: it puts things where the turn starts from. In a
    `Workspace` the calls of a turn that did not end are rolled back with it.

    The turn is asked only while every budget has something left, else `BudgetSpent` is raised and
    the step stays undone. What it used is counted, also when no answer came.

    In a `Workspace` the turn is watched: `WorkspaceTampered` is raised when it changed what it had to
    leave alone. A rate limit whose end is known and not too far is slept through, and the turn asked again. So
    is one whose agent was lost, after pauses that grow; then a person is asked, whose words go into the prompt. A
    patient role's turn that ran out of time is asked again in the same way. `for_person` is added to that question.
    """

    async def take_turn(step: StepContext, key: str, later_notes: Sequence[str]) -> Reply:
        await budget.check(ctx.run, key)
        outcome = await _outcome(budget.store, earlier)
        session = earlier.session if earlier else None

        def full(text: str) -> str:
            guidance = [f"A person says: {note}" for note in (*notes, *later_notes)]
            return "\n\n".join([outcome, text, *guidance] if outcome else [text, *guidance])

        sent = news if news and session is not None else prompt
        if not await _asked_before(budget.store, ctx.run, key):
            asked = AgentAsked(
                role=role_agent.role, agent=role_agent.agent.name, prompt=full(sent), step=key
            )
            ctx.note(asked)
        turn = Turn(
            run_id=step.run_id,
            step_key=key,
            role=role_agent.role,
            prompt=full(prompt),
            news=full(news) if news else "",
            workspace=folder_of(workspace),
            session=session,
            limits=role_agent.limits,
            allowed_tools=role_agent.allowed_tools,
            own_tools=role_agent.own_tools,
            contract=contract,
            nonce_slot=nonce_slot,
            provenance=provenance,
            awaits=awaits,
        )
        if prepare is not None and await prepare() and not isinstance(workspace, str):
            await roll_back_calls(budget.store, budget.clock, ctx.run, key)
        async with watched(ctx, workspace):
            reply = await _reply(role_agent, turn, budget)
        # Before the spending, whose transaction carries it along.
        if reply.stopped is not None:
            ctx.note(AgentStopped(role=role_agent.role, agent=reply.agent, stop=reply.stopped))
        ctx.note(
            AgentReplied(
                role=role_agent.role,
                agent=reply.agent or role_agent.agent.name,
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
        source = f"agent:{reply.agent or role_agent.agent.name}"
        deadlines = await _deadlines(budget.store, reply.waiting_approvals)
        recorded = reply.model_copy(update={"approval_deadlines": deadlines})
        if prepare is not None and reply.waiting_approvals and not isinstance(workspace, str):
            snapshot = await snapshot_turn(ctx, workspace)
            recorded = recorded.model_copy(update={"snapshot": snapshot})
        # Reply, spending and step in one: a crash in between would count the turn twice.
        await budget.spend(
            turn.run_id,
            turn.step_key,
            source,
            reply.usage,
            lambda tx: step.checkpoint(tx, recorded),
        )
        return recorded

    return await _ask_with_retries(ctx, role_agent, take_turn, budget, name, index, for_person)


TakeTurn = Callable[[StepContext, str, Sequence[str]], Awaitable[Reply]]


@dataclass(frozen=True)
class _Tries:
    """Attempts of a turn, and the key of the last one."""

    turn: str
    limits: int = 0
    losses: int = 0
    timeouts: int = 0
    notes: tuple[str, ...] = ()
    """Comments of people who had a lost agent asked again."""
    last_was_limited: bool = False

    @property
    def number(self) -> int:
        return self.limits + self.losses + self.timeouts

    def after(self, limited: Limited) -> _Tries:
        is_limit = not (limited.lost or limited.timed_out)
        return replace(
            self,
            turn=limited.turn or self.turn,
            limits=self.limits + is_limit,
            losses=self.losses + limited.lost,
            timeouts=self.timeouts + limited.timed_out,
            last_was_limited=is_limit,
        )


async def _ask_with_retries(
    ctx: FlowContext,
    role_agent: RoleAgent,
    take_turn: TakeTurn,
    budget: BudgetTracker,
    name: str,
    index: int,
    for_person: str,
) -> Reply:
    """The turn's reply, after as many rate limits, losses and timeouts as it takes. Each is a step, so each is remembered."""
    label = f"{name}-{index}"
    tries = _Tries(turn=f"{name}#{index}" if index else name)
    for number in count():

        async def attempt(step: StepContext, tries: _Tries = tries) -> Reply | Limited:
            key = tries.turn
            if tries.last_was_limited:
                key = await _turn_key(budget.store, step, tries.turn)
            try:
                return await take_turn(step, key, tries.notes)
            except (RateLimited, AgentLost, TimedOut) as error:
                until = _until(error, budget.clock.now(), tries, role_agent)
                if until is None:
                    raise
                if not isinstance(error, RateLimited):
                    ctx.note(_broke(step.key, error, tries.number))
                return Limited(
                    limited_until=until,
                    why=str(error),
                    lost=isinstance(error, AgentLost),
                    timed_out=isinstance(error, TimedOut),
                    turn=key,
                )

        outcome: Reply | Limited = await ctx.step(
            f"{label}:again" if number else name,
            attempt,
            index=number or index,
            returns=Reply | Limited,
        )
        if isinstance(outcome, Reply):
            return outcome
        tries = tries.after(outcome)
        if outcome.lost and tries.losses % role_agent.max_losses == 0:
            question = _question(ctx, role_agent, outcome, label, role_agent.max_losses)
            asked, times = "lost", tries.losses // role_agent.max_losses
        elif outcome.timed_out and tries.timeouts % MAX_TIMEOUTS == 0:
            question = _question(ctx, role_agent, outcome, label, MAX_TIMEOUTS)
            asked, times = "timed-out", tries.timeouts // MAX_TIMEOUTS
        else:
            timer = RATE_LIMIT if tries.last_was_limited else AGENT_LOST
            await ctx.wait(f"{timer}{label}", index=number, until=outcome.limited_until)
            continue
        reason = "\n".join(filter(None, (question, for_person)))
        signal = await ctx.ask_person(f"{label}:{asked}", reason, index=times - 1)
        tries = replace(tries, notes=(*tries.notes, *notes_of(signal)))
    raise AssertionError("tries are counted without end")


def _question(
    ctx: FlowContext, role_agent: RoleAgent, outcome: Limited, label: str, tries: int
) -> str:
    """Question to a person about an agent that keeps bringing no answer; what they say is for its prompt."""
    run, agent = short_id(ctx.run.id), role_agent.agent.name
    how = f"`podium agents check {agent} --ask` shows whether it answers at all"
    if outcome.timed_out:
        how = f"{how}, `agents: {agent}: timeout_seconds:` in podium.yaml gives it more time"
    return (
        f"{role_agent.role or label}: {outcome.why}; tried {tries} times with increasing pauses; "
        f"{how}, and `podium resume {run}` tries again"
    )


def notes_of(signal: Signal) -> list[str]:
    """Return a person's comment when they let the run continue, for the agent's prompt."""
    comment = signal.payload
    return [comment.strip()] if isinstance(comment, str) and comment.strip() else []


def _broke(step_key: str, error: PodiumError, tries: int) -> StepBroke:
    failure = Failure(kind=type(error).__name__, message=str(error), exit_code=error.exit_code)
    return StepBroke(step=step_key, attempt=tries + 1, failure=failure, final=False)


def _until(
    error: RateLimited | AgentLost | TimedOut, now: datetime, tries: _Tries, role_agent: RoleAgent
) -> datetime | None:
    """Return when the turn is asked again. None: not by itself."""
    match error:
        case RateLimited():
            return _worth_waiting(error, now, tries.limits, role_agent)
        case TimedOut() if role_agent.is_patient:
            return now + _pause(tries.timeouts % MAX_TIMEOUTS)
        case AgentLost() if role_agent.max_losses:
            retry_at = error.retry_at
            if retry_at is not None and now < retry_at <= now + MAX_LIMIT:
                return retry_at
            return now + _pause(tries.losses % role_agent.max_losses)
    return None


def _pause(times: int) -> timedelta:
    return timedelta(seconds=FIRST_PAUSE_SECONDS * 2.0**times)


def _worth_waiting(
    error: RateLimited, now: datetime, limits: int, role_agent: RoleAgent
) -> datetime | None:
    """Return the time to wait until. None: it is not known, too far off, or was in vain too often."""
    ends = error.retry_at
    if ends is None and role_agent.is_patient:
        ends = now + min(_FIRST_LIMIT * 2.0**limits, _MAX_PAUSE)
    if ends is None or ends > now + MAX_LIMIT or limits >= MAX_LIMITS:
        return None
    # What a provider says may be in the past.
    return max(ends, now + timedelta(seconds=2.0**limits))


async def _turn_key(store: Store, step: StepContext, first: str) -> str:
    """By which the turn is known. After a rate limit one whose model's answers are kept goes on where it was;
    any other begins anew, and its calls with it."""
    if step.key == first:
        return first
    query = EventQuery(run_id=step.run_id, types=("model_answered",), limit=100_000)
    bodies = [event.body for event in await store.read(lambda view: view.events(query))]
    has_answers = any(isinstance(body, ModelAnswered) and body.step == first for body in bodies)
    return first if has_answers else step.key


async def _asked_before(store: Store, run: Run, step_key: str) -> bool:
    """Return whether an owner of the run that died had put this very turn to its agent."""
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


async def _outcome(store: Store, earlier: Reply | None) -> str:
    """Return the outcome of the agent's last turn. Empty: nothing that it does not know."""
    if earlier is None:
        return ""
    waited = earlier.waiting_approvals
    approvals = await store.read(
        lambda view: [view.approval(approval_id) for approval_id in waited]
    )
    keeps_calls = earlier.keeps_calls
    # Whoever kept the conversation knows what it asked, unless it asked several things at once.
    is_unambiguous = earlier.session is not None and len(waited) == 1
    answers = [
        _answer_to(approval, performed=keeps_calls, is_unambiguous=is_unambiguous)
        for approval in approvals
        if approval is not None
    ]
    untold = [" ".join(line.split()) for line in earlier.untold]
    report = "\n".join(f"- {line}" for line in (*untold, *answers))
    return f"Results of your last turn:\n{report}" if report else ""


def _answer_to(approval: Approval, *, performed: bool, is_unambiguous: bool) -> str:
    """Return a person's answer to a call, worded for the agent that asked for it.

    `performed`: Podium makes the call before the agent reads this. `is_known`: the agent knows which question
    an answer is to.
    """
    summary, call = " ".join(approval.summary.split()), _own_call(approval)
    answer, why = " ".join(approval.said.split()), " ".join(approval.why.split())
    if approval.tool == ASK_HUMAN and answer and approval.status in ANSWERED:
        asked = str(approval.arguments.get("question") or summary)
        question = (
            "" if is_unambiguous else f" ({shorten(asked, _QUESTION_CHARACTERS, placeholder='…')})"
        )
        return f"A person answered your question{question}: {answer}"
    match approval.status:
        case ApprovalStatus.GRANTED if performed:
            return f"Approved, and performed: {summary}. The result is above. Continue."
        case ApprovalStatus.GRANTED:
            comment = f"\nTheir comment: {answer}" if answer else ""
            return f"Approved. Repeat your call exactly, once.{call}{comment}"
        case ApprovalStatus.REJECTED:
            reason = f": {why}" if why else " without a reason"
            return f"Rejected{reason}. Do not ask for it again.{call}"
        case ApprovalStatus.EXPIRED | ApprovalStatus.PENDING:
            return f"Nobody answered in time. Ask again only if needed.{call}"
    return f"Already used.{call}"


def _own_call(approval: Approval) -> str:
    """The call as its agent knows it, to follow a sentence: a CLI's own tools have other names and arguments than Podium's."""
    command, path = approval.arguments.get("command"), approval.arguments.get("path")
    if isinstance(command, list):
        command = shlex.join(map(str, command))
    if isinstance(command, str) and command:
        backticks = "`" * max([3, *(len(run) + 1 for run in re.findall("`+", command))])
        # Not indented: whoever copies it would copy that too.
        return f" The command:\n{backticks}\n{written_out(command)}\n{backticks}"
    if isinstance(path, str) and path:
        return f" The file: `{' '.join(path.split())}`"
    return f" The call: {' '.join(approval.summary.split())}"


async def _reply(role_agent: RoleAgent, turn: Turn, budget: BudgetTracker) -> Reply:
    """The answer. A turn that brought none has still been used."""
    began = budget.clock.monotonic()
    try:
        reply = await role_agent.agent.ask(turn)
        with _using(reply.usage):
            # What an agent says that met a full disk is not taken: it is asked again when there is room.
            budget.store.require_space()
        return reply
    except (PodiumError, asyncio.CancelledError) as error:
        # Agents leave what was used on whatever ends their turn, a cancellation too.
        used: Usage | None = getattr(error, "usage", None)
        if used is None and isinstance(error, AgentLost | TimedOut | asyncio.CancelledError):
            seconds = budget.clock.monotonic() - began
            used = Usage(turns=1, seconds=seconds, complete=False)
        if used is not None:
            spending = budget.spend(
                turn.run_id, turn.step_key, f"agent:{role_agent.agent.name}", used
            )
            await run_to_completion(spending)
        raise


@contextmanager
def _using(usage: Usage) -> Iterator[None]:
    """Leave on an error what the turn had used."""
    try:
        yield
    except PodiumError as error:
        error.usage = usage
        raise


async def _deadlines(store: Store, approvals: tuple[str, ...]) -> dict[str, datetime]:
    """Return until when each can be answered. One that the store does not know cannot be waited for."""
    if not approvals:
        return {}
    records = await store.read(
        lambda view: [view.approval(approval_id) for approval_id in approvals]
    )
    return {approval.id: approval.deadline for approval in records if approval is not None}

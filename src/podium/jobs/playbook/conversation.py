"""Conversation with the agent over all its turns, until the criteria are met or nothing helps, and what later turns tell it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import count

from podium.agents.conversation import Conversation, TurnText, WriteText
from podium.core.decisions import CallRecord, CallStatus, Tier
from podium.core.events import (
    AgentReplied,
    EventBody,
    RunFailed,
    RunRetried,
    ToolAbandoned,
    ToolCompleted,
    ToolFailed,
    ToolInDoubt,
    ToolRefused,
    ToolRequested,
)
from podium.core.folder_snapshots import WorkingFolder
from podium.core.turns import Reply
from podium.jobs.playbook.criteria import commands_of, run_criteria
from podium.jobs.playbook.deps import AgentSession, LimitedAgent, PlaybookDeps
from podium.jobs.playbook.events import PlaybookEnded
from podium.jobs.playbook.models import AgentEnding, Criterion, PlaybookJob
from podium.jobs.playbook.prompt import build_prompt
from podium.jobs.playbook.template import as_data, in_code
from podium.ports import EventQuery, FlowContext, StepContext, StoreView
from podium.render.text import counted

TURN = "follow"
"""The step of the agent's first turn; later ones are `follow#1`, `follow#2`, …"""
MAX_EVENTS = 1_000_000
MAX_CALLS = 40
MAX_CALL = 300
MAX_TEXT = 2_000
MAX_PATHS = 50
_TYPES = (
    "agent_replied", "playbook_ended", "run_failed", "run_retried", "tool_abandoned", "tool_completed",
    "tool_failed", "tool_in_doubt", "tool_refused", "tool_requested",
)  # fmt: skip

_HOLDS = "The assignment, its rules and its limits still apply."


def turn_key(number: int) -> str:
    return f"{TURN}#{number}" if number else TURN


def go_on(criteria: Sequence[str]) -> str:
    """Build the prompt of a turn that continues after an approval."""
    listed = ", ".join(map(in_code, criteria))
    until = (
        f" until these succeed: {listed}"
        if listed
        else " until everything that it asks for is done"
    )
    return f"Continue with the playbook where you stopped,{until}. {_HOLDS}"


def not_met(criteria: Sequence[Criterion], *, idle: bool) -> str:
    """Build the prompt of a turn after the agent ended with unmet criteria."""
    parts = ["# Not done yet", "You ended your work, and Podium ran the criteria."]
    parts += [_failed(criterion) for criterion in criteria if not criterion.met]
    if met := ", ".join(in_code(criterion.command) for criterion in criteria if criterion.met):
        parts.append(f"Met: {met}.")
    if idle:
        parts.append("Nothing that you did since the last check could have changed this result.")
    parts.append(
        f"Continue from here: find the cause, fix it, and end again. {_HOLDS} If you cannot do it with your permissions, "
        "end and say why: the run stops when you end twice in a row without changing anything."
    )
    return "\n\n".join(parts)


def _failed(criterion: Criterion) -> str:
    line = f"Not met: {in_code(criterion.command)} ({criterion.why})."
    if not criterion.said.strip():
        return f"{line} It had no output."
    return f"{line} The end of its output:\n\n{as_data(criterion.said)}"


def in_a_new_conversation(assignment: str, reply: Reply, calls: str, news: str) -> str:
    """Build the prompt for an agent that keeps no conversation between turns."""
    parts = [
        assignment.rstrip(),
        "# What was done before",
        "You already started on this, in a conversation that was not saved. The folder is as you left it.",
    ]
    parts += _calls_and_text(calls, reply.text)
    return "\n\n".join([*parts, news])


@dataclass(frozen=True)
class DiscardedAttempt:
    """A discarded attempt: its performed calls, its end, and its last text."""

    calls: str = ""
    last_text: str = ""
    failure: str = ""
    ended: PlaybookEnded | None = None

    def summary(self) -> str:
        """Build the note for the turn that replaces it."""
        parts = [
            "# What was done before",
            "A person restarted this run from here. The earlier attempt is not part of this conversation. The folder is "
            "as that attempt left it, plus whatever people have changed since.",
        ]
        if self.ended is None and self.failure:
            parts.append(f"It ended with an error:\n\n{as_data(self.failure)}")
        if self.ended is not None:
            parts += _ending(self.ended)
        parts += _calls_and_text(self.calls, self.last_text)
        parts.append(
            "Look at the current state first. Keep what is right; add what is missing and correct what is wrong."
        )
        return "\n\n".join(parts)


def _ending(ended: PlaybookEnded) -> Iterator[str]:
    if ended.changed:
        listed = ", ".join(map(in_code, ended.changed[:MAX_PATHS]))
        more = len(ended.changed) - MAX_PATHS
        yield f"Files that it changed: {listed}{f' and {more} more' if more > 0 else ''}."
    else:
        yield "It changed no files."
    if ended.stop is not None:
        yield f"A limit ended it: {in_code(ended.stop.reason)}."
    yield from (
        _failed(criterion)
        for criterion in map(Criterion.model_validate, ended.criteria)
        if not criterion.met
    )


def _calls_and_text(calls: str, last_text: str) -> Iterator[str]:
    if calls:
        yield f"Calls that may have changed something, in order:\n\n{as_data(calls)}"
    if last_text.strip():
        yield f"Its last message:\n\n{as_data(last_text.strip()[-MAX_TEXT:])}"


def discarded_attempt(view: StoreView, run_id: str, turn: str) -> DiscardedAttempt | None:
    """Find the attempt at this turn that a retry discarded. None: there was none.

    Deterministic: it reads only events before the retry.
    """
    query = EventQuery(run_id=run_id, types=_TYPES, limit=MAX_EVENTS)
    bodies: list[EventBody] = [event.body for event in view.events(query)]
    retries = [at for at, body in enumerate(bodies) if _discards(body, turn)]
    if not retries:
        return None
    before, retry = bodies[: retries[-1]], bodies[retries[-1]]
    steps = retry.discarded_steps if isinstance(retry, RunRetried) else ()
    earlier = DiscardedAttempt()
    for body in before:
        match body:
            case RunRetried():
                earlier = DiscardedAttempt()
            case AgentReplied(text=text):
                earlier = replace(earlier, last_text=text)
            case RunFailed(failure=failure):
                earlier = replace(earlier, failure=failure.message)
            case PlaybookEnded():
                earlier = replace(earlier, ended=body)
    return replace(earlier, calls=_calls(before, run_id, steps))


def _discards(body: EventBody, turn: str) -> bool:
    """Check if the turn is the first that is repeated after this event."""
    steps = body.discarded_steps if isinstance(body, RunRetried) else ()
    return next((step for step in steps if _is_turn(step)), "") == turn


def _is_turn(step: str) -> bool:
    return step == TURN or step.startswith(f"{TURN}#")


def calls_made(view: StoreView, run_id: str) -> str:
    """List the performed calls of all turns so far, one per line, without those that only read."""
    query = EventQuery(run_id=run_id, types=_TYPES, limit=MAX_EVENTS)
    steps = [step.key for step in view.steps(run_id)]
    return _calls([event.body for event in view.events(query)], run_id, steps)


def _calls(bodies: Sequence[EventBody], run_id: str, steps: Sequence[str]) -> str:
    """List the last calls with their ends."""
    prefixes = tuple(f"{run_id}:{step}:" for step in steps if step.startswith(TURN))
    ends: dict[str, str] = {}
    requests: dict[str, ToolRequested] = {}
    for body in bodies:
        match body:
            case ToolRequested(call=call) if call.startswith(prefixes) and body.tier != "T0":
                requests[call] = body
            case ToolCompleted(call=call):
                ends[call] = "done"
            case ToolFailed(call=call, error=error):
                ends[call] = f"failed: {error}"
            case ToolInDoubt(call=call):
                ends[call] = "unknown whether it happened"
            case ToolAbandoned(call=call):
                ends[call] = "not done"
            case ToolRefused(call=call):
                ends[call] = "refused"
    lines = [
        f"{_line(_call(body))}: {_line(ends[call])}"
        for call, body in requests.items()
        if call in ends
    ]
    left_out = len(lines) - MAX_CALLS
    head = [f"({counted(left_out, 'earlier call')} omitted)"] if left_out > 0 else []
    return "\n".join(head + lines[-MAX_CALLS:])


def _call(body: ToolRequested) -> str:
    """Render the call with its shortest arguments first, since the rest may be cut."""
    arguments = (
        f"{json.dumps(name)}: {json.dumps(value, ensure_ascii=False)}"
        for name, value in body.arguments.items()
    )
    return f"{body.tool} {{{', '.join(sorted(arguments, key=len))}}}"


def _line(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= MAX_CALL else f"{line[:MAX_CALL]}…"


MAX_IDLE_ENDS = 2
"""Limit of ends in a row without any change while criteria are unmet."""


async def converse(
    ctx: FlowContext,
    deps: PlaybookDeps,
    session: AgentSession,
    job: PlaybookJob,
    folder: WorkingFolder,
) -> AgentEnding:
    """Let the agent follow the playbook, and ask it again while criteria are unmet."""
    agent = LimitedAgent(session.role_agent.agent, deps.store, deps.clock, job.limits)
    conversation = Conversation(
        ctx,
        replace(session.role_agent, agent=agent),
        _turn_text(ctx, deps, job),
        budget=deps.budget_tracker,
        name=TURN,
        workspace=folder.root,
        go_on=go_on(commands_of(job.profile, job.playbook.head)),
    )
    patience = _RetryPolicy(job.limits.same_results)
    reply, text = await conversation.answer(), ""
    for ends in count(1):
        # A limit may end a turn before it has said anything.
        text = reply.text or text
        criteria = await run_criteria(ctx, session.prover, job, folder, ends - 1)
        changing = await _changing_calls(ctx, deps, ends - 1, criteria)
        over = patience.over(reply, criteria, changing)
        if over is not None:
            last = reply.model_copy(update={"text": text})
            return AgentEnding(reply=last, criteria=criteria, ends=ends, why=over)
        idle = ends > 1 and patience.idle > 0
        reply = await conversation.answer(not_met(criteria, idle=idle))
    raise AssertionError("ends are counted without end")


def _turn_text(ctx: FlowContext, deps: PlaybookDeps, job: PlaybookJob) -> WriteText:
    """Build the text of each turn: the assignment or the news, and a summary of a discarded attempt."""
    assignment = build_prompt(job.profile, job.playbook, job.inputs, job.facts).text

    async def recall(step: StepContext) -> str:
        return await deps.store.read(lambda view: calls_made(view, step.run_id))

    async def write_text(number: int, last: Reply | None, news: str) -> TurnText:
        run_id, prompt = ctx.run.id, assignment
        if last is not None:
            # Only an agent that has forgotten them needs to be told of its calls.
            calls = ""
            if last.session is None:
                calls = await ctx.step("recall", recall, index=number)
            prompt = in_a_new_conversation(assignment, last, calls, news)
        discarded = await deps.store.read(
            lambda view: discarded_attempt(view, run_id, turn_key(number))
        )
        if discarded is None:
            return TurnText(prompt, news)
        summary = discarded.summary()
        return TurnText(
            f"{prompt.rstrip()}\n\n{summary}\n", f"{news.rstrip()}\n\n{summary}\n" if news else ""
        )

    return write_text


class _RetryPolicy:
    """Decides if the agent is asked once more."""

    def __init__(self, most_same: int | None) -> None:
        self._most_same = most_same
        self._unmet: list[tuple[str, str]] = []
        self._same = 0
        self._changing = 0
        self.idle = 0
        """Ends in a row without any change before them."""

    def over(self, reply: Reply, criteria: tuple[Criterion, ...], changing: int) -> str | None:
        """Return why the agent is not asked again; empty if that is obvious. None: it is asked again."""
        unmet = [criterion for criterion in criteria if not criterion.met]
        if not unmet or reply.stopped is not None:
            return ""
        if any(not criterion.ran for criterion in unmet):
            return "a criterion was not run, and the agent cannot change that"
        failures = [(criterion.command, criterion.output_sha256) for criterion in unmet]
        self._same = self._same + 1 if failures == self._unmet else 1
        self.idle = self.idle + 1 if changing == self._changing else 0
        self._unmet, self._changing = failures, changing
        if self.idle >= MAX_IDLE_ENDS:
            return f"it ended {self.idle} times in a row without changing anything"
        if self._most_same is not None and self._same >= self._most_same:
            return f"the criteria failed with the same output {self._same} times in a row"
        return None


async def _changing_calls(
    ctx: FlowContext, deps: PlaybookDeps, number: int, criteria: tuple[Criterion, ...]
) -> int:
    """Count the agent's calls that may have changed something so far; 0 if all criteria are met."""
    if all(criterion.met for criterion in criteria):
        return 0

    async def look(step: StepContext) -> int:
        return await deps.store.read(lambda view: _changing(view, step.run_id))

    return await ctx.step("look-back", look, index=number)


def _changing(view: StoreView, run_id: str) -> int:
    return sum(call.agent != "" and _may_have_changed(call) for call in view.calls(run_id))


def _may_have_changed(call: CallRecord) -> bool:
    """Check if a call may have changed something. A failed command may; a failed tool without result has not."""
    if call.decision.tier == Tier.T0 or call.outcome is None:
        return False
    done = call.status is CallStatus.COMPLETED
    return done or (call.status is CallStatus.FAILED and call.outcome.result is not None)

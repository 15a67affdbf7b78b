"""Conversation with the agent over all its turns, until the criteria are met or nothing helps, and what later turns tell it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import count

from podium.agents.turn_step import Conversation, TurnText, WriteText
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
from podium.jobs.playbook.criteria import commands_of, proved
from podium.jobs.playbook.deps import AgentSession, LimitedAgent, PlaybookDeps
from podium.jobs.playbook.events import PlaybookEnded
from podium.jobs.playbook.prompt import build_prompt
from podium.jobs.playbook.run_models import AgentEnding, Criterion, PlaybookJob
from podium.jobs.playbook.template import as_data, in_code
from podium.ports import EventQuery, FlowContext, StepContext, StoreView

TURN = "follow"
"""The step of the agent's first turn; later ones are `follow#1`, `follow#2`, …"""
MAX_EVENTS = 1_000_000
MAX_CALLS = 40
MAX_CALL = 300
MAX_WORDS = 2_000
MAX_PATHS = 50
_TYPES = (
    "agent_replied", "playbook_ended", "run_failed", "run_retried", "tool_abandoned", "tool_completed",
    "tool_failed", "tool_in_doubt", "tool_refused", "tool_requested",
)  # fmt: skip

_HOLDS = "The assignment, its rules and its limits hold as before."


def turn_key(number: int) -> str:
    return f"{TURN}#{number}" if number else TURN


def go_on(criteria: Sequence[str]) -> str:
    """For a turn that follows on one that waited for people."""
    listed = ", ".join(map(in_code, criteria))
    until = f" until these succeed: {listed}" if listed else " until all that it asks for is done"
    return f"Go on with the playbook from where you stopped,{until}. {_HOLDS}"


def not_met(criteria: Sequence[Criterion], *, idle: bool) -> str:
    """For a turn that follows on an end that came too early."""
    parts = ["# Not done yet", "You have ended, and Podium has run the criteria."]
    parts += [_failed(each) for each in criteria if not each.met]
    if met := ", ".join(in_code(each.command) for each in criteria if each.met):
        parts.append(f"Met: {met}.")
    if idle:
        parts.append("Nothing that you did since you were last asked could have changed that.")
    parts.append(
        f"Go on from here: find the cause, put it right, and end again. {_HOLDS} If it cannot be done with what you "
        "may do, end and say why: the run is over when you end twice in a row without having changed anything."
    )
    return "\n\n".join(parts)


def _failed(criterion: Criterion) -> str:
    line = f"Not met: {in_code(criterion.command)} ({criterion.why})."
    if not criterion.said.strip():
        return f"{line} It printed nothing."
    return f"{line} The end of what it printed:\n\n{as_data(criterion.said)}"


def in_a_new_conversation(assignment: str, reply: Reply, calls: str, news: str) -> str:
    """For an agent whose medium keeps no conversation: it knows nothing of what it was told and did."""
    parts = [
        assignment.rstrip(),
        "# What was done before",
        "You have begun with this already, in a conversation that was not kept. The folder is as you left it.",
    ]
    parts += _calls_and_words(calls, reply.text)
    return "\n\n".join([*parts, news])


@dataclass(frozen=True)
class DiscardedAttempt:
    """What an attempt came to that somebody had discarded: performed calls, its end, and what it said last."""

    calls: str = ""
    words: str = ""
    failure: str = ""
    ended: PlaybookEnded | None = None

    def told(self) -> str:
        """For the turn that is asked again in its place."""
        parts = [
            "# What was done before",
            "A person had this run go again from here. What the earlier attempt did is not in this conversation. The "
            "folder is as it left it, with whatever people have changed since.",
        ]
        if self.ended is None and self.failure:
            parts.append(f"It ended with an error:\n\n{as_data(self.failure)}")
        if self.ended is not None:
            parts += _ending(self.ended)
        parts += _calls_and_words(self.calls, self.words)
        parts.append(
            "Look at what is there first. Keep what is right, and do what is missing or wrong."
        )
        return "\n\n".join(parts)


def _ending(ended: PlaybookEnded) -> Iterator[str]:
    if ended.changed:
        listed = ", ".join(map(in_code, ended.changed[:MAX_PATHS]))
        more = len(ended.changed) - MAX_PATHS
        yield f"Files that it changed: {listed}{f' and {more} more' if more > 0 else ''}."
    else:
        yield "It changed no file."
    if ended.stop is not None:
        yield f"A limit ended it: {in_code(ended.stop.reason)}."
    yield from (
        _failed(each) for each in map(Criterion.model_validate, ended.criteria) if not each.met
    )


def _calls_and_words(calls: str, words: str) -> Iterator[str]:
    if calls:
        yield f"Calls that may have changed something, in order:\n\n{as_data(calls)}"
    if words.strip():
        yield f"What was said last:\n\n{as_data(words.strip()[-MAX_WORDS:])}"


def discarded_attempt(view: StoreView, run_id: str, turn: str) -> DiscardedAttempt | None:
    """What was done in place of this turn before somebody had the run go again. None: nobody did.

    The same whenever it is asked: it looks only at what stands before the retry.
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
                earlier = replace(earlier, words=text)
            case RunFailed(failure=failure):
                earlier = replace(earlier, failure=failure.message)
            case PlaybookEnded():
                earlier = replace(earlier, ended=body)
    return replace(earlier, calls=_calls(before, run_id, steps))


def _discards(body: EventBody, turn: str) -> bool:
    """Whether the turn is the first that is asked again after it."""
    steps = body.discarded_steps if isinstance(body, RunRetried) else ()
    return next((step for step in steps if _is_turn(step)), "") == turn


def _is_turn(step: str) -> bool:
    return step == TURN or step.startswith(f"{TURN}#")


def calls_made(view: StoreView, run_id: str) -> str:
    """The performed calls of all turns so far beyond reading, a line each."""
    query = EventQuery(run_id=run_id, types=_TYPES, limit=MAX_EVENTS)
    steps = [step.key for step in view.steps(run_id)]
    return _calls([event.body for event in view.events(query)], run_id, steps)


def _calls(bodies: Sequence[EventBody], run_id: str, steps: Sequence[str]) -> str:
    """Of many the last ones."""
    places = tuple(f"{run_id}:{step}:" for step in steps if step.startswith(TURN))
    ends: dict[str, str] = {}
    requests: dict[str, ToolRequested] = {}
    for body in bodies:
        match body:
            case ToolRequested(call=call) if call.startswith(places) and body.tier != "T0":
                requests[call] = body
            case ToolCompleted(call=call):
                ends[call] = "done"
            case ToolFailed(call=call, error=error):
                ends[call] = f"failed: {error}"
            case ToolInDoubt(call=call):
                ends[call] = "nobody knows whether it happened"
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
    head = [f"({left_out} earlier ones are left out)"] if left_out > 0 else []
    return "\n".join(head + lines[-MAX_CALLS:])


def _call(body: ToolRequested) -> str:
    """The call, with the shortest of its arguments first: the others may be cut."""
    shown = (
        f"{json.dumps(name)}: {json.dumps(value, ensure_ascii=False)}"
        for name, value in body.arguments.items()
    )
    return f"{body.tool} {{{', '.join(sorted(shown, key=len))}}}"


def _line(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= MAX_CALL else f"{line[:MAX_CALL]}…"


MAX_IDLE_ENDS = 2
"""How often in a row an agent may end without having changed anything while criteria are not met."""


async def followed(
    ctx: FlowContext,
    kit: PlaybookDeps,
    bench: AgentSession,
    job: PlaybookJob,
    ground: WorkingFolder,
) -> AgentEnding:
    """Let the agent follow the playbook, and go back to it with the criteria that its end has left unmet."""
    agent = LimitedAgent(bench.player.agent, kit.store, kit.clock, job.limits)
    conversation = Conversation(
        ctx,
        replace(bench.player, agent=agent),
        _turn_text(ctx, kit, job),
        budget=kit.purse,
        name=TURN,
        workspace=ground.root,
        go_on=go_on(commands_of(job.profile, job.playbook.head)),
    )
    patience = _RetryPolicy(job.limits.same_results)
    reply, words = await conversation.answer(), ""
    for ends in count(1):
        # A limit may end a turn before it has said anything.
        words = reply.text or words
        criteria = await proved(ctx, bench.prover, job, ground, ends - 1)
        changing = await _changing_calls(ctx, kit, ends - 1, criteria)
        over = patience.over(reply, criteria, changing)
        if over is not None:
            last = reply.model_copy(update={"text": words})
            return AgentEnding(reply=last, criteria=criteria, ends=ends, why=over)
        idle = ends > 1 and patience.idle > 0
        reply = await conversation.answer(not_met(criteria, idle=idle))
    raise AssertionError("ends are counted without end")


def _turn_text(ctx: FlowContext, kit: PlaybookDeps, job: PlaybookJob) -> WriteText:
    """The assignment or the news, and what became of the turn where a person had it asked again."""
    assignment = build_prompt(job.profile, job.playbook, job.inputs, job.facts).text

    async def recall(step: StepContext) -> str:
        return await kit.store.read(lambda view: calls_made(view, step.run_id))

    async def write_text(number: int, last: Reply | None, news: str) -> TurnText:
        run_id, prompt = ctx.run.id, assignment
        if last is not None:
            # Only an agent that has forgotten them needs to be told of its calls.
            calls = ""
            if last.session is None:
                calls = await ctx.step("recall", recall, index=number)
            prompt = in_a_new_conversation(assignment, last, calls, news)
        discarded = await kit.store.read(
            lambda view: discarded_attempt(view, run_id, turn_key(number))
        )
        if discarded is None:
            return TurnText(prompt, news)
        told = discarded.told()
        return TurnText(
            f"{prompt.rstrip()}\n\n{told}\n", f"{news.rstrip()}\n\n{told}\n" if news else ""
        )

    return write_text


class _RetryPolicy:
    """Whether it is worth going back to the agent once more."""

    def __init__(self, most_same: int | None) -> None:
        self._most_same = most_same
        self._unmet: list[tuple[str, str]] = []
        self._same = 0
        self._changing = 0
        self.idle = 0
        """Ends in a row before which nothing was changed."""

    def over(self, reply: Reply, criteria: tuple[Criterion, ...], changing: int) -> str | None:
        """Why the agent is not asked again, in words where it could have been. None: it is."""
        unmet = [each for each in criteria if not each.met]
        if not unmet or reply.stopped is not None:
            return ""
        if any(not each.ran for each in unmet):
            return "no work of the agent's can change that a criterion was not run"
        known = [(each.command, each.output_sha256) for each in unmet]
        self._same = self._same + 1 if known == self._unmet else 1
        self.idle = self.idle + 1 if changing == self._changing else 0
        self._unmet, self._changing = known, changing
        if self.idle >= MAX_IDLE_ENDS:
            return f"it ended {self.idle} times in a row without having changed anything"
        if self._most_same is not None and self._same >= self._most_same:
            return f"they failed with the same output {self._same} times in a row"
        return None


async def _changing_calls(
    ctx: FlowContext, kit: PlaybookDeps, number: int, criteria: tuple[Criterion, ...]
) -> int:
    """How many of the agent's calls may have changed something so far. Not counted where all is met."""
    if all(each.met for each in criteria):
        return 0

    async def look(step: StepContext) -> int:
        return await kit.store.read(lambda view: _changing(view, step.run_id))

    return await ctx.step("look-back", look, index=number)


def _changing(view: StoreView, run_id: str) -> int:
    return sum(call.agent != "" and _may_have_changed(call) for call in view.calls(run_id))


def _may_have_changed(call: CallRecord) -> bool:
    """A command that failed may have; a tool that failed and gave nothing has not."""
    if call.decision.tier == Tier.T0 or call.outcome is None:
        return False
    done = call.status is CallStatus.COMPLETED
    return done or (call.status is CallStatus.FAILED and call.outcome.result is not None)

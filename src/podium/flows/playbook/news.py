"""What an agent is told in a later turn: the news alone, or with the assignment where it cannot know that any more."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from podium.domain.asking import Reply
from podium.domain.events import (
    AgentReplied,
    EventBody,
    PlaybookEnded,
    RunFailed,
    RunRetried,
    ToolAbandoned,
    ToolCompleted,
    ToolFailed,
    ToolInDoubt,
    ToolRefused,
    ToolRequested,
)
from podium.domain.playbook_runs import Criterion
from podium.flows.playbook.fencing import as_data, in_code
from podium.ports import EventQuery, View

TURN = "follow"
"""The step of the agent's first turn; later ones are `follow#1`, `follow#2`, …"""
MOST_EVENTS = 1_000_000
MOST_CALLS = 40
LONGEST_CALL = 300
LONGEST_WORDS = 2_000
MOST_PATHS = 50
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
class Earlier:
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
        listed = ", ".join(map(in_code, ended.changed[:MOST_PATHS]))
        more = len(ended.changed) - MOST_PATHS
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
        yield f"What was said last:\n\n{as_data(words.strip()[-LONGEST_WORDS:])}"


def discarded_attempt(view: View, run_id: str, turn: str) -> Earlier | None:
    """What was done in place of this turn before somebody had the run go again. None: nobody did.

    The same whenever it is asked: it looks only at what stands before the retry.
    """
    query = EventQuery(run_id=run_id, types=_TYPES, limit=MOST_EVENTS)
    bodies: list[EventBody] = [event.body for event in view.events(query)]
    retries = [at for at, body in enumerate(bodies) if _discards(body, turn)]
    if not retries:
        return None
    before, retry = bodies[: retries[-1]], bodies[retries[-1]]
    steps = retry.discarded_steps if isinstance(retry, RunRetried) else ()
    earlier = Earlier()
    for body in before:
        match body:
            case RunRetried():
                earlier = Earlier()
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


def calls_made(view: View, run_id: str) -> str:
    """The performed calls of all turns so far beyond reading, a line each."""
    query = EventQuery(run_id=run_id, types=_TYPES, limit=MOST_EVENTS)
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
    left_out = len(lines) - MOST_CALLS
    head = [f"({left_out} earlier ones are left out)"] if left_out > 0 else []
    return "\n".join(head + lines[-MOST_CALLS:])


def _call(body: ToolRequested) -> str:
    """The call, with the shortest of its arguments first: the others may be cut."""
    shown = (
        f"{json.dumps(name)}: {json.dumps(value, ensure_ascii=False)}"
        for name, value in body.arguments.items()
    )
    return f"{body.tool} {{{', '.join(sorted(shown, key=len))}}}"


def _line(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= LONGEST_CALL else f"{line[:LONGEST_CALL]}…"

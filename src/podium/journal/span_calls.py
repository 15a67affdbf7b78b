"""Spans of calls: what the gate decided, and what became of it."""

from __future__ import annotations

from collections.abc import Iterator

from podium.domain.events import (
    Event,
    ToolAbandoned,
    ToolCompleted,
    ToolFailed,
    ToolInDoubt,
    ToolRefused,
    ToolRequested,
)
from podium.journal.hosted import HostedRun
from podium.journal.span_begun import Begun, current, turn_in
from podium.journal.span_places import (
    Attribute,
    Span,
    SpanPlace,
    lasting,
    place_of,
    step_place,
    word,
)


def call_spans(event: Event, run: HostedRun, begun: Begun) -> Iterator[Span]:
    match event.body:
        case ToolRequested(call=call):
            # Taken now: a call that is a step of its own is settled with it, after its end.
            begun.calls[call] = event.at, event.body, _place_of_call(call, run, begun)
        case ToolRefused() as refused:
            about = _about_call(refused.tool, refused.effect, refused.tier, refused.rule)
            place = place_of(run.id, "refused", event.seq)
            parent = _place_of_call(refused.call, run, begun)
            name = f"execute_tool {word(refused.tool)}"
            yield Span(place, parent, name, event.at, event.at, about)
        case ToolCompleted(call=call, seconds=seconds):
            yield settled(event, run, begun, call, "completed", seconds)
        case ToolFailed(call=call, seconds=seconds):
            yield settled(event, run, begun, call, "failed", seconds)
        case ToolInDoubt(call=call):
            yield settled(event, run, begun, call, "in_doubt", 0.0)
        case ToolAbandoned(call=call):
            yield settled(event, run, begun, call, "abandoned", 0.0)


def settled(
    event: Event, run: HostedRun, begun: Begun, call: str, outcome: str, seconds: float
) -> Span:
    """A call that ended, or will not end here."""
    asked = begun.calls.pop(call, None)
    if turn := turn_in(_step_of(call, run), begun):
        turn.heard = event.at
    if asked is None:  # by a process before this one
        start, parent = event.at - lasting(seconds), _place_of_call(call, run, begun)
        tool = str(getattr(event.body, "tool", ""))
        about: dict[str, Attribute] = {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": word(tool),
        }
    else:
        start, requested, parent = asked
        tool = requested.tool
        about = _about_call(tool, "allow", requested.tier, requested.rule)
    return Span(
        place_of(run.id, "call", call, run.fence, event.seq),
        parent,
        f"execute_tool {word(tool)}",
        start,
        event.at,
        {**about, "podium.outcome": outcome},
        outcome if outcome in ("failed", "in_doubt") else "",
    )


def _about_call(tool: str, decision: str, tier: str, rule: str) -> dict[str, Attribute]:
    return {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": word(tool),
        "podium.decision": decision,
        "podium.tier": word(tier),
        "podium.rule": word(rule),
    }


def _place_of_call(call: str, run: HostedRun, begun: Begun) -> SpanPlace:
    """The turn or else the step that a call was made in."""
    step = _step_of(call, run)
    if turn := turn_in(step, begun):
        return turn.place
    opened = begun.steps.get(step)
    return step_place(run, step, opened.attempt) if opened else current(run, begun)


def _step_of(call: str, run: HostedRun) -> str:
    """The step that a call's key names: run, step and call, with colons between."""
    return call.removeprefix(f"{run.id}:").rpartition(":")[0]

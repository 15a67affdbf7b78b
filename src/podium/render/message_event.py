"""Text of a duet's events, one line each."""

from __future__ import annotations

from podium.core import events as e
from podium.core.turns import MessageBlock
from podium.render.text import shown_line

DuetEvent = (
    e.PairSeated
    | e.LegOpened
    | e.MessageHeard
    | e.BlockIgnored
    | e.SideNudged
    | e.KeyboardTaken
    | e.KeyboardReturned
)


def of_a_duet(body: DuetEvent) -> str:
    """One event, on a line that may be cut at its end."""
    match body:
        case e.PairSeated():
            return f"{body.pair}: {body.planner} plans, {body.executer} executes ({body.transport})"
        case e.LegOpened():
            wanted = " or ".join(body.leg.expected)
            return f"{wanted} awaited from {body.leg.expected_from}, round {body.leg.round}"
        case e.MessageHeard():
            return _heard(body)
        case e.BlockIgnored():
            return f"of {body.sender}: {body.why}: {body.shown}"
        case e.SideNudged():
            return f"{body.side}: {body.why}"
        case e.KeyboardTaken():
            return f"of {body.side} by {shown_line(body.by)}; nothing is typed there meanwhile"
        case e.KeyboardReturned():
            why = f"; {shown_line(body.why)}" if body.why else ""
            return f"of {body.side} by {shown_line(body.by)}{why}"


def _heard(body: e.MessageHeard) -> str:
    how = f"to {body.routed_to}" if body.routed_to else f"not handed on, {body.why}"
    return f"{body.message.type} of {body.sender}, {how}: {first_line(body.message)}"


def first_line(message: MessageBlock) -> str:
    return message.body.strip().partition("\n")[0]

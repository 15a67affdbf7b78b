"""Events of a duet, and how each is shown."""

from __future__ import annotations

from typing import Literal

from podium.core.model import EventBody
from podium.core.turns import Address, MessageBlock, Side
from podium.jobs.duet.models import Hop
from podium.render.event_view import BarEnd, BarStart, EventView
from podium.render.text import escaped_line


class PairSeated(EventBody):
    """A pair has taken a task."""

    type: Literal["pair_seated"] = "pair_seated"
    pair: str
    planner: str
    executer: str
    transport: str


class LegOpened(EventBody):
    """A message is awaited: a row of the state table."""

    type: Literal["leg_opened"] = "leg_opened"
    leg: Hop


class MessageHeard(EventBody):
    """A message block was read in an agent's output and routed or dropped."""

    type: Literal["message_heard"] = "message_heard"
    leg: int
    sender: Side
    message: MessageBlock
    routed_to: Address | None = None
    """None: it was not handed on; `why` is the reason."""
    why: str = ""


class BlockIgnored(EventBody):
    """Something that looked like a block could not be read."""

    type: Literal["block_ignored"] = "block_ignored"
    leg: int
    sender: Side
    why: str
    shown: str = ""
    """Its beginning."""


class SideNudged(EventBody):
    """An agent was reminded of the message that it owes."""

    type: Literal["side_nudged"] = "side_nudged"
    leg: int
    side: Side
    why: str


class KeyboardTaken(EventBody):
    """A person took the keyboard of a side: nothing is typed there by Podium, and its time stands still."""

    type: Literal["keyboard_taken"] = "keyboard_taken"
    pair: str
    side: Side
    by: str


class KeyboardReturned(EventBody):
    """The keyboard of a side is Podium's again."""

    type: Literal["keyboard_returned"] = "keyboard_returned"
    pair: str
    side: Side
    by: str
    """Person who held it."""
    why: str = ""
    """Empty: they gave it back themselves."""


_HOP_BAR = "leg"
"""Key of the bar on the timeline: one hop is open at a time."""


def view_event(body: EventBody) -> EventView:
    """Show an event of a duet."""
    match body:
        case PairSeated():
            return EventView(
                f"{body.pair}: {body.planner} plans, {body.executer} executes ({body.transport})"
            )
        case LegOpened(leg=hop):
            expected = " or ".join(hop.expected)
            return EventView(
                f"waiting for {expected} from {hop.expected_from}, round {hop.round}",
                bar=BarStart(_HOP_BAR, hop.expected_from, expected, hop.round, ends_open="plain"),
            )
        case MessageHeard():
            return EventView(
                _message_text(body),
                bar=BarEnd(_HOP_BAR, "good" if body.routed_to else "bad", body.message.type),
            )
        case BlockIgnored():
            return EventView(f"from {body.sender}: {body.why}: {body.shown}")
        case SideNudged():
            return EventView(f"{body.side}: {body.why}")
        case KeyboardTaken():
            return EventView(
                f"of {body.side} by {escaped_line(body.by)}; Podium types nothing there until it is returned"
            )
        case KeyboardReturned():
            why = f"; {escaped_line(body.why)}" if body.why else ""
            return EventView(f"of {body.side} by {escaped_line(body.by)}{why}")
    return EventView("")


def _message_text(body: MessageHeard) -> str:
    why = f" ({body.why})" if body.why else ""
    how = f" to {body.routed_to}" if body.routed_to else f", not passed on{why}"
    return f"{body.message.type} from {body.sender}{how}: {first_line(body.message)}"


def first_line(message: MessageBlock) -> str:
    return message.body.strip().partition("\n")[0]

"""A task of a duet as a ladder: what went from whom to whom, rung by rung."""

from __future__ import annotations

from podium.domain import events as e
from podium.domain.messages import Address
from podium.domain.model import Moment, Noun
from podium.ports import EventQuery, Store, View

_TYPES = (
    "message_heard", "block_ignored", "side_nudged", "keyboard_taken", "keyboard_returned", "run_needed_human",
    "run_failed", "run_cancelled", "run_retried",
)  # fmt: skip
_MOST_EVENTS = 10_000


class Rung(Noun):
    """One thing that happened between them."""

    at: Moment
    sender: Address
    to: Address | None = None
    """None: it went nowhere."""
    type: str = ""
    """Of a message; empty for all else."""
    body: str = ""
    """The message, whole."""
    told: e.AnyEvent
    """What happened, for whoever has words for it."""


async def see_ladder(store: Store, run_id: str, most: int) -> list[Rung]:
    """The last rungs of a task, oldest first."""

    def look(view: View) -> list[Rung]:
        query = EventQuery(run_id=run_id, types=_TYPES, limit=_MOST_EVENTS)
        return [_rung(event) for event in view.events(query)][-most:]

    return await store.read(look)


def _rung(event: e.Event) -> Rung:
    body = event.body
    match body:
        case e.MessageHeard(sender=sender, routed_to=to, message=message):
            return Rung(
                at=event.at,
                sender=sender,
                to=to,
                type=message.type,
                body=message.body,
                told=body,
            )
        case e.SideNudged(side=side):
            return Rung(at=event.at, sender="USER", to=side, told=body)
        case (
            e.BlockIgnored(sender=side) | e.KeyboardTaken(side=side) | e.KeyboardReturned(side=side)
        ):
            return Rung(at=event.at, sender=side, told=body)
    return Rung(at=event.at, sender="USER", told=body)

"""Work orders on their way, for any door: what lies in the inbox, who has what, and what was answered."""

from __future__ import annotations

from typing import TYPE_CHECKING

from podium.domain.errors import UnknownId
from podium.domain.model import Noun
from podium.domain.orders import ORDER_ID, Ack, Claim
from podium.wiring.ordering import inbox_of
from podium.wiring.sensing import sense_options

if TYPE_CHECKING:
    from podium.wiring.podium import Podium


class OrdersSeen(Noun):
    """The inbox at one moment."""

    waiting: tuple[str, ...] = ()
    """Names of files that nobody has claimed, oldest first."""
    passed_over: tuple[str, ...] = ()
    """Files that are left where they are, and why."""
    claimed: tuple[Claim, ...] = ()


def see_orders(podium: Podium) -> OrdersSeen:
    """What is on its way. Looks at folders, so it may block."""
    inbox = inbox_of(podium, sense_options(podium))
    waiting = tuple(inbox.waiting())
    return OrdersSeen(
        waiting=waiting, passed_over=tuple(inbox.passed_over), claimed=tuple(inbox.claims())
    )


def see_answer(podium: Podium, wo_id: str) -> Ack:
    """What was answered to an order. Raises `UnknownId` where nothing was. May block."""
    named = ORDER_ID.fullmatch(wo_id) is not None
    found = inbox_of(podium, sense_options(podium)).answered(wo_id) if named else None
    if found is None:
        raise UnknownId("work order", wo_id)
    return found

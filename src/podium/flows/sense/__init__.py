"""Sense: a loop that reads a system's state, plans, and lets work orders go as far as the gate lets them."""

from typing import TYPE_CHECKING

from podium.platform.lazy_exports import export_lazily

if TYPE_CHECKING:
    from podium.flows.sense.candidates import candidate
    from podium.flows.sense.kit import (
        CANDIDATE,
        ORDERS,
        SENSE,
        WORK_ORDER,
        WORKER,
        CandidateJob,
        CandidateKit,
        PlannerKit,
        SenseJob,
        SenseKit,
        Weight,
        WorkerKit,
    )
    from podium.flows.sense.options import SenseOptions
    from podium.flows.sense.standings import standing_of
    from podium.flows.sense.story import sense
    from podium.flows.sense.tending import InboxTender
    from podium.flows.sense.tick import House, TickKit, begin_tick, loop, take_in, tick
    from podium.flows.sense.working import work_order

__all__ = [
    "CANDIDATE",
    "ORDERS",
    "SENSE",
    "WORKER",
    "WORK_ORDER",
    "CandidateJob",
    "CandidateKit",
    "House",
    "InboxTender",
    "PlannerKit",
    "SenseJob",
    "SenseKit",
    "SenseOptions",
    "TickKit",
    "Weight",
    "WorkerKit",
    "begin_tick",
    "candidate",
    "loop",
    "sense",
    "standing_of",
    "take_in",
    "tick",
    "work_order",
]

export_lazily(
    __name__,
    {
        "candidate": "candidates",
        "CANDIDATE": "kit",
        "ORDERS": "kit",
        "SENSE": "kit",
        "WORK_ORDER": "kit",
        "WORKER": "kit",
        "CandidateJob": "kit",
        "CandidateKit": "kit",
        "PlannerKit": "kit",
        "SenseJob": "kit",
        "SenseKit": "kit",
        "Weight": "kit",
        "WorkerKit": "kit",
        "SenseOptions": "options",
        "standing_of": "standings",
        "sense": "story",
        "InboxTender": "tending",
        "House": "tick",
        "TickKit": "tick",
        "begin_tick": "tick",
        "loop": "tick",
        "take_in": "tick",
        "tick": "tick",
        "work_order": "working",
    },
)

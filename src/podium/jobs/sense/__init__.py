"""Sense: a loop that reads a system's state, plans, and lets work orders go as far as the gate lets them."""

from typing import TYPE_CHECKING

from podium.platform.lazy_exports import export_lazily

if TYPE_CHECKING:
    from podium.jobs.sense.candidate_status import status_of
    from podium.jobs.sense.deps import (
        WORKER,
        CandidateDeps,
        CandidateJob,
        PlannerDeps,
        SenseDeps,
        SenseJob,
        Weight,
        WorkerDeps,
    )
    from podium.jobs.sense.flow import candidate, sense
    from podium.jobs.sense.job import CANDIDATE, SENSE, WORK_ORDER
    from podium.jobs.sense.options import ORDERS, SenseOptions
    from podium.jobs.sense.orders.flow import work_order
    from podium.jobs.sense.orders.inbox_tender import InboxTender
    from podium.jobs.sense.tick import RunServices, TickDeps, begin_tick, loop, take_in, tick

__all__ = [
    "CANDIDATE",
    "ORDERS",
    "SENSE",
    "WORKER",
    "WORK_ORDER",
    "CandidateDeps",
    "CandidateJob",
    "InboxTender",
    "PlannerDeps",
    "RunServices",
    "SenseDeps",
    "SenseJob",
    "SenseOptions",
    "TickDeps",
    "Weight",
    "WorkerDeps",
    "begin_tick",
    "candidate",
    "loop",
    "sense",
    "status_of",
    "take_in",
    "tick",
    "work_order",
]

export_lazily(
    __name__,
    {
        "candidate": "flow",
        "CANDIDATE": "job",
        "ORDERS": "options",
        "SENSE": "job",
        "WORK_ORDER": "job",
        "WORKER": "deps",
        "CandidateJob": "deps",
        "CandidateDeps": "deps",
        "PlannerDeps": "deps",
        "SenseJob": "deps",
        "SenseDeps": "deps",
        "Weight": "deps",
        "WorkerDeps": "deps",
        "SenseOptions": "options",
        "status_of": "candidate_status",
        "sense": "flow",
        "InboxTender": "orders.inbox_tender",
        "RunServices": "tick",
        "TickDeps": "tick",
        "begin_tick": "tick",
        "loop": "tick",
        "take_in": "tick",
        "tick": "tick",
        "work_order": "orders.flow",
    },
)

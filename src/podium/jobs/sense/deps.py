"""Dependencies, inputs and names of the sense loop's three flows."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from podium.core.decisions import Tier
from podium.core.model import FrozenModel, Json, NonEmpty
from podium.jobs.sense.models import Bundle, Sensed
from podium.jobs.sense.options import Profile, SenseOptions
from podium.jobs.sense.orders.work_order import Operation, WorkOrder

if TYPE_CHECKING:
    from podium.agents.budget_tracker import BudgetTracker
    from podium.agents.turn_step import RoleAgent
    from podium.jobs.sense.ports import OrderInbox
    from podium.jobs.sense.trust import EarnedTrustBook
    from podium.ports import Clock, Ids, Store, StoreView, Toolbox


WORKER = "worker"
"""The role in which an order's operations are performed."""
WRITER = "order_writer"
"""The role of the agent that writes operations from an order's text."""
TEXT_ZONE = "words"
"""Zone of an order that has only text and no operations yet."""


def recorded_without(view: StoreView, run_id: str, step: str, *, before: str) -> bool:
    """True if the run was recorded by an earlier version whose flow had no `step` in front of the step `before`.

    A step that is new must come after all recorded ones: such a run goes on without it.
    """
    return view.step(run_id, step) is None and view.step(run_id, before) is not None


class SenseJob(FrozenModel):
    """Input of a run that plans."""

    bundle: Bundle
    tick: int
    manual: bool = False


class CandidateJob(FrozenModel):
    """Input of a run that sees one candidate through."""

    wo_id: NonEmpty
    order: WorkOrder
    subject: str


class Weight(FrozenModel):
    """Tier and zones of an order's operations together, computed by the gate that will judge them."""

    tier: Tier
    zones: tuple[str, ...] = ()
    refused: str = ""
    """Reason why it could never be done. Empty: it could."""
    refused_op: int = 0
    """Number of the operation that could not, from 1; 0 where it is none alone."""


RulePlanner = Callable[[Bundle, datetime], Json]
"""Gives a plan document without a model."""
Weigh = Callable[[WorkOrder], Weight]


@dataclass(frozen=True)
class PlannerDeps:
    """The planner: rules, an agent, or none."""

    name: str
    rules: RulePlanner | None = None
    role_agent: RoleAgent | None = None
    profile: Profile | None = None
    workspace: str = ""
    """Folder the agent is started in; nothing is there."""
    absent: str = ""
    """Reason why no planner can be asked. Empty: there is one."""


@dataclass(frozen=True)
class SenseDeps:
    """Dependencies of planning."""

    store: Store
    clock: Clock
    budget: BudgetTracker
    options: SenseOptions
    planner: PlannerDeps


@dataclass(frozen=True)
class CandidateDeps:
    """Dependencies of the flow that takes a candidate from approval to its result."""

    store: Store
    clock: Clock
    options: SenseOptions
    weigh: Weigh
    toolbox_for: Callable[[WorkOrder, Weight], Awaitable[Toolbox]]
    """The two tools of the loop behind a gate that knows what autonomy was granted."""
    order_text: Callable[[WorkOrder], str]
    """The order as the YAML that goes into the inbox."""
    trust: EarnedTrustBook
    writer: RoleAgent | None
    show: Callable[[str], Sensed]
    """A text file of the root as the writer may see it, or why it may not. May block."""
    budget: BudgetTracker
    workspace: str


@dataclass(frozen=True)
class WorkerDeps:
    """Dependencies of performing an order."""

    store: Store
    clock: Clock
    ids: Ids
    options: SenseOptions
    inbox: OrderInbox
    toolbox: Toolbox
    weigh: Weigh
    order_text: Callable[[WorkOrder], str]
    trust: EarnedTrustBook
    approval_seconds: float
    writer: RoleAgent | None
    show: Callable[[str], Sensed]
    """A text file of the root as the writer may see it, or why it may not. May block."""
    budget: BudgetTracker
    workspace: str


class OpsReply(FrozenModel):
    """Operations for the worker, or the reason why there are none."""

    ops: tuple[Operation, ...]
    cannot: str = ""
    """The missing information, in words for a person. Empty where there are operations."""

"""Dependencies, inputs and names of the sense loop's three flows."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import datetime

from podium.agents.budget_tracker import BudgetTracker
from podium.agents.turn_step import RoleAgent
from podium.core.decisions import Tier
from podium.core.model import FrozenModel, Json, NonEmpty
from podium.jobs.sense.models import Bundle, Sensed
from podium.jobs.sense.options import Profile, SenseOptions
from podium.jobs.sense.orders.work_order import Operation, WorkOrder
from podium.jobs.sense.ports import Inbox, TrustBook
from podium.jobs.sense.trust import Standing
from podium.ports import Clock, Ids, Store, StoreView, Toolbox

CANDIDATE = "candidate"
"""The flow that sees one candidate through."""
WORK_ORDER = "work_order"
"""The flow that performs one order of the inbox."""
WORKER = "worker"
"""The role in which an order's operations are performed."""
WRITER = "order_writer"
"""The role of the agent that makes operations of words."""


def recorded_without(view: StoreView, run_id: str, step: str, *, before: str) -> bool:
    """Whether an earlier version, whose flow did not have `step`, has recorded the step `before` which it comes.

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
    """What an order's operations add up to, by the gate that will judge them."""

    tier: Tier
    zones: tuple[str, ...] = ()
    refused: str = ""
    """Why it could never be done. Empty: it could."""
    refused_op: int = 0
    """Number of the operation that could not, from 1; 0 where it is none alone."""


RulePlanner = Callable[[Bundle, datetime], Json]
"""Gives a plan document without a model."""
Weigh = Callable[[WorkOrder], Weight]


@dataclass(frozen=True)
class PlannerKit:
    """Who plans. Either rules, or an agent, or nobody."""

    name: str
    rules: RulePlanner | None = None
    player: RoleAgent | None = None
    profile: Profile | None = None
    desk: str = ""
    """Folder the agent is started in; nothing is there."""
    absent: str = ""
    """Why there is nobody to ask. Empty: there is."""


@dataclass(frozen=True)
class SenseKit:
    """What planning works with."""

    store: Store
    clock: Clock
    purse: BudgetTracker
    options: SenseOptions
    planner: PlannerKit


@dataclass(frozen=True)
class CandidateKit:
    """What seeing a candidate through works with."""

    store: Store
    clock: Clock
    options: SenseOptions
    weigh: Weigh
    toolbox_for: Callable[[WorkOrder, Weight], Awaitable[Toolbox]]
    """The two tools of the loop behind a gate that knows what autonomy was granted."""
    order_text: Callable[[WorkOrder], str]
    """The order as the YAML that goes into the inbox."""
    standings: Callable[[], Sequence[Standing]]
    trust: TrustBook
    writer: RoleAgent | None
    show: Callable[[str], Sensed]
    """A text file of the root as the writer may see it, or why it may not. May block."""
    purse: BudgetTracker
    desk: str


@dataclass(frozen=True)
class WorkerKit:
    """What performing an order works with."""

    store: Store
    clock: Clock
    ids: Ids
    options: SenseOptions
    inbox: Inbox
    toolbox: Toolbox
    weigh: Weigh
    order_text: Callable[[WorkOrder], str]
    trust: TrustBook
    approval_seconds: float
    writer: RoleAgent | None
    show: Callable[[str], Sensed]
    """A text file of the root as the writer may see it, or why it may not. May block."""
    purse: BudgetTracker
    desk: str


class OpsReply(FrozenModel):
    """Operations for the worker, or the reason why there are none."""

    ops: tuple[Operation, ...]
    cannot: str = ""
    """What is missing to be exact, in words for a person. Empty where there are operations."""

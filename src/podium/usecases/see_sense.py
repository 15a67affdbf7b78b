"""How the sense loop of a root stands: its last ticks, its plan, what idling saved, what it has earned."""

from __future__ import annotations

from datetime import datetime, timedelta

from podium.domain.gating import Approval, Tier
from podium.domain.model import Noun
from podium.domain.orders import WorkOrder
from podium.domain.sensing import PlannerStatus, SenseMemory, TickOutcome, no_plan
from podium.domain.terms import Mode
from podium.domain.trust import Standing
from podium.usecases.list_candidates import CandidateSeen


class CandidateCard(Noun):
    """A candidate with the order it would deliver, as somebody is asked about it."""

    seen: CandidateSeen
    order: WorkOrder | None = None
    """None: what is asked about cannot be read as an order any more."""
    text: str = ""
    """The order itself, byte for byte what a yes is bound to."""
    asked: Approval | None = None
    """The question that waits for somebody."""


class SenseSeen(Noun):
    """All of it at one moment."""

    at: datetime
    mode: Mode
    planner: str
    every_seconds: float
    promote_after: int
    memory: SenseMemory = SenseMemory()
    ticks: tuple[TickOutcome, ...] = ()
    """Newest first."""
    trust: tuple[Standing, ...] = ()
    faults: tuple[str, ...] = ()
    """What could not be read of it, in words."""
    candidates: tuple[CandidateCard, ...] = ()

    @property
    def last(self) -> TickOutcome | None:
        return self.ticks[0] if self.ticks else None

    @property
    def last_plan(self) -> TickOutcome | None:
        """The last tick that had a plan, with how that differs from the one before."""
        return next((each for each in self.ticks if each.status is PlannerStatus.OK), None)

    @property
    def no_plan(self) -> str:
        """Why the last try to plan gave no plan; empty where it gave one."""
        return no_plan(self.memory.status, self.memory.why)

    @property
    def next_at(self) -> datetime | None:
        """When the next tick is due. None: there was none yet."""
        return self.last.at + timedelta(seconds=self.every_seconds) if self.last else None

    @property
    def is_ticking(self) -> bool:
        """Whether somebody seems to tick here: the next one is not overdue by a whole round."""
        due = self.next_at
        return due is not None and self.at < due + timedelta(seconds=self.every_seconds)

    @property
    def tokens_saved(self) -> int:
        """What idle ticks would have taken, had each been planned for as those that were."""
        planned = self.memory.ticks - self.memory.idle_ticks
        return self.memory.tokens * self.memory.idle_ticks // planned if planned > 0 else 0

    def proposal(self, standing: Standing) -> Tier | None:
        """Up to which tier a promotion is worth a person's thought. None: it is not yet."""
        earned = standing.proposes(self.promote_after)
        return max(standing.highest_agreed, Tier.T1) if earned else None

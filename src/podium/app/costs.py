"""Costs by day, flow and agent, and usage against the budgets in force."""

from __future__ import annotations

import asyncio
from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta

from podium.app.id_lookup import find_id
from podium.core.decisions import Budget, BudgetState, CountedScope, Usage, UsageSums, usage_counted
from podium.core.model import FrozenModel
from podium.core.work import RunStatus
from podium.ports import Clock, RunQuery, Store, StoreView

DAYS = 30
"""So many days are told of, today included. A day is one in UTC."""
PAGE = 5_000
"""Records that one read brings."""
MAX_FAILED = 200


class Sum(FrozenModel):
    """Cost of something within the reported days."""

    name: str
    usd: float = 0.0
    tokens: int = 0
    records: int = 0
    unknown: int = 0
    """Records whose cost nobody knows."""


class CostSummary(FrozenModel):
    """Costs of the last days."""

    days: tuple[Sum, ...]
    """Each of them, also those on which nothing was spent; the last is today."""
    flows: tuple[Sum, ...] = ()
    """The dearest first."""
    sources: tuple[Sum, ...] = ()
    """Agents and tools, the dearest first."""
    day_limit_usd: float | None = None
    run_limit_usd: float | None = None

    @property
    def today(self) -> Sum:
        return self.days[-1]

    @property
    def total(self) -> Sum:
        return _summed("all", self.days)


@dataclass
class _Tally:
    usd: float = 0.0
    tokens: int = 0
    records: int = 0
    unknown: int = 0

    def add(self, spent: UsageSums) -> None:
        self.usd += spent.usd
        self.tokens += spent.tokens
        self.records += 1
        self.unknown += not spent.complete

    def sum(self, name: str) -> Sum:
        return Sum(name=name, **vars(self))


@dataclass
class CostWatch:
    """Looks at one store. Only its first look reads the days; others read what came since."""

    store: Callable[[], Awaitable[Store]]
    _position: int = 0
    _tallies: dict[tuple[date, str, str], _Tally] = field(
        default_factory=lambda: defaultdict(_Tally)
    )
    """By day, flow and source."""
    _looking: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def look(self, now: datetime, budgets: Sequence[Budget]) -> CostSummary:
        """Sum up the costs so far, with today's limits."""
        async with self._looking:
            await self._learn(now)
        return self._summary(now.date(), budgets)

    async def _learn(self, now: datetime) -> None:
        store = await self.store()
        since = (now - timedelta(days=DAYS - 1)).replace(hour=0, minute=0, second=0, microsecond=0)
        more = True
        while more:
            page = await store.read(lambda view: view.spent(since, self._position, PAGE))
            for record in page:
                self._tallies[record.at.date(), record.flow, record.source].add(record)
                self._position = record.position
            more = len(page) == PAGE
        for key in [key for key in self._tallies if key[0] < since.date()]:
            del self._tallies[key]

    def _summary(self, today: date, budgets: Sequence[Budget]) -> CostSummary:
        rows = [(*key, tally) for key, tally in self._tallies.items()]
        by_day = _grouped((str(day), tally) for day, _, _, tally in rows)
        days = [str(today - timedelta(days=back)) for back in range(DAYS - 1, -1, -1)]
        return CostSummary(
            days=tuple(by_day.get(day) or Sum(name=day) for day in days),
            flows=_dearest(_grouped((flow, tally) for _, flow, _, tally in rows)),
            sources=_dearest(_grouped((source, tally) for _, _, source, tally in rows)),
            day_limit_usd=_limit(budgets, "day"),
            run_limit_usd=_limit(budgets, "run"),
        )


def _grouped(rows: Iterable[tuple[str, _Tally]]) -> dict[str, Sum]:
    groups: dict[str, list[Sum]] = defaultdict(list)
    for name, tally in rows:
        groups[name].append(tally.sum(name))
    return {name: _summed(name, sums) for name, sums in groups.items()}


def _summed(name: str, sums: Sequence[Sum]) -> Sum:
    return Sum(
        name=name,
        usd=sum(part.usd for part in sums),
        tokens=sum(part.tokens for part in sums),
        records=sum(part.records for part in sums),
        unknown=sum(part.unknown for part in sums),
    )


def _dearest(sums: Mapping[str, Sum]) -> tuple[Sum, ...]:
    return tuple(sorted(sums.values(), key=lambda total: (-total.usd, -total.tokens, total.name)))


def _limit(budgets: Sequence[Budget], scope: str) -> float | None:
    return min(
        (budget.usd for budget in budgets if budget.scope == scope and budget.usd), default=None
    )


class Cause(FrozenModel):
    """A kind of failure, and the runs that ended or stopped by it."""

    kind: str
    flow: str
    runs: int
    last_id: str
    """The newest of them."""
    last_at: datetime
    message: str
    """Message of the newest failure."""


async def see_causes(store: Store, *, most: int = MAX_FAILED) -> tuple[Cause, ...]:
    """Causes of the newest failed and stopped runs, the most frequent first."""
    return await store.read(lambda view: _causes(view, most))


def _causes(view: StoreView, most: int) -> tuple[Cause, ...]:
    statuses = (RunStatus.FAILED, RunStatus.NEEDS_HUMAN)
    runs = [run for run in view.runs(RunQuery(statuses=statuses, limit=most)) if run.failure]
    counts = Counter((run.failure.kind, run.flow) for run in runs if run.failure)
    newest = {(run.failure.kind, run.flow): run for run in reversed(runs) if run.failure}
    return tuple(
        Cause(
            kind=kind,
            flow=flow,
            runs=number,
            last_id=newest[kind, flow].id,
            last_at=newest[kind, flow].finished_at or newest[kind, flow].created_at,
            message=failure.message if (failure := newest[kind, flow].failure) else "",
        )
        for (kind, flow), number in counts.most_common()
    )


_BEGINNING = datetime(1970, 1, 1, tzinfo=UTC)


class BudgetUsage(FrozenModel):
    """All of one moment."""

    today: Usage
    of_run: Usage | None = None
    """None: no run was named."""
    budgets: tuple[BudgetState, ...] = ()
    """Of a call's or a step's limit nothing counts as used: they begin anew each time."""


async def see_budgets(
    store: Store, clock: Clock, budgets: Sequence[Budget], *, run: str | None = None
) -> BudgetUsage:
    """Raises `UnknownId` or `AmbiguousId` for the run."""
    now = clock.now()

    def used(view: StoreView, scope: CountedScope, run_id: str) -> Usage:
        return usage_counted(
            lambda counter: view.counted(counter, _BEGINNING), scope, run_id, "", now
        )

    def look(view: StoreView) -> BudgetUsage:
        today = used(view, "day", "")
        of_run = used(view, "run", find_id(view, "run", run)) if run else None
        spent = {"day": today, "run": of_run or Usage()}
        states = (
            BudgetState(budget=budget, used=spent.get(budget.scope, Usage())) for budget in budgets
        )
        return BudgetUsage(today=today, of_run=of_run, budgets=tuple(states))

    return await store.read(look)

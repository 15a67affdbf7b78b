"""Budgets of a run's turns: checked before each, charged after each."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime

from podium.core.decisions import Budget, Usage, counts_of, usage_counted
from podium.core.errors import BudgetSpent
from podium.core.events import UsageRecorded
from podium.core.work import Run, run_settings_of
from podium.ports import Clock, Store, StoreView, Transaction

BEGINNING = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class BudgetTracker:
    """Budgets of the turns of runs, and what they have used. Counts where the gate counts."""

    store: Store
    clock: Clock
    budgets: tuple[Budget, ...] = ()
    """Today's limits. Those that a run recorded hold beside them."""

    async def check(self, run: Run, step_key: str) -> None:
        """Raises `BudgetSpent` for the first limit of step, run or day that has nothing left.

        A limit that the run recorded is lifted when it has stopped the run: whoever resumes it
        accepts today's. Raises `StoreFull` when the disk has no room for what a turn brings.
        """
        self.store.require_space()
        spent = await self.store.read(lambda view: self._first_spent(view, run.id, step_key))
        if spent is not None:
            await self.store.write(lambda tx: self._lift_recorded(tx, run, step_key))
            raise spent

    async def spend(
        self,
        run_id: str,
        step_key: str,
        source: str,
        usage: Usage,
        also: Callable[[Transaction], None] = lambda tx: None,
    ) -> None:
        """Count what was used and record it, in one transaction with what `also` writes."""

        def count(tx: Transaction) -> None:
            now = self.clock.now()
            for counter, amount in counts_of(usage, run_id, step_key, now):
                tx.count(counter, now, amount)
            tx.append(run_id, UsageRecorded(source=source, usage=usage, step=step_key))
            also(tx)

        await self.store.write(count)

    def _first_spent(self, view: StoreView, run_id: str, step_key: str) -> BudgetSpent | None:
        recorded = run_settings_of(view.run(run_id)).budgets
        errors = (
            self._spent(view, budget, run_id, step_key) for budget in (*self.budgets, *recorded)
        )
        return next((spent for spent in errors if spent is not None), None)

    def _spent(
        self, view: StoreView, budget: Budget, run_id: str, step_key: str
    ) -> BudgetSpent | None:
        if budget.scope == "call":
            return None  # a turn is no call
        used = usage_counted(
            lambda counter: view.counted(counter, BEGINNING),
            budget.scope,
            run_id,
            step_key,
            self.clock.now(),
        )
        for measure, limit, amount in _limits(budget, used):
            if amount >= limit:
                return _budget_error(run_id, budget.scope, measure, amount, limit)
        return None

    def _lift_recorded(self, tx: Transaction, run: Run, step_key: str) -> None:
        tx.guard(run.id, run.fence)
        stored = tx.run(run.id)
        recorded = run_settings_of(stored).budgets
        remaining = [
            budget for budget in recorded if self._spent(tx, budget, run.id, step_key) is None
        ]
        if stored is not None and len(remaining) < len(recorded):
            budgets = [budget.model_dump(mode="json") for budget in remaining]
            settings = {**stored.settings, "budgets": budgets}
            tx.save_run(stored.model_copy(update={"settings": settings}))


def _limits(budget: Budget, used: Usage) -> Iterator[tuple[str, float, float]]:
    """Measure, limit and what was used of it, for each limit there is."""
    figures = (
        ("usd", budget.usd, used.usd),
        ("tokens", budget.tokens, used.input_tokens + used.output_tokens),
        ("turns", budget.turns, used.turns),
        ("seconds", budget.seconds, used.seconds),
    )
    for measure, limit, amount in figures:
        if limit is not None:
            yield measure, limit, amount


def _plain(amount: float) -> str:
    """A number without an exponent: 10000000, 0.25."""
    return f"{amount:.0f}" if amount == int(amount) else f"{amount:g}"


def _budget_error(run_id: str, scope: str, measure: str, used: float, limit: float) -> BudgetSpent:
    return BudgetSpent(
        f"the {scope}'s budget is spent: {_plain(used)} of {_plain(limit)} {measure} are used; raise "
        f"`budgets: {scope}: {measure}:` in your own settings (a project's settings can only lower "
        f"it), then continue with `podium resume {run_id}`",
        scope=scope,
        measure=measure,
        used=used,
        limit=limit,
    )

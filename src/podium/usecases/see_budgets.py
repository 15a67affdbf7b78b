"""What was used today, and by one run, against the limits in force."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from podium.domain.gating import Budget, BudgetState, Usage
from podium.domain.model import Noun
from podium.domain.spending import CountedScope, usage_counted
from podium.ports import Clock, Store, View
from podium.usecases.find_id import find_id

_BEGINNING = datetime(1970, 1, 1, tzinfo=UTC)


class BudgetsSeen(Noun):
    """All of one moment."""

    today: Usage
    of_run: Usage | None = None
    """None: no run was named."""
    budgets: tuple[BudgetState, ...] = ()
    """Of a call's or a step's limit nothing counts as used: they begin anew each time."""


async def see_budgets(
    store: Store, clock: Clock, budgets: Sequence[Budget], *, run: str | None = None
) -> BudgetsSeen:
    """Raises `UnknownId` or `AmbiguousId` for the run."""
    now = clock.now()

    def used(view: View, scope: CountedScope, run_id: str) -> Usage:
        return usage_counted(
            lambda counter: view.counted(counter, _BEGINNING), scope, run_id, "", now
        )

    def look(view: View) -> BudgetsSeen:
        today = used(view, "day", "")
        of_run = used(view, "run", find_id(view, "run", run)) if run else None
        spent = {"day": today, "run": of_run or Usage()}
        states = (BudgetState(budget=each, used=spent.get(each.scope, Usage())) for each in budgets)
        return BudgetsSeen(today=today, of_run=of_run, budgets=tuple(states))

    return await store.read(look)

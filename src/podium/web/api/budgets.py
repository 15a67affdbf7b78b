"""`/api/v1/budgets`: what was used against what may be."""

from __future__ import annotations

from fastapi import APIRouter

from podium.app.costs import see_budgets
from podium.core.decisions import BudgetState, Usage
from podium.core.model import FrozenModel
from podium.web.access.authentication import Viewer
from podium.web.api.requests import NameAsked
from podium.web.context import CurrentContext

router = APIRouter(tags=["budgets"])


class BudgetOverview(FrozenModel):
    today: Usage
    """Usage of all runs today, a day in UTC."""
    run: Usage | None
    """Usage of the named run. None: no run was named."""
    budgets: tuple[BudgetState, ...]
    """The limits and their usage; a scope that was not named has none."""


@router.get("/budgets")
async def show_budgets(
    context: CurrentContext, person: Viewer, run: NameAsked = ""
) -> BudgetOverview:
    """Show today's usage, and a run's, against the limits in force."""
    tracker = await context.podium.budget_tracker()
    overview = await see_budgets(
        tracker.store, context.podium.clock, tracker.budgets, run=run or None
    )
    return BudgetOverview(today=overview.today, run=overview.of_run, budgets=overview.budgets)

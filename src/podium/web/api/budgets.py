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


class BudgetsShown(FrozenModel):
    today: Usage
    """What all runs used today, a day in UTC."""
    run: Usage | None
    """What the run that was named used. None: none was."""
    budgets: tuple[BudgetState, ...]
    """The limits, and what was used of each; of a scope that nothing was named for, nothing."""


@router.get("/budgets")
async def show_budgets(
    context: CurrentContext, person: Viewer, run: NameAsked = ""
) -> BudgetsShown:
    """Today's use, and a run's, against the limits in force."""
    purse = await context.podium.budget_tracker()
    seen = await see_budgets(purse.store, context.podium.clock, purse.budgets, run=run or None)
    return BudgetsShown(today=seen.today, run=seen.of_run, budgets=seen.budgets)

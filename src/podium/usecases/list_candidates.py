"""The work orders that the sense loop proposes, and where each stands."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from functools import partial
from itertools import islice

from podium.domain.gating import ApprovalStatus
from podium.domain.model import Noun
from podium.domain.sensing import CandidateStanding
from podium.domain.work import Run
from podium.ports import Clock, Store, View
from podium.usecases.find_candidate import candidate_runs, find_candidate, wo_id_of
from podium.usecases.list_approvals import list_approvals

MOST = 200

StandingOf = Callable[[View, Run], CandidateStanding | None]
"""Where a candidate stands, by its run; None while it goes on by itself."""


class CandidateSeen(Noun):
    """A candidate, with what its run knows of it."""

    standing: CandidateStanding
    going_on: bool = False
    """It was answered or has just begun: whoever serves the loop's queue sees it through."""
    since: datetime
    open: bool
    """Something is still to become of it."""
    asked: ApprovalStatus | None = None

    @property
    def state(self) -> str:
        return "queued" if self.going_on else self.standing.state


async def list_candidates(
    store: Store, clock: Clock, stands: StandingOf, *, ended: bool = False, limit: int = MOST
) -> list[CandidateSeen]:
    """Newest first: those of which something is still to become, or with `ended` all."""
    await list_approvals(store, clock)  # marks those whose deadline has passed
    return await store.read(partial(_listed, stands, ended, limit))


async def show_candidate(
    store: Store, clock: Clock, stands: StandingOf, text: str
) -> tuple[CandidateSeen, Run]:
    """The one that was meant, by id of its work order, run or approval."""
    await list_approvals(store, clock)

    def look(view: View) -> tuple[CandidateSeen, Run]:
        run = find_candidate(view, text)
        return _seen(view, stands, run), run

    return await store.read(look)


def _listed(stands: StandingOf, ended: bool, limit: int, view: View) -> list[CandidateSeen]:
    wanted = (run for run in candidate_runs(view) if ended or not run.status.ended)
    return [_seen(view, stands, run) for run in islice(wanted, limit)]


def _seen(view: View, stands: StandingOf, run: Run) -> CandidateSeen:
    found = stands(view, run)
    asked = view.approvals(run_id=run.id, limit=1)
    return CandidateSeen(
        standing=found or _on_its_way(run, asked[0].id if asked else ""),
        going_on=found is None,
        since=run.created_at,
        open=not run.status.ended,
        asked=asked[0].status if asked else None,
    )


def _on_its_way(run: Run, approval_id: str) -> CandidateStanding:
    order = run.input["order"]
    return CandidateStanding(
        wo_id=wo_id_of(run),
        state="waiting",
        run_id=run.id,
        approval_id=approval_id,
        title=order.get("title", ""),
        target=order.get("target", ""),
    )

"""The work orders that the sense loop proposes, and where each stands."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from datetime import datetime
from functools import partial
from itertools import islice

from podium.domain.gating import Approval, ApprovalStatus
from podium.domain.model import Json, Noun
from podium.domain.orders import Ack
from podium.domain.sensing import CandidateStanding
from podium.domain.work import Run
from podium.ports import Clock, Store, View
from podium.usecases.find_candidate import candidate_runs, find_candidate, wo_id_of
from podium.usecases.list_approvals import list_approvals

MOST = 200

StandingOf = Callable[[View, Run], CandidateStanding | None]
"""Where a candidate stands, by its run; None while it goes on by itself."""
Answered = Callable[[str], Ack | None]
"""What a worker said of an order, by its id. May block."""

PERFORMED = ("delivered", "approved", "waiting")
"""States after which a worker may have had the order: also what waits may have been moved by hand."""


class CandidateSeen(Noun):
    """A candidate, with what its run knows of it."""

    standing: CandidateStanding
    going_on: bool = False
    """It was answered or has just begun: whoever serves the loop's queue sees it through."""
    since: datetime
    open: bool
    """Something is still to become of it."""
    asked: ApprovalStatus | None = None
    ack: Ack | None = None
    """How the worker ended it."""

    @property
    def state(self) -> str:
        if self.ack is not None:
            return self.ack.status
        return "queued" if self.going_on else self.standing.state


def answer_to(standing: CandidateStanding, answered: Answered) -> Ack | None:
    """What the worker said of a candidate that came that far."""
    return answered(standing.wo_id) if standing.state in PERFORMED else None


async def list_candidates(
    store: Store,
    clock: Clock,
    stands: StandingOf,
    *,
    answered: Answered = lambda _: None,
    ended: bool = False,
    limit: int = MOST,
) -> list[CandidateSeen]:
    """Newest first: those of which something is still to become, or with `ended` all."""
    await list_approvals(store, clock)  # marks those whose deadline has passed
    found = await store.read(partial(_listed, stands, ended, limit))
    return await asyncio.to_thread(lambda: [_with_its_end(each, answered) for each in found])


async def show_candidate(
    store: Store,
    clock: Clock,
    stands: StandingOf,
    text: str,
    *,
    answered: Answered = lambda _: None,
) -> tuple[CandidateSeen, Run]:
    """The one that was meant, by id of its work order, run or approval."""
    await list_approvals(store, clock)

    def look(view: View) -> tuple[CandidateSeen, Run]:
        run = find_candidate(view, text)
        return _seen(view, stands, run), run

    seen, run = await store.read(look)
    return await asyncio.to_thread(_with_its_end, seen, answered), run


def _with_its_end(seen: CandidateSeen, answered: Answered) -> CandidateSeen:
    ack = answer_to(seen.standing, answered)
    # An answer from before it was proposed is that of another order with its name.
    if ack is None or ack.finished_at < seen.since:
        return seen
    return seen.model_copy(update={"ack": ack})


def _listed(stands: StandingOf, ended: bool, limit: int, view: View) -> list[CandidateSeen]:
    wanted = (run for run in candidate_runs(view) if ended or not run.status.ended)
    return [_seen(view, stands, run) for run in islice(wanted, limit)]


def _seen(view: View, stands: StandingOf, run: Run) -> CandidateSeen:
    found = stands(view, run)
    asked = view.approvals(run_id=run.id, limit=1)
    return CandidateSeen(
        standing=found or _on_its_way(run, asked[0] if asked else None),
        going_on=found is None,
        since=run.created_at,
        open=not run.status.ended,
        asked=asked[0].status if asked else None,
    )


def _on_its_way(run: Run, asked: Approval | None) -> CandidateStanding:
    order = run.input["order"]
    weighed: Mapping[str, Json] = asked.arguments if asked else {}
    return CandidateStanding(
        wo_id=wo_id_of(run),
        state="waiting",
        run_id=run.id,
        approval_id=asked.id if asked else "",
        title=order.get("title", ""),
        target=order.get("target", ""),
        tier=weighed.get("tier", ""),
        zones=tuple(weighed.get("zones", ())),
    )

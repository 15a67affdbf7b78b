"""Candidates for any interface: list with status, and the one approval that sees them delivered."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from contextlib import aclosing, suppress
from datetime import datetime
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING

from podium.app.approvals import approve, list_approvals
from podium.core.approvals import Approver
from podium.core.decisions import Approval, ApprovalStatus
from podium.core.errors import CallRefused, LockHeld, NotPossibleNow, PodiumError
from podium.core.model import FrozenModel, Json
from podium.core.work import Run
from podium.jobs.sense import status_of
from podium.jobs.sense.candidate_lookup import candidate_runs, find_candidate, wo_id_of
from podium.jobs.sense.composition import candidate_mode, inbox_of, sense_options
from podium.jobs.sense.models import CandidateStatus
from podium.jobs.sense.orders.work_order import Ack
from podium.ports import Clock, Engine, Ids, Store, StoreView

if TYPE_CHECKING:
    from podium.app.app import Podium


MAX_COUNT = 200

StatusOf = Callable[[StoreView, Run], CandidateStatus | None]
"""Reads a candidate's status from its run; None while it continues by itself."""
Answered = Callable[[str], Ack | None]
"""Reads a worker's answer to an order, by its id. May block."""

PERFORMED = ("delivered", "approved", "waiting")
"""States after which a worker may have had the order: also what waits may have been moved by hand."""


class CandidateView(FrozenModel):
    """Candidate with the state of its run."""

    standing: CandidateStatus
    going_on: bool = False
    """It was answered or has just begun: whoever serves the loop's queue sees it through."""
    since: datetime
    open: bool
    """Something is still to become of it."""
    asked: ApprovalStatus | None = None
    ack: Ack | None = None
    """The worker's answer."""

    @property
    def state(self) -> str:
        if self.ack is not None:
            return self.ack.status
        return "queued" if self.going_on else self.standing.state


def answer_to(status: CandidateStatus, answered: Answered) -> Ack | None:
    """Return the worker's answer to a candidate that came far enough to have one."""
    return answered(status.wo_id) if status.state in PERFORMED else None


async def list_candidates(
    store: Store,
    clock: Clock,
    status_of: StatusOf,
    *,
    answered: Answered = lambda _: None,
    ended: bool = False,
    limit: int = MAX_COUNT,
) -> list[CandidateView]:
    """List the open candidates, or with `ended` all, newest first."""
    await list_approvals(store, clock)  # marks those whose deadline has passed
    views = await store.read(partial(_listed, status_of, ended, limit))
    return await asyncio.to_thread(lambda: [_with_its_end(view, answered) for view in views])


async def show_candidate(
    store: Store,
    clock: Clock,
    status_of: StatusOf,
    text: str,
    *,
    answered: Answered = lambda _: None,
) -> tuple[CandidateView, Run]:
    """Load a candidate by the id of its work order, run or approval."""
    await list_approvals(store, clock)

    def look(view: StoreView) -> tuple[CandidateView, Run]:
        run = find_candidate(view, text)
        return _view_of(view, status_of, run), run

    candidate, run = await store.read(look)
    return await asyncio.to_thread(_with_its_end, candidate, answered), run


def _with_its_end(candidate: CandidateView, answered: Answered) -> CandidateView:
    ack = answer_to(candidate.standing, answered)
    # An answer from before it was proposed is that of another order with its name.
    if ack is None or ack.finished_at < candidate.since:
        return candidate
    return candidate.model_copy(update={"ack": ack})


def _listed(status_of: StatusOf, ended: bool, limit: int, view: StoreView) -> list[CandidateView]:
    runs = (run for run in candidate_runs(view) if ended or not run.status.ended)
    return [_view_of(view, status_of, run) for run in islice(runs, limit)]


def _view_of(view: StoreView, status_of: StatusOf, run: Run) -> CandidateView:
    status = status_of(view, run)
    asked = view.approvals(run_id=run.id, limit=1)
    return CandidateView(
        standing=status or _on_its_way(run, asked[0] if asked else None),
        going_on=status is None,
        since=run.created_at,
        open=not run.status.ended,
        asked=asked[0].status if asked else None,
    )


def _on_its_way(run: Run, asked: Approval | None) -> CandidateStatus:
    order = run.input["order"]
    weighed: Mapping[str, Json] = asked.arguments if asked else {}
    return CandidateStatus(
        wo_id=wo_id_of(run),
        state="waiting",
        run_id=run.id,
        approval_id=asked.id if asked else "",
        title=order.get("title", ""),
        target=order.get("target", ""),
        tier=weighed.get("tier", ""),
        zones=tuple(weighed.get("zones", ())),
    )


async def say_yes_to_candidate(
    store: Store,
    clock: Clock,
    ids: Ids,
    text: str,
    *,
    by: Approver | str,
    groups: Mapping[str, tuple[str, ...]],
    asked: str = "",
) -> Run:
    """Approve a candidate if it waits for that, and return its run.

    With `asked` the yes is for that approval alone, whatever waits by now.
    """
    run = await store.read(partial(_meant, text))
    waiting = await store.read(partial(_pending, run.id))
    if waiting and not run.status.ended:
        await approve(store, clock, ids, asked or waiting, by=by, groups=groups)
    return run


async def deliver(store: Store, engine: Engine, run: Run, status_of: StatusOf) -> None:
    """See the run through here, or beside whoever has it, until it no longer goes on by itself.

    A quota that is used up is not waited for.
    """
    with suppress(LockHeld, NotPossibleNow):  # another process has it just now, or it has ended
        await engine.resume(run.id)
    changes = store.changes()
    async with aclosing(changes):  # type: ignore[type-var]  # stores give async generators
        async for _ in changes:
            if await store.read(partial(_is_at_rest, run.id, status_of)):
                return


def _is_at_rest(run_id: str, status_of: StatusOf, view: StoreView) -> bool:
    run = view.run(run_id)
    return run is None or status_of(view, run) is not None


def _meant(text: str, view: StoreView) -> Run:
    return find_candidate(view, text)


def _pending(run_id: str, view: StoreView) -> str:
    approvals = view.approvals(run_id=run_id, statuses=(ApprovalStatus.PENDING,), limit=1)
    return approvals[0].id if approvals else ""


class AckReader:
    """Reads the worker's answers. An answer that cannot be read counts as none."""

    def __init__(self, podium: Podium) -> None:
        self._inbox = inbox_of(podium, sense_options(podium))

    def __call__(self, wo_id: str) -> Ack | None:
        try:
            return self._inbox.answered(wo_id)
        except PodiumError:
            return None


async def load_candidates(
    podium: Podium, *, ended: bool = False, limit: int = 200
) -> list[CandidateView]:
    """List the open candidates, or with `ended` all, newest first."""
    store = await podium.store()
    return await list_candidates(
        store, podium.clock, status_of, answered=AckReader(podium), ended=ended, limit=limit
    )


async def load_candidate(podium: Podium, text: str) -> tuple[CandidateView, Run]:
    """Load a candidate by the id of its work order, run or approval."""
    store = await podium.store()
    return await show_candidate(store, podium.clock, status_of, text, answered=AckReader(podium))


async def deploy_candidate(
    podium: Podium,
    text: str,
    *,
    by: Approver | str,
    asked: str = "",
    most_seconds: float | None = None,
) -> CandidateView:
    """Say yes to a candidate and see it into the inbox.

    What was approved already is only seen through. With `asked` the yes is for that approval and no other:
    `NotPossibleNow` where something else waits by now. After `most_seconds` it is told as it stands then: the yes is
    durable, and whoever serves the queue goes on. Raises `CallRefused` where the mode delivers nothing.
    """
    store, engine = await podium.store(), await podium.hosting_engine()
    meant = await store.read(lambda view: find_candidate(view, text))
    _refuse_sensing(podium, meant)
    if asked:
        await store.read(lambda view: _refuse_another(view, meant, asked))
    run = await say_yes_to_candidate(
        store, podium.clock, podium.ids, text, by=by, groups=podium.settings.approvers, asked=asked
    )
    with suppress(TimeoutError):
        async with asyncio.timeout(most_seconds):
            await deliver(store, engine, run, status_of)
    candidate, _ = await load_candidate(podium, run.id)
    return candidate


def _refuse_another(view: StoreView, run: Run, asked: str) -> None:
    waiting = view.approvals(run_id=run.id, statuses=(ApprovalStatus.PENDING,), limit=1)
    if waiting and waiting[0].id != asked:
        raise NotPossibleNow(
            "the candidate changed after the page was loaded; reload the page and review it again"
        )


def _refuse_sensing(podium: Podium, run: Run) -> None:
    """Refuse early: in sensing mode a delivery would be refused for good."""
    if not run.status.ended and candidate_mode(podium, run) == "sensing":
        raise CallRefused(
            "mode sensing delivers nothing; set another mode in podium.yaml or GMX_ORCH_MODE, or pass --mode"
        )

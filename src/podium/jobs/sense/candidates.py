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
from podium.jobs.sense import standing_of
from podium.jobs.sense.candidate_lookup import candidate_runs, find_candidate, wo_id_of
from podium.jobs.sense.composition import candidate_mode, inbox_of, sense_options
from podium.jobs.sense.models import CandidateStanding
from podium.jobs.sense.orders.work_order import Ack
from podium.ports import Clock, Engine, Ids, Store, StoreView

if TYPE_CHECKING:
    from podium.app.app import Podium


MAX_COUNT = 200

StandingOf = Callable[[StoreView, Run], CandidateStanding | None]
"""Where a candidate stands, by its run; None while it goes on by itself."""
Answered = Callable[[str], Ack | None]
"""What a worker said of an order, by its id. May block."""

PERFORMED = ("delivered", "approved", "waiting")
"""States after which a worker may have had the order: also what waits may have been moved by hand."""


class CandidateSeen(FrozenModel):
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
    limit: int = MAX_COUNT,
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

    def look(view: StoreView) -> tuple[CandidateSeen, Run]:
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


def _listed(stands: StandingOf, ended: bool, limit: int, view: StoreView) -> list[CandidateSeen]:
    wanted = (run for run in candidate_runs(view) if ended or not run.status.ended)
    return [_seen(view, stands, run) for run in islice(wanted, limit)]


def _seen(view: StoreView, stands: StandingOf, run: Run) -> CandidateSeen:
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
    """The run of the candidate that was meant, with a yes where it waited for one.

    With `asked` the yes is for that approval alone, whatever waits by now.
    """
    run = await store.read(partial(_meant, text))
    waiting = await store.read(partial(_pending, run.id))
    if waiting and not run.status.ended:
        await approve(store, clock, ids, asked or waiting, by=by, groups=groups)
    return run


async def deliver(store: Store, engine: Engine, run: Run, stands: StandingOf) -> None:
    """See the run through here, or beside whoever has it, until it no longer goes on by itself.

    A quota that is used up is not waited for.
    """
    with suppress(LockHeld, NotPossibleNow):  # another process has it just now, or it has ended
        await engine.resume(run.id)
    changes = store.changes()
    async with aclosing(changes):  # type: ignore[type-var]  # stores give async generators
        async for _ in changes:
            if await store.read(partial(_is_at_rest, run.id, stands)):
                return


def _is_at_rest(run_id: str, stands: StandingOf, view: StoreView) -> bool:
    run = view.run(run_id)
    return run is None or stands(view, run) is not None


def _meant(text: str, view: StoreView) -> Run:
    return find_candidate(view, text)


def _pending(run_id: str, view: StoreView) -> str:
    found = view.approvals(run_id=run_id, statuses=(ApprovalStatus.PENDING,), limit=1)
    return found[0].id if found else ""


class Answers:
    """What the worker said of orders. What cannot be read is no answer."""

    def __init__(self, podium: Podium) -> None:
        self._inbox = inbox_of(podium, sense_options(podium))

    def __call__(self, wo_id: str) -> Ack | None:
        try:
            return self._inbox.answered(wo_id)
        except PodiumError:
            return None


async def candidates_seen(
    podium: Podium, *, ended: bool = False, limit: int = 200
) -> list[CandidateSeen]:
    """Newest first: those of which something is still to become, or with `ended` all."""
    store = await podium.store()
    return await list_candidates(
        store, podium.clock, standing_of, answered=Answers(podium), ended=ended, limit=limit
    )


async def candidate_seen(podium: Podium, text: str) -> tuple[CandidateSeen, Run]:
    """The one that was meant, by id of its work order, run or approval."""
    store = await podium.store()
    return await show_candidate(store, podium.clock, standing_of, text, answered=Answers(podium))


async def deploy_candidate(
    podium: Podium,
    text: str,
    *,
    by: Approver | str,
    asked: str = "",
    most_seconds: float | None = None,
) -> CandidateSeen:
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
            await deliver(store, engine, run, standing_of)
    seen, _ = await candidate_seen(podium, run.id)
    return seen


def _refuse_another(view: StoreView, run: Run, asked: str) -> None:
    waiting = view.approvals(run_id=run.id, statuses=(ApprovalStatus.PENDING,), limit=1)
    if waiting and waiting[0].id != asked:
        raise NotPossibleNow(
            "what you saw is not what would be delivered by now; load the page again and look at it anew"
        )


def _refuse_sensing(podium: Podium, run: Run) -> None:
    """In sensing a delivery is refused for good; better not to try."""
    if not run.status.ended and candidate_mode(podium, run) == "sensing":
        raise CallRefused(
            "the mode is sensing, in which nothing is delivered; it waits on until podium.yaml, GMX_ORCH_MODE or "
            "--mode says otherwise"
        )

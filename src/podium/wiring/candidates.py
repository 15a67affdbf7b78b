"""Candidates of the sense loop for any door: where they stand, and one yes that sees them delivered."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING

from podium.domain.approvals import Approver
from podium.domain.errors import CallRefused, NotPossibleNow, PodiumError
from podium.domain.gating import ApprovalStatus
from podium.domain.orders import Ack
from podium.domain.work import Run
from podium.flows.sense import standing_of
from podium.ports import View
from podium.usecases import (
    CandidateSeen,
    deliver,
    find_candidate,
    list_candidates,
    say_yes_to_candidate,
    show_candidate,
)
from podium.wiring.ordering import inbox_of
from podium.wiring.sensing import candidate_mode, sense_options

if TYPE_CHECKING:
    from podium.wiring.podium import Podium


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


def _refuse_another(view: View, run: Run, asked: str) -> None:
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

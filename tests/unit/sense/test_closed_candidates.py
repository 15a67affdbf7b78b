"""Candidates that are over: moved by hand after a dry run, of a mode that has passed, asked for no more."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path

from podium.core.work import RunStatus
from podium.jobs.sense import status_of
from podium.jobs.sense.composition import inbox_of, sense_options
from podium.jobs.sense.models import CandidateStatus, PlannerStatus, TickOutcome
from podium.jobs.sense.orders.work_order import Ack
from podium.ports import StoreView
from tests.unit.sense.sense_harness import HEALTH, REPORT, Post, Station, item, plan

INTENT = plan(item("FIX-A", REPORT))


async def only(post: Post) -> CandidateStatus:
    """The one candidate of a tick that was asked for."""
    [status] = (await post.tick(manual=True)).candidates
    return status


async def now(post: Post, run_id: str) -> CandidateStatus:
    """Return the status of a candidate."""

    def look(view: StoreView) -> CandidateStatus | None:
        run = view.run(run_id)
        return status_of(view, run) if run else None

    found = await (await post.podium.store()).read(look)
    assert found is not None
    return found


def answer(post: Post, wo_id: str, *, seconds: float = 0.0) -> None:
    """Record the worker's answer to an order that somebody moved into its inbox."""
    inbox = inbox_of(post.podium, sense_options(post.podium))
    at = post.podium.clock.now() + timedelta(seconds=seconds)
    inbox.acknowledge(Ack(wo_id=wo_id, status="done", finished_at=at))


def states(outcome: TickOutcome) -> list[tuple[str, str]]:
    return [(candidate.state, candidate.why) for candidate in outcome.candidates]


async def test_what_was_moved_by_hand_and_done_is_over_and_its_subject_is_free(
    tmp_path: Path,
) -> None:
    station = Station(tmp_path, [INTENT, INTENT], mode="dry-run")
    async with station.open() as post:
        proposed = await only(post)
        answer(post, proposed.wo_id)
        after = await post.tick(manual=True)
        run = await post.run(proposed.run_id)
        [asked] = await post.waiting_approvals()
    over, anew = after.candidates
    assert run.status is RunStatus.CANCELLED
    assert (over.wo_id, over.state) == (proposed.wo_id, "expired")
    assert over.why == "moved by hand; the worker answered: done"
    assert (anew.state, anew.run_id != proposed.run_id) == ("waiting", True)
    assert asked.run_id == anew.run_id, "nobody is asked about what is over"
    assert station.memory.pending == {anew.wo_id: anew.run_id}


async def test_an_older_answer_under_the_same_name_ends_nothing(tmp_path: Path) -> None:
    station = Station(tmp_path, [INTENT, plan()], mode="dry-run")
    async with station.open() as post:
        proposed = await only(post)
        answer(post, proposed.wo_id, seconds=-60)
        await post.tick(manual=True)
        assert (await now(post, proposed.run_id)).state == "waiting"


async def test_a_candidate_of_a_dry_run_is_proposed_anew_once_the_mode_is_higher(
    tmp_path: Path,
) -> None:
    station = Station(tmp_path, [INTENT, INTENT], mode="supervised")
    async with station.open(mode="dry-run") as post:
        proposed = await only(post)
    async with station.open() as post:
        after = await post.tick()
        idle = await post.tick()
    over, anew = after.candidates
    assert (over.wo_id, over.state) == (proposed.wo_id, "expired")
    assert "the mode is now supervised" in over.why
    assert (after.status, anew.state) == (PlannerStatus.OK, "waiting")
    assert (idle.status, idle.candidates) == (PlannerStatus.SKIPPED, ())


async def test_a_candidate_that_may_be_delivered_waits_on_whatever_the_mode_is(
    tmp_path: Path,
) -> None:
    station = Station(tmp_path, [INTENT], mode="autonomous")
    async with station.open(mode="supervised") as post:
        proposed = await only(post)
    for mode in ("autonomous", "dry-run"):
        async with station.open(mode=mode) as post:
            assert states(await post.tick()) == []
            assert (await now(post, proposed.run_id)).state == "waiting"


async def test_a_candidate_that_the_newest_plan_does_not_ask_for_says_so(tmp_path: Path) -> None:
    station = Station(tmp_path, [INTENT, plan(item("FIX-B", REPORT)), INTENT], mode="supervised")
    async with station.open() as post:
        proposed = await only(post)
        assert "newest plan" not in (await now(post, proposed.run_id)).why
        station.write(HEALTH, json.dumps({"status": "well"}))
        station.pass_time(60)
        [other] = (await post.tick()).candidates
        gone = await now(post, proposed.run_id)
        assert gone.state == "waiting"
        assert gone.why.endswith("; the newest plan no longer asks for it")
        assert "newest plan" not in (await now(post, other.run_id)).why
        station.pass_time(60)
        await post.tick(manual=True)
        assert "newest plan" not in (await now(post, proposed.run_id)).why

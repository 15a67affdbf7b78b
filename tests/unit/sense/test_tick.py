"""A tick: what it does when nothing changed, when something did, and when the last one died."""

from __future__ import annotations

import asyncio
import gc
import json
import os
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path

import pytest

from podium.core.errors import AgentLost, LockHeld, NotPossibleNow, PodiumError, ToolMissing
from podium.core.turns import Reply, Turn
from podium.jobs.sense import SENSE, RunServices, SenseDeps, SenseOptions, TickDeps, loop, tick
from podium.jobs.sense.composition import record_of, sense_options, sources_of, tick_deps
from podium.jobs.sense.models import PlannerStatus, SenseMemory, TickOutcome
from podium.jobs.sense.planning import planner
from podium.jobs.sense.planning.planner import Situation
from podium.jobs.sense.testing import FixedSource, MemorySenseRecord
from podium.ports import FlowContext
from podium.testing import FixedClock, retry_until
from tests.soaking import in_soak
from tests.unit.sense.process_death import Death
from tests.unit.sense.sense_harness import ACKS, HEALTH, REPORT, Post, Station, item, plan

NOTHING = plan()
ALERT = item("DISK", type="info", action="alert", priority="high", target="disk")


async def no_services() -> RunServices:
    raise AssertionError("an idle tick opened the services")


def idle_deps(record: MemorySenseRecord, source: FixedSource, **options: object) -> TickDeps:
    """A tick in memory that must not plan."""
    return TickDeps(
        root="/srv/x",
        mode="sensing",
        options=SenseOptions.model_validate(options),
        sources=[source],
        record=record,
        clock=FixedClock(),
        services=no_services,
        answered=lambda _: None,
    )


async def unplanned(post: Post) -> TickDeps:
    return replace(await tick_deps(post.podium, post.stack), services=no_services)


async def test_an_idle_tick_opens_no_services_and_asks_nobody(tmp_path: Path) -> None:
    station = Station(tmp_path, [NOTHING])
    async with station.open() as post:
        first = await post.tick()
        deps = await unplanned(post)
        second, third = [await tick(deps, manual=False) for _ in range(2)]
    assert (first.status, first.changed, first.tokens) == (PlannerStatus.OK, True, 111)
    assert (second.status, second.changed) == (PlannerStatus.SKIPPED, False)
    assert (second.idle_ticks, third.idle_ticks, third.tick, third.tokens) == (1, 2, 3, 111)
    assert (second.digest, second.counts) == (first.digest, first.counts)
    assert len(station.planner.turns) == 1


async def test_an_idle_tick_is_a_line_of_the_log_one_of_telemetry_and_remembered(
    tmp_path: Path,
) -> None:
    station = Station(tmp_path, [NOTHING])
    async with station.open() as post:
        await post.tick()
        lines, before = len(station.log().splitlines()), station.memory
        await tick(await unplanned(post), manual=False)
    last = station.log().splitlines()[lines:]
    assert len(last) == 1
    assert last[0].endswith(
        "SUMMARY Mode=sensing, Tick=2, health=1, acks=1, sessions=1, Candidates=0, Skipped=0, "
        "Idle_Ticks=1, Tokens=111, GMX_Call_Status=SKIPPED, WOs_Created=0, WO_IDs=[]"
    )
    assert [entry["status"] for entry in station.telemetry()] == ["OK", "SKIPPED"]
    assert station.memory == before.model_copy(update={"ticks": 2, "idle_ticks": 1})


async def test_an_idle_tick_before_any_database_makes_none(tmp_path: Path) -> None:
    record, source = MemorySenseRecord(), FixedSource("health", {"h": 1})
    seen = SenseMemory(ticks=4, marks={"health": await source.etag()}, digest="d", tokens=5)
    record.remember(seen)
    outcome = await tick(idle_deps(record, source), manual=False)
    assert (outcome.tick, outcome.status, outcome.tokens) == (5, PlannerStatus.SKIPPED, 5)
    assert source.looks == 0, "what has the same mark is not read"


async def test_a_mark_that_changed_over_the_same_content_is_read_and_not_planned_for(
    tmp_path: Path,
) -> None:
    station = Station(tmp_path, [NOTHING])
    async with station.open() as post:
        await post.tick()
        os.utime(station.root / HEALTH, (1_700_000_500, 1_700_000_500))
        outcome = await tick(await unplanned(post), manual=False)
    assert (outcome.status, outcome.changed) == (PlannerStatus.SKIPPED, False)


async def test_what_changed_is_planned_for(tmp_path: Path) -> None:
    station = Station(tmp_path, [NOTHING, plan(item("FIX-A", REPORT))])
    async with station.open() as post:
        await post.tick()
        station.write(HEALTH, json.dumps({"status": "failed: the disk is full"}))
        outcome = await post.tick()
        after = await tick(await unplanned(post), manual=False)
    assert (outcome.status, outcome.changed) == (PlannerStatus.OK, True)
    assert [candidate.title for candidate in outcome.candidates] == ["see to FIX-A"]
    assert "the disk is full" in station.planner.turns[1].prompt
    assert after.status is PlannerStatus.SKIPPED


async def test_unreadable_item_is_reported_and_not_counted(tmp_path: Path) -> None:
    sources = [
        {"name": "log", "kind": "log", "path": "logs/none.log"},
        {"name": "up", "kind": "command", "command": ["no-such-program"]},
    ]
    station = Station(tmp_path, [NOTHING], sources=sources)
    station.write(HEALTH, '{"status": ')
    station.write(f"{ACKS}/torn.ack.json", "{")
    async with station.open() as post:
        outcome = await post.tick()
    assert outcome.counts == {"health": 0, "acks": 1, "sessions": 1, "log": 0, "up": 0}
    assert len(outcome.missing) == 4


async def test_a_manual_tick_always_plans(tmp_path: Path) -> None:
    station = Station(tmp_path, [NOTHING, NOTHING])
    async with station.open() as post:
        await post.tick(manual=True)
        again = await post.tick(manual=True)
    assert (again.status, again.changed, again.idle_ticks) == (PlannerStatus.OK, False, 0)
    assert len(station.planner.turns) == 2


async def test_a_plan_is_made_anew_after_a_while_where_that_is_wished(tmp_path: Path) -> None:
    station = Station(tmp_path, [NOTHING, NOTHING], replan_seconds=600)
    async with station.open() as post:
        await post.tick()
        station.pass_time(599)
        assert (await post.tick()).status is PlannerStatus.SKIPPED
        station.pass_time(1)
        assert (await post.tick()).status is PlannerStatus.OK


async def test_what_the_loop_writes_does_not_wake_it(tmp_path: Path) -> None:
    folders = [
        {"name": "reports", "kind": "folder", "path": "g/reports/wo_candidates"},
        {"name": "logs", "kind": "folder", "path": "logs"},
        {"name": "telemetry", "kind": "folder", "path": "g/telemetry"},
    ]
    station = Station(tmp_path, [plan(item("FIX-A", REPORT))], mode="dry-run", sources=folders)
    for folder in folders:
        (station.root / folder["path"]).mkdir(parents=True, exist_ok=True)
    async with station.open() as post:
        first = await post.tick()
        assert [candidate.state for candidate in first.candidates] == ["waiting"]
        again = [await post.tick() for _ in range(3)]
    assert {entry.status for entry in again} == {PlannerStatus.SKIPPED}
    assert {entry.digest for entry in again} == {first.digest}
    assert len(station.planner.turns) == 1


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    ("trouble", "status"),
    [
        (AgentLost("it said no"), PlannerStatus.ERROR),
        (ToolMissing("gemini is not installed"), PlannerStatus.MOCK),
        (NotPossibleNow("nobody is logged in"), PlannerStatus.MOCK),
    ],
)
async def test_a_planner_that_fails_leaves_an_empty_plan_and_is_asked_again_later(
    tmp_path: Path, trouble: PodiumError, status: PlannerStatus
) -> None:
    station = Station(tmp_path, [trouble, trouble, NOTHING], every_seconds=100)
    async with station.open() as post:
        first = await post.tick()
        assert (first.status, first.candidates) == (status, ())
        assert str(trouble) in first.why
        assert json.loads(station.read(".podium/sense/plan.json"))["items"] == []
        station.pass_time(199)
        assert (await post.tick()).status is PlannerStatus.SKIPPED
        station.pass_time(1)
        assert (await post.tick()).status is status
        station.pass_time(399)
        assert (await post.tick()).status is PlannerStatus.SKIPPED
        station.pass_time(1)
        assert (await post.tick()).status is PlannerStatus.OK
        assert station.memory.failures == 0
        station.pass_time(10_000)
        assert (await post.tick()).status is PlannerStatus.SKIPPED
    assert f"planner planner: {status}: {trouble}" in station.log()


async def test_a_planner_that_was_away_for_years_is_still_asked_every_hour(tmp_path: Path) -> None:
    station = Station(tmp_path, [NOTHING, NOTHING])
    async with station.open() as post:
        await post.tick()
        record = record_of(post.podium, sense_options(post.podium))
        record.remember(station.memory.model_copy(update={"failures": 20_000}))
        station.pass_time(3_599)
        assert (await post.tick()).status is PlannerStatus.SKIPPED
        station.pass_time(1)
        assert (await post.tick()).status is PlannerStatus.OK


@pytest.mark.sample(2)
@pytest.mark.parametrize("mode", ["sensing", "dry-run", "supervised", "autonomous"])
async def test_alerts_become_notices_in_every_mode(tmp_path: Path, mode: str) -> None:
    station = Station(tmp_path, [plan(ALERT)], mode=mode)
    async with station.open() as post:
        outcome = await post.tick()
    assert outcome.notices == ("[high] disk: see to DISK: it is due",)
    assert outcome.candidates == ()
    assert "ALERT [high] disk: see to DISK: it is due" in station.log()


async def test_changes_since_the_last_plan_are_reported_with_the_reason(tmp_path: Path) -> None:
    later = plan(item("FIX-A", REPORT, priority="high"), item("FIX-C", REPORT))
    station = Station(tmp_path, [plan(item("FIX-A", REPORT), item("FIX-B", REPORT)), later])
    async with station.open() as post:
        first = await post.tick(manual=True)
        station.write("bridge/outbox/LIAM/WO-9.ack.json", '{"wo_id": "WO-9", "status": "failed"}')
        second = await post.tick()
    assert first.plan_changes[:2] == (
        "new: create_wo api/FIX-A (medium)",
        "new: create_wo api/FIX-B (medium)",
    )
    assert second.plan_changes == (
        "new: create_wo api/FIX-C (medium)",
        "gone: create_wo api/FIX-B",
        "changed: create_wo api/FIX-A is high, was medium",
        "because of acks",
    )
    assert "plan gone: create_wo api/FIX-B" in station.log()


async def test_a_plan_that_failed_is_no_change_of_plan(tmp_path: Path) -> None:
    station = Station(tmp_path, [plan(item("FIX-A", REPORT)), AgentLost("no")])
    async with station.open() as post:
        await post.tick(manual=True)
        failed = await post.tick(manual=True)
    assert failed.plan_changes == ()
    assert len(station.memory.last_plan) == 1


async def test_skipped_items_are_reported_in_the_parsers_log(tmp_path: Path) -> None:
    station = Station(tmp_path, [plan(item("FIX-A", REPORT), item("FIX-B", REPORT, type="odd"))])
    async with station.open() as post:
        outcome = await post.tick()
    [skipped] = outcome.skipped_items
    output = station.read("logs/gmx_clc_parse_plan.log")
    assert f"skipped item 1: {skipped.reason}" in output
    assert "candidate_count=1, skipped=1" in output


async def test_two_loops_do_not_tick_on_one_root(tmp_path: Path) -> None:
    station = Station(tmp_path, [NOTHING])
    async with station.open() as post:
        deps = await tick_deps(post.podium, post.stack)
        with deps.record.alone(), pytest.raises(LockHeld):
            await tick(deps, manual=True)
    assert station.planner.turns == []


async def test_candidate_answered_between_ticks_is_reported_by_the_next_one(
    tmp_path: Path,
) -> None:
    station = Station(tmp_path, [plan(item("FIX-A", REPORT))], mode="supervised")
    async with station.open() as post:
        [status] = (await post.tick()).candidates
        assert station.memory.pending == {status.wo_id: status.run_id}
        await post.say_yes(status.approval_id)
        await post.status(status.run_id)
        outcome = await post.tick()
        after = await tick(await unplanned(post), manual=False)
    assert (outcome.status, outcome.created) == (PlannerStatus.SKIPPED, (status.wo_id,))
    assert station.memory.pending == {}
    assert after.candidates == ()
    assert f"candidate {status.wo_id} delivered" in station.log()


# --- crashes -----------------------------------------------------------------------------------


PLANNING = ["afford", "situation", "plan", "held-back"]


@pytest.mark.sample(1)
@pytest.mark.parametrize("step", [*map(in_soak, PLANNING[:2]), *PLANNING[2:]])
async def test_a_tick_that_died_while_planning_is_finished_by_the_next_which_plans_no_more(
    tmp_path: Path, step: str
) -> None:
    station = Station(tmp_path, [plan(item("FIX-A", REPORT))], mode="supervised")
    death = Death(PLANNING.index(step) + 1, "recorded")
    async with station.open({SENSE: death}) as post:
        ticking = asyncio.create_task(post.tick())
        await post.dies_with(death)
        ticking.cancel()
        await asyncio.gather(ticking, return_exceptions=True)
    assert death.steps[-1] == step
    begun = station.memory.run_id
    assert begun
    async with station.open() as post:
        outcome = await post.tick()
        idle = await tick(replace(await unplanned(post), record=_forgetful(post)), manual=False)
        runs = await post.runs(SENSE)
    assert [run.id for run in runs] == [begun]
    assert (outcome.status, outcome.run_id, outcome.tokens) == (PlannerStatus.OK, begun, 111)
    assert [candidate.state for candidate in outcome.candidates] == ["waiting"]
    assert outcome.plan_changes == ("new: create_wo api/FIX-A (medium)",)
    assert len(station.planner.turns) == 1
    assert idle.status is PlannerStatus.SKIPPED
    assert station.memory.run_id == ""


def _forgetful(post: Post) -> MemorySenseRecord:
    """Return a copy of the memory without the candidates that wait: an idle tick looks after those."""
    record = MemorySenseRecord()
    record.remember(post.station.memory.model_copy(update={"pending": {}}))
    return record


async def test_a_plan_that_an_earlier_version_recorded_without_the_situation_is_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Patched because only the earlier version's code recorded no such step."""

    async def unrecorded(ctx: FlowContext, deps: SenseDeps, **more: str) -> Situation:
        return Situation(now=deps.clock.now())

    station = Station(tmp_path, [plan(item("FIX-A", REPORT))], mode="supervised")
    death = Death(2, "recorded")
    with monkeypatch.context() as patched:
        patched.setattr(planner, "situation", unrecorded)
        async with station.open({SENSE: death}) as post:
            ticking = asyncio.create_task(post.tick())
            await post.dies_with(death)
            ticking.cancel()
            await asyncio.gather(ticking, return_exceptions=True)
    assert death.steps == ["afford", "plan"]
    async with station.open() as post:
        outcome = await post.tick()
    assert (outcome.status, outcome.why) == (PlannerStatus.OK, "")
    assert [candidate.state for candidate in outcome.candidates] == ["waiting"]
    assert len(station.planner.turns) == 1


async def test_what_changed_while_the_loop_was_dead_is_planned_for_after_its_last_plan(
    tmp_path: Path,
) -> None:
    station = Station(tmp_path, [plan(item("FIX-A", REPORT)), plan(item("FIX-B", REPORT))])
    death = Death(2, "recorded")
    async with station.open({SENSE: death}) as post:
        ticking = asyncio.create_task(post.tick())
        await post.dies_with(death)
        ticking.cancel()
        await asyncio.gather(ticking, return_exceptions=True)
    station.write(HEALTH, json.dumps({"status": "failed meanwhile"}))
    async with station.open() as post:
        outcome = await post.tick()
    assert [candidate.title for candidate in outcome.candidates] == ["see to FIX-A", "see to FIX-B"]
    assert outcome.tokens == 222


async def test_a_run_that_ended_before_its_tick_could_say_so_is_not_planned_for_again(
    tmp_path: Path,
) -> None:
    station = Station(tmp_path, [NOTHING])
    async with station.open() as post:
        run_id = (await post.tick()).run_id
        record = record_of(post.podium, sense_options(post.podium))
        record.remember(SenseMemory(run_id=run_id))
        outcome = await post.tick()
    assert (outcome.status, outcome.run_id, outcome.tokens) == (PlannerStatus.OK, run_id, 111)
    assert len(station.planner.turns) == 1


async def test_a_run_that_the_record_no_longer_knows_stops_no_tick(tmp_path: Path) -> None:
    station = Station(tmp_path, [NOTHING])
    async with station.open() as post:
        record = record_of(post.podium, sense_options(post.podium))
        record.remember(SenseMemory(run_id="run_0199f3c2a7b87c3e9d1f5a6b7c8d9e10"))
        outcome = await post.tick()
    assert outcome.status is PlannerStatus.OK
    assert station.memory.run_id == ""


async def test_a_tick_that_is_cancelled_goes_on_with_the_next(tmp_path: Path) -> None:
    asked = asyncio.Event()

    async def hang(turn: Turn) -> Reply:
        asked.set()
        await asyncio.Event().wait()
        raise AssertionError("cancelled before")

    station = Station(tmp_path, [hang, NOTHING])
    async with station.open() as post:
        ticking = asyncio.create_task(post.tick())
        async with asyncio.timeout(120):
            await asked.wait()
        ticking.cancel()
        await asyncio.gather(ticking, return_exceptions=True)
    async with station.open() as post:
        outcome = await post.tick()
        [run] = await post.runs(SENSE)
    assert outcome.status is PlannerStatus.OK
    assert outcome.run_id == run.id


# --- the loop ----------------------------------------------------------------------------------


async def test_the_loop_ticks_at_its_start_and_again_until_it_is_stopped(tmp_path: Path) -> None:
    station = Station(tmp_path, [NOTHING], every_seconds=0.01)
    ended: list[TickOutcome | PodiumError] = []
    begun: list[bool] = []
    stop = asyncio.Event()

    async def begin() -> None:
        begun.append(True)

    async with station.open() as post:
        deps = await tick_deps(post.podium, post.stack)
        looping = asyncio.create_task(loop(deps, ended.append, stop, begun=begin))
        await retry_until(lambda: len(ended) >= 3)
        with pytest.raises(LockHeld):
            await post.tick()
        stop.set()
        await looping
    assert begun == [True]
    assert all(isinstance(entry, TickOutcome) for entry in ended)
    assert len(station.planner.turns) == 1


async def test_broken_tick_is_reported_and_the_next_one_comes(tmp_path: Path) -> None:
    record, source = MemorySenseRecord(), FixedSource("health", {"h": 1})
    ended: list[TickOutcome | PodiumError] = []
    stop = asyncio.Event()

    async def broken() -> RunServices:
        raise NotPossibleNow("the disk is full")

    async def begin() -> None: ...

    deps = replace(idle_deps(record, source, every_seconds=0.01), services=broken)
    looping = asyncio.create_task(loop(deps, ended.append, stop, begun=begin))
    await retry_until(lambda: len(ended) >= 2)
    stop.set()
    await looping
    assert all(isinstance(entry, NotPossibleNow) for entry in ended)
    assert "ERROR the tick failed: the disk is full" in record.lines


async def test_a_tick_that_cannot_remember_plans_nothing_unless_a_person_wished_it(
    tmp_path: Path,
) -> None:
    station = Station(tmp_path, [NOTHING, NOTHING])
    memory = station.root / ".podium/sense/memory.json"
    memory.mkdir(parents=True)
    async with station.open() as post:
        for _ in range(2):
            idle = await tick(await unplanned(post), manual=False)
            assert idle.status is PlannerStatus.SKIPPED
            assert "the state of the loop cannot be saved: .podium/sense/memory.json" in idle.why
        assert idle.why in station.log()
        assert (await post.tick(manual=True)).status is PlannerStatus.OK
        memory.rmdir()
        assert (await post.tick()).status is PlannerStatus.OK, "the change was not forgotten"
        assert (await post.tick()).status is PlannerStatus.SKIPPED


async def test_a_loop_plans_for_what_changed_once_it_can_remember_again(tmp_path: Path) -> None:
    station = Station(tmp_path, [NOTHING], every_seconds=0.01)
    memory = station.root / ".podium/sense/memory.json"
    memory.mkdir(parents=True)
    ended: list[TickOutcome | PodiumError] = []
    stop = asyncio.Event()

    async def begin() -> None: ...

    async with station.open() as post:
        deps = await tick_deps(post.podium, post.stack)
        looping = asyncio.create_task(loop(deps, ended.append, stop, begun=begin))
        await retry_until(lambda: len(ended) >= 2)
        assert not station.planner.turns
        memory.rmdir()
        await retry_until(lambda: station.planner.turns)
        planned = len(ended)
        await retry_until(lambda: len(ended) >= planned + 3)
        stop.set()
        await looping
    assert len(station.planner.turns) == 1


async def test_a_loop_whose_memory_broke_while_it_planned_does_not_plan_again(
    tmp_path: Path,
) -> None:
    memory = tmp_path / "project/.podium/sense/memory.json"

    def planned(turn: Turn) -> Reply:
        memory.unlink()
        memory.mkdir()
        return NOTHING

    station = Station(tmp_path, [planned], every_seconds=0.01)
    ended: list[TickOutcome | PodiumError] = []
    stop = asyncio.Event()

    async def begin() -> None: ...

    async with station.open() as post:
        deps = await tick_deps(post.podium, post.stack)
        looping = asyncio.create_task(loop(deps, ended.append, stop, begun=begin))
        await retry_until(lambda: len(ended) >= 4)
        stop.set()
        await looping
    assert len(station.planner.turns) == 1
    outcomes = [entry for entry in ended if isinstance(entry, TickOutcome)]
    assert [outcome.tick for outcome in outcomes[:4]] == [1, 2, 3, 4]
    assert {outcome.tokens for outcome in outcomes} == {111}


# --- many idle ticks ---------------------------------------------------------------------------


@pytest.mark.soak
async def test_a_hundred_idle_ticks_cost_no_tokens_and_no_memory(tmp_path: Path) -> None:
    await _idle(tmp_path, ticks=150)


@pytest.mark.soak
async def test_ten_thousand_idle_ticks_cost_no_tokens_and_no_memory(tmp_path: Path) -> None:
    await _idle(tmp_path, ticks=10_000)


async def _idle(folder: Path, ticks: int) -> None:
    """Real files, real sources, one process."""
    station = Station(folder, [NOTHING], log_bytes=100_000)
    async with station.open() as post, AsyncExitStack() as stack:
        await post.tick()
        options = sense_options(post.podium)
        deps = replace(
            await tick_deps(post.podium, stack),
            services=no_services,
            sources=sources_of(post.podium, options),
        )
        # What the first ones load stays.
        for _ in range(50):
            await tick(deps, manual=False)
        objects, resident = _objects(), _resident_bytes()
        for _ in range(ticks - 50):
            station.pass_time(0.3)
            outcome = await tick(deps, manual=False)
        kept, grown = _objects() - objects, _resident_bytes() - resident
    assert outcome.status is PlannerStatus.SKIPPED
    assert (outcome.idle_ticks, outcome.tokens) == (ticks, 111)
    assert len(station.planner.turns) == 1
    assert kept < 500, f"{ticks} idle ticks keep {kept} objects"
    assert grown < 10_000_000, f"{ticks} idle ticks keep {grown} bytes"


def _objects() -> int:
    gc.collect()
    return len(gc.get_objects())


def _resident_bytes() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")

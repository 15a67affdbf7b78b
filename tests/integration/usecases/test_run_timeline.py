"""The passage of a run as bars in lanes."""

from __future__ import annotations

from podium.app.run_overview import RunFilter, see_runs
from podium.app.run_timeline import (
    CHECKS,
    PERSON,
    PODIUM,
    TIME,
    WINDOW,
    log_before,
    newest_events,
    run_timeline,
)
from podium.core import events as e
from podium.core.work import Failure
from podium.jobs.pipeline.events import StageBegan, StageEnded
from tests.unit.usecases.scene import Scene


async def run_with(scene: Scene, *bodies: e.EventBody) -> str:
    run = await scene.add_run()
    for body in bodies:
        scene.clock.advance(1)
        await scene.store.write(lambda tx, body=body: tx.append(run.id, body))  # type: ignore[misc]
    return run.id


async def test_a_stage_that_was_sent_back_comes_again_in_another_round(scene: Scene) -> None:
    run_id = await run_with(
        scene,
        StageBegan(stage="develop", role="developer"),
        StageEnded(stage="develop", role="developer", verdict="DONE", agent="codex"),
        e.ChecksRan(commit="c1", passed=True, results=({"exit_code": 0},)),
        StageBegan(stage="audit", role="auditor"),
        StageEnded(stage="audit", role="auditor", verdict="FAIL"),
        StageBegan(stage="develop", role="developer", round=2),
    )
    timeline = await run_timeline(scene.store, run_id)
    assert timeline.lanes == ("developer", "auditor", CHECKS)
    seen = [(bar.label, bar.round, bar.outcome, bar.text) for bar in timeline.bars]
    assert seen == [
        ("develop", 1, "good", "DONE"),
        ("checks", 1, "good", "1 of 1 passed"),
        ("audit", 1, "bad", "FAIL"),
        ("develop", 2, "live", ""),
    ]
    assert [bar.comes_back for bar in timeline.bars] == [False, False, False, True]
    assert timeline.bars[0].agent == "codex"


async def test_what_a_killed_process_left_open_ended_badly_and_waits_go_on(scene: Scene) -> None:
    run_id = await run_with(
        scene,
        e.RunStarted(owner="w1", fence=1),
        e.StepStarted(step="ask"),
        e.AgentAsked(role="planner", agent="claude", prompt="?", step="ask"),
        e.RunWaiting(signal="approval:apr_1"),
        e.RunStarted(owner="w2", fence=2),
        e.StepStarted(step="ask"),
        e.StepCompleted(step="ask", seconds=1.0),
        e.RunFailed(failure=Failure(kind="TimedOut", message="too late")),
    )
    timeline = await run_timeline(scene.store, run_id)
    assert timeline.lanes == ("planner", PODIUM, PERSON)
    assert [(bar.lane, bar.outcome) for bar in timeline.bars] == [
        ("planner", "bad"),
        (PERSON, "bad"),
        (PODIUM, "good"),
    ]
    assert timeline.bars[0].text == "interrupted: its process is gone"
    turnings = [(turning.before, turning.label) for turning in timeline.turnings]
    assert turnings == [(2, "resumed"), (3, "failed: too late")]


async def test_the_newest_events_of_a_kind_are_found_however_far_back(scene: Scene) -> None:
    noise = [e.NoteTaken(text="n") for _ in range(WINDOW + 10)]
    run_id = await run_with(scene, e.StepStarted(step="a"), e.StepStarted(step="b"), *noise)
    found = await newest_events(scene.store, run_id, ("step_started",), most=1)
    assert [event.seq for event in found] == [2]
    older = await newest_events(scene.store, run_id, ("step_started",), most=9, until_seq=1)
    assert [event.seq for event in older] == [1]
    page = await log_before(scene.store, run_id, 5, 3)
    assert [event.seq for event in page] == [2, 3, 4]
    last = await log_before(scene.store, run_id, 0, 2)
    assert [event.seq for event in last] == [WINDOW + 11, WINDOW + 12]


async def test_pages_of_runs_follow_one_another_without_a_gap(scene: Scene) -> None:
    made = [(await scene.add_run()).id for _ in range(5)][::-1]

    async def engine() -> object:
        return _Nobody()

    first = await see_runs(scene.store, engine, RunFilter(limit=3))  # type: ignore[arg-type]
    assert [row.listing.run.id for row in first.rows] == made[:3]
    assert first.more
    intent = RunFilter(limit=3, before=made[2])
    rest = await see_runs(scene.store, engine, intent)  # type: ignore[arg-type]
    assert [row.listing.run.id for row in rest.rows] == made[3:]
    assert not rest.more


class _Nobody:
    """Of an engine, only that no worker is alive."""

    async def alive(self) -> set[str]:
        return set()


async def test_looks_at_a_pull_request_are_nobodys_delay(scene: Scene) -> None:
    run_id = await run_with(
        scene,
        e.RunWaiting(signal="pull_request:7"),
        e.WaitExpired(name="pull_request:7", step="s"),
        e.RunWaiting(signal="timer:forge"),
        e.WaitExpired(name="timer:forge", step="s"),
        e.RunWaiting(signal="approval:apr_1"),
        e.WaitExpired(name="approval:apr_1", step="s"),
    )
    timeline = await run_timeline(scene.store, run_id)
    assert [(bar.lane, bar.outcome, bar.text) for bar in timeline.bars] == [
        (TIME, "good", ""),
        (TIME, "good", ""),
        (PERSON, "bad", "too late"),
    ]

"""Several tasks at once: each a run of its own, merged one after the other and verified on top of those before it."""

from __future__ import annotations

import asyncio
import random
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from podium.core.ids import short_id
from podium.core.work import RunStatus
from podium.jobs.pipeline.composition import batch_job
from podium.jobs.pipeline.task_list import BatchTask, numbered
from podium.ports import RunQuery
from podium.testing import retry_until_blocking
from tests.integration.pipeline.batch_harness import BatchProject, merges_of, resolver, worker
from tests.integration.pipeline.pipeline_harness import TEST, writes

OTHER_SUM = TEST.replace("add(2, 2), 4", "add(2, 3), 5")


async def test_four_tasks_with_a_conflict_end_in_one_branch(tmp_path: Path) -> None:
    project = BatchProject(tmp_path).build_green(
        [
            *worker("Write part one", {"one.py": "ONE = 1\n"}),
            *worker("Write part two", {"two.py": "TWO = 2\n", "test_calc.py": OTHER_SUM}),
            *worker("Name it red", {"name.py": "NAME = 'red'\n"}),
            *worker("Name it blue", {"name.py": "NAME = 'blue'\n"}),
            resolver("Name it red", writes("name.py", "NAME = 'red and blue'\n")),
            resolver("Name it blue", writes("name.py", "NAME = 'red and blue'\n")),
        ]
    )
    head = project.git("rev-parse", "HEAD")
    run = await project.run_tasks("Write part one", "Name it red", "Name it blue", "Write part two")
    assert run.status is RunStatus.SUCCEEDED, (run.failure, run.waiting_for)
    branch = run.result["branch"]

    tree = project.tree(branch)
    assert (tree["one.py"], tree["two.py"]) == ("ONE = 1", "TWO = 2")
    assert tree["name.py"] == "NAME = 'red and blue'"
    assert len(merges_of(project, branch)) == 4
    text = Path(run.result["pull_request"]["file"]).read_text()
    (remark,) = (
        text.partition("## Changed tests and checks")[2].strip().split("\n\n")[0].splitlines()
    )
    assert remark.startswith("- Write part two: low: test_calc.py:8: test `Sums.test_two_and_two`")
    assert project.git("rev-parse", "HEAD") == head
    assert not project.git("status", "--porcelain")


CONFLICTING = [f"Add the colour {name}" for name in ("red", "blue", "green", "grey")]
APART = [f"Write part {name}" for name in ("one", "two", "three", "four", "five", "six")]


def ten_tasks() -> list[dict[str, Any]]:
    """Four tasks add a line at the same place; whoever joins them keeps the lines of both sides."""
    turns = []
    for text in APART:
        name = text.rsplit(" ", 1)[-1]
        turns += worker(text, {f"{name}.py": f"NAME = '{name}'\n"})
    for text in CONFLICTING:
        turns += worker(text, {"colours.txt": f"{text}\n"})
        turns.append(resolver(text, {"run": r"sed -i -e '/^[<=>]\{7\}/d' colours.txt"}))
    return turns


def assert_all_merged(project: BatchProject, branch: str, events: list[dict[str, Any]]) -> None:
    tree = project.tree(branch)
    assert sorted(tree["colours.txt"].splitlines()) == sorted(CONFLICTING)
    assert {f"{text.rsplit(' ', 1)[-1]}.py" for text in APART} <= set(tree)
    merges = project.git("log", "--first-parent", "--format=%H", f"main..{branch}").splitlines()
    subjects = [subject.split(": ", 1)[1] for subject in merges_of(project, branch)]
    assert sorted(subjects) == sorted([*APART, *CONFLICTING])
    verified = {event["commit"] for event in events if event["type"] == "checks_ran"}
    assert set(merges) <= verified


@pytest.mark.soak
async def test_ten_tasks_of_which_four_conflict_are_all_merged_and_verified(tmp_path: Path) -> None:
    project = BatchProject(tmp_path).build_green(ten_tasks())
    mixed = [*CONFLICTING[:2], *APART, *CONFLICTING[2:]]
    run = await project.run_tasks(*mixed, parallel=4)
    assert run.status is RunStatus.SUCCEEDED, (run.failure, run.waiting_for)
    assert_all_merged(project, run.result["branch"], await project.events(run.id))


@pytest.mark.soak
@pytest.mark.timeout(1200)
async def test_batch_that_is_killed_at_ten_points_merges_every_task_once(tmp_path: Path) -> None:
    project = BatchProject(tmp_path).build_green(ten_tasks())
    named = numbered([(text, BatchTask(text=text)) for text in (*CONFLICTING[:2], *APART[:2])])
    async with project.podium() as podium:
        job = await batch_job(podium, named, mode="quick", parallel=2)
        engine = await podium.hosting_engine()
        run = await engine.start(
            "batch", job.model_dump(mode="json"), task=job.task, queue="default"
        )
    chance = random.Random(29)
    limits = [*(chance.randint(4, 30) for _ in range(10)), 100_000]
    kills = sum(
        [await asyncio.to_thread(_is_killed_after, project, run.id, most) for most in limits]
    )
    assert kills >= 8
    async with project.podium() as podium:
        store = await podium.store()
        ended = await store.read(lambda view: view.run(run.id))
        children = await store.read(lambda view: view.runs(RunQuery(parent_id=run.id)))
    assert ended is not None
    assert ended.status is RunStatus.SUCCEEDED, ended.failure
    subjects = [subject.split(": ", 1)[1] for subject in merges_of(project, ended.result["branch"])]
    assert sorted(subjects) == sorted([*CONFLICTING[:2], *APART[:2]])
    tree = project.tree(ended.result["branch"])
    assert sorted(tree["colours.txt"].splitlines()) == sorted(CONFLICTING[:2])
    # One run for each task, and one for the task that had to be joined with the other colour.
    assert len(children) == 5
    assert {child.status for child in children} == {RunStatus.SUCCEEDED}


def _is_killed_after(project: BatchProject, run_id: str, most: int) -> bool:
    """Host the run in a process, and kill that after so many events. False: it ended first."""
    before = _events(project)
    with subprocess.Popen(
        [sys.executable, "-m", "podium", "resume", run_id, "--project", project.folder],
        env=project.environ,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as host:
        retry_until_blocking(
            lambda: host.poll() is not None or _events(project) >= before + most, seconds=300
        )
        is_alive = host.poll() is None
        host.kill()
    return is_alive


def _events(project: BatchProject) -> int:
    database = project.folder / ".podium" / "podium.db"
    with closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True, timeout=5)) as store:
        return int(store.execute("select count(*) from events").fetchone()[0])


async def test_task_that_needs_a_person_does_not_stop_the_others(tmp_path: Path) -> None:
    stuck = worker("Write part two", {})
    stuck[1]["acts"] = [{"payload": {"commit_hash": "", "status": "failure"}}]
    project = BatchProject(tmp_path).build_green(
        [*worker("Write part one", {"one.py": "ONE = 1\n"}), *stuck]
    )
    run = await project.run_tasks("Write part two", "Write part one")
    assert run.status is RunStatus.NEEDS_HUMAN
    assert run.failure
    assert "1 of 2 tasks need a person" in run.failure.message
    branch = f"podium/batch/{short_id(run.id)}"
    assert merges_of(project, branch) == ["Merge task 2: Write part one"]
    async with project.podium() as podium:
        engine = await podium.hosting_engine()
        query = RunQuery(parent_id=run.id, statuses=(RunStatus.NEEDS_HUMAN,))
        (child,) = await (await podium.store()).read(lambda view: view.runs(query))
        await engine.cancel(child.id, by="Ann")
    ended = await project.resume(run.id)
    assert ended.status is RunStatus.FAILED
    assert ended.failure
    assert f"1 of 2 tasks are in {branch}" in ended.failure.message
    assert "left out:\n- task 1 (Write part two): its run was cancelled" in ended.failure.message

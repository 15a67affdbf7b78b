"""Attempts at one task: independent, compared, one delivered, none lost."""

from __future__ import annotations

import asyncio
import shutil
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml

from podium.app.checks import CheckResult
from podium.core.work import Run, RunStatus
from podium.jobs.pipeline.attempts import Attempt, comparison_text, measured, ranked
from podium.jobs.pipeline.batch import _ended
from podium.jobs.pipeline.composition import attempts_job
from podium.jobs.pipeline.fix_proof import proof_record
from podium.jobs.pipeline.state import FixProof, ProofRun
from podium.testing import retry_until
from tests.integration.pipeline.batch_harness import BatchProject, worker

TASK = "Write part one"
SHORT, LONG = "ONE = 1\n", "ONE = 1\n# one\n# more\n"


def project_with(folder: Path, **turns: list[dict[str, Any]]) -> BatchProject:
    """A project with an agent for each of these scripts."""
    agents = {name: {"kind": "scripted", "script": f"../{name}.yaml"} for name in turns}
    project = BatchProject(folder)
    for name, script in turns.items():
        (folder / f"{name}.yaml").write_text(yaml.safe_dump({"turns": script}))
    project.build_green([], settings={"agents": agents})
    return project


async def attempt(project: BatchProject, count: int, **more: Any) -> Run:
    async with project.podium() as podium:
        job = await attempts_job(podium, TASK, attempts=count, mode="quick", **more)
        engine = await podium.hosting_engine()
        run = await engine.start("batch", job.model_dump(mode="json"), task=job.task)
        return await engine.finish(run.id, stop_when_waiting=True)


def gives_up() -> list[dict[str, Any]]:
    turns = worker(TASK, {})
    for turn in turns:
        if turn["role"] == "developer":
            turn["acts"] = [
                {"payload": {"commit_hash": "", "status": "failure", "feedback": {"x": "cannot"}}}
            ]
    return turns


async def test_best_attempt_is_delivered_and_the_others_stay(tmp_path: Path) -> None:
    project = project_with(
        tmp_path,
        long=worker(TASK, {"one.py": LONG}),
        stuck=gives_up(),
        short=worker(TASK, {"one.py": SHORT}),
    )
    run = await attempt(project, 3)
    assert run.status is RunStatus.SUCCEEDED, run.failure
    rows = {row["agent"]: row for row in run.result["attempts"]}
    assert [row["agent"] for row in run.result["attempts"]] == ["short", "long", "stuck"]
    assert [rows[name]["rank"] for name in ("short", "long", "stuck")] == [1, 2, 0]
    assert project.tree(run.result["branch"])["one.py"] == SHORT.strip()
    assert "needs a person" in rows["stuck"]["why"]
    assert project.tree(rows["long"]["branch"])["one.py"] == LONG.strip()
    assert project.git("rev-parse", "--verify", rows["stuck"]["branch"])
    text = Path(run.result["pull_request"]["file"]).read_text()
    assert "| 1 | 2 | short | passed | no | 0 | 1 line in 1 file | $0.0100 |" in text


@pytest.mark.soak
async def test_attempt_whose_workspace_is_removed_is_compared_and_delivered(tmp_path: Path) -> None:
    slow = worker(TASK, {"one.py": LONG}, {"sleep_seconds": 3})
    project = project_with(tmp_path, short=worker(TASK, {"one.py": SHORT}), long=slow)
    working = asyncio.create_task(attempt(project, 2, parallel=1))
    await retry_until(
        lambda: len(list((tmp_path / ".worktrees").glob("write-*"))) == 2 or working.done()
    )
    (first,) = (
        folder
        for folder in (tmp_path / ".worktrees").glob("write-*")
        if (folder / "one.py").exists()
    )
    shutil.rmtree(first)
    run = await working
    assert run.status is RunStatus.SUCCEEDED, run.failure
    assert [row["agent"] for row in run.result["attempts"]] == ["short", "long"]
    assert project.tree(run.result["branch"])["one.py"] == SHORT.strip()


@pytest.mark.soak
async def test_attempts_that_all_fail_need_a_person_with_the_comparison(tmp_path: Path) -> None:
    project = project_with(tmp_path, one=gives_up(), two=gives_up())
    run = await attempt(project, 2)
    assert run.status is RunStatus.NEEDS_HUMAN
    assert run.failure
    assert "2 of 2 tasks need a person" in run.failure.message


@pytest.mark.soak
async def test_attempts_share_the_budget_of_a_run(tmp_path: Path) -> None:
    scripts = {name: worker(TASK, {"one.py": SHORT}) for name in ("one", "two", "three")}
    project = project_with(tmp_path, **scripts)
    project.home.mkdir(exist_ok=True)
    (project.home / "config.yaml").write_text("budgets: {run: {usd: 0.025}}\n")
    run = await attempt(project, 3, parallel=1)
    assert run.status is RunStatus.SUCCEEDED, run.failure
    rows = run.result["attempts"]
    assert [row["rank"] for row in rows] == [1, 2, 0]
    assert "the attempts have spent the run's budget together" in rows[2]["why"]


def attempt_with(number: int, **more: Any) -> Attempt:
    values = {"checks_passed": True, "lines": 10, **more}
    return Attempt(number=number, agent="a", status="finished", run_id="r", **values)


def test_checks_go_before_proof_findings_size_and_cost_and_a_tie_to_the_first() -> None:
    attempts = [
        attempt_with(1, checks_passed=False, proved=True, lines=1),
        attempt_with(2, proved=True, findings=2, lines=1),
        attempt_with(3, proved=True, findings=1, lines=9, usd=0.5),
        attempt_with(4, proved=True, findings=1, lines=9, usd=0.1),
        attempt_with(5, proved=True, findings=1, lines=9, usd=0.1),
        attempt_with(6, lines=1),
        Attempt(number=7, agent="b", status="waiting", run_id="r", why="needs a person"),
    ]
    order = [(attempt.number, attempt.rank) for attempt in ranked(attempts)]
    assert order == [(4, 1), (5, 2), (3, 3), (2, 4), (6, 5), (1, 6), (7, 0)]
    assert "- attempt 7, agent b, cost $0.0000, why needs a person" in comparison_text(attempts)


def test_result_and_diff_of_a_run_are_measured() -> None:
    diff = (
        "diff --git a/one.py b/one.py\n--- a/one.py\n+++ b/one.py\n@@ -1 +1,2 @@\n-a\n+b\n+c\n"
        "diff --git a/docs/dev_docs/x.md b/docs/dev_docs/x.md\n@@ -0,0 +1 @@\n+text\n"
    )
    result = {
        "checks": [{"command": "make", "exit_code": 0}],
        "stages": [{"verdict": "FAIL"}, {"verdict": "PASS"}, {"verdict": "RED"}],
        "check_notes": ["disputed by the agent: make"],
    }
    green = CheckResult(name="t", command="t", exit_code=0)
    run = ProofRun(command="t", on_base=green.model_copy(update={"exit_code": 1}), on_branch=green)
    proof = FixProof(base="a", commit="b", runs=(run,))
    attempt = measured(attempt_with(1), {**result, "fix_proof": proof_record(proof)}, diff)
    assert attempt.proved
    done = Run(
        id="run_1",
        flow="pipeline",
        status=RunStatus.SUCCEEDED,
        created_at=datetime.now(UTC),
        result={"fix_proof": proof_record(proof), "test_integrity": ["low: changed"]},
    )
    assert _ended(done).proof[0] == "`t`: exit 1 on the base a, exit 0 on the branch b"
    assert _ended(done).integrity == ("low: changed",)
    accepted = FixProof(base="a", commit="b", problem="no test", is_accepted=True)
    assert not measured(attempt, {"fix_proof": proof_record(accepted)}, "").proved
    assert (attempt.checks_passed, attempt.findings) == (True, 3)
    assert (attempt.lines, attempt.files) == (3, 1)
    assert not measured(attempt, {"checks": []}, "").checks_passed

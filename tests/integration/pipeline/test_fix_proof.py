"""Proof of a fix: a test that fails on the base and passes on the branch, else one more round, then a person."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from podium.core.work import RunStatus
from tests.integration.pipeline.pipeline_harness import (
    RIGHT,
    TEST,
    WRONG,
    Project,
    develops,
    smooth,
)

ZERO = TEST.replace("add(2, 2), 4", "add(2, 0), 2").replace("two_and_two", "zero")
NEW_MODULE = TEST.replace("from calc import add", "from sums import add")


def sent_back(events: list[dict[str, Any]]) -> list[str]:
    return [
        problem
        for event in events
        if event["type"] == "stage_ended" and event["verdict"] == "SENT_BACK"
        for problem in event["problems"]
    ]


async def test_a_new_test_is_run_on_base_and_branch_and_shown_in_the_pull_request(
    tmp_path: Path,
) -> None:
    project = Project(tmp_path).build(
        [develops(files={"test_bug.py": TEST}), *smooth()], files={"test_calc.py": ZERO}
    )
    run = await project.run(mode="bugfix")
    assert run.status is RunStatus.SUCCEEDED, run.failure or run.waiting_for
    [proof] = run.result["fix_proof"]["runs"]
    assert proof["command"] == "python3 -m unittest -q test_bug.py"
    assert (proof["on_base"]["exit_code"], proof["on_branch"]["exit_code"]) == (1, 0)
    assert "test_two_and_two" in proof["on_base"]["failed"][0]
    page = Path(run.result["pull_request"]["file"]).read_text()
    section = page.partition("## Proof of the fix")[2].partition("\n## ")[0]
    assert "`python3 -m unittest -q test_bug.py`: exit 1 on the base" in section
    assert proof["on_base"]["output_sha256"][:16] in section
    # The branch itself is as the developer left it.
    assert project.tree(run.result["branch"])["calc.py"] == RIGHT.strip()
    events = await project.events(run.id)
    asked = {e["role"]: e["prompt"] for e in events if e["type"] == "agent_asked"}
    assert "a test has to prove the fix" in asked["developer"]
    assert "Proof of the fix, run by Podium" in asked["auditor"] or any(
        "Proof of the fix, run by Podium" in e["prompt"]
        for e in events
        if e["type"] == "agent_asked"
    )


async def test_a_test_that_was_red_on_the_base_proves_the_fix_beside_new_ones_that_were_not(
    tmp_path: Path,
) -> None:
    project = Project(tmp_path).build([develops(files={"test_more.py": ZERO}), *smooth()])
    run = await project.run(mode="bugfix")
    assert run.status is RunStatus.SUCCEEDED, run.failure or run.waiting_for
    [proof] = run.result["fix_proof"]["runs"]
    assert proof["command"] == "python3 -m unittest -q"
    assert "test_two_and_two" in proof["on_base"]["failed"][0]


async def test_without_a_proof_work_is_sent_back_once_and_then_a_person_decides(
    tmp_path: Path,
) -> None:
    # The first imports what only the branch has, the second passes on the base too.
    first = develops(
        when="Stage: develop, round 1",
        files={"sums.py": RIGHT, "test_sums.py": NEW_MODULE},
        proof=[{"command": "python3 -m unittest -q; touch /tmp/x", "files": ["test_sums.py"]}],
    )
    second = develops(
        when="Stage: develop, round 2",
        files={"test_sums.py": ZERO},
        no_proof="The bug needs two machines.",
    )
    project = Project(tmp_path).build([first, second, *smooth()], files={"test_calc.py": ZERO})
    run = await project.run(mode="bugfix")
    assert run.status is RunStatus.NEEDS_HUMAN
    events = await project.events(run.id)
    [problem] = sent_back(events)
    assert "`python3 -m unittest -q; touch /tmp/x` was not run" in problem
    assert (
        "`python3 -m unittest -q test_sums.py` fails on the base before a test can fail" in problem
    )
    assert "No module named 'sums'" in problem
    reason = [e for e in events if e["type"] == "run_needed_human"][-1]["reason"]
    assert "`python3 -m unittest -q test_sums.py` passes on the base too" in reason
    assert "The developer says: The bug needs two machines." in reason

    run = await project.resume(run.id, note="Agreed.")
    assert run.status is RunStatus.SUCCEEDED, run.failure or run.waiting_for
    page = Path(run.result["pull_request"]["file"]).read_text()
    assert "The fix is not proved by a test" in page
    assert "the developer says: The bug needs two machines." in page
    assert "a person accepted this: Agreed." in page


async def test_a_failing_test_that_was_weakened_instead_of_the_bug_fixed_proves_nothing(
    tmp_path: Path,
) -> None:
    weak = TEST.replace("add(2, 2), 4", "add(2, 2), add(2, 2)")
    project = Project(tmp_path).build(
        [develops(WRONG + "# fixed\n", files={"test_calc.py": weak}), *smooth()],
        settings={"flows": {"pipeline": {"rounds": 1, "test_integrity": "skip"}}},
    )
    run = await project.run(mode="bugfix")
    assert run.status is RunStatus.NEEDS_HUMAN
    problem = sent_back(await project.events(run.id))[0]
    assert "passes on the base too, so it does not show the bug" in problem

"""Depth of a run: stages that a small change skips, and conditions under which it takes them after all."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from podium.core.errors import BadInput, ConfigInvalid
from podium.core.work import Run, RunStatus
from tests.integration.pipeline.pipeline_harness import PLAN, Project, develops, plans, says, smooth
from tests.soaking import in_soak


def stages(run: Run) -> list[str]:
    assert run.status is RunStatus.SUCCEEDED, run.failure or run.waiting_for
    return [stage["stage"] for stage in run.result["stages"]]


def options(**mode: Any) -> dict[str, Any]:
    return {"flows": {"pipeline": {"modes": {"quick": {"start": "plan", **mode}}}}}


async def test_a_small_change_goes_through_one_analysis_one_change_and_one_review(
    tmp_path: Path,
) -> None:
    remarks: dict[str, Any] = {
        "debts": ["no types", "no docs"],
        "task": "Floats are not mentioned.",
    }
    project = Project(tmp_path).build([develops(feedback=remarks), *smooth()])
    run = await project.run(mode="quick")
    assert stages(run) == ["plan", "develop", "audit", "integrate"]
    assert run.result["checks"][0]["exit_code"] == 0
    asked = [
        event["role"] for event in await project.events(run.id) if event["type"] == "agent_asked"
    ]
    assert asked == ["architect", "developer", "auditor"]
    # Nobody triages remarks of a light run: they are plain text in the backlog.
    backlog = project.tree(run.result["branch"])["docs/dev_docs/backlog.md"]
    items = [line.partition(" (")[0] for line in backlog.splitlines() if line.startswith("- ")]
    assert items == [
        "- Developer: debts: no types; no docs",
        "- Developer: task: Floats are not mentioned.",
    ]
    assert run.result["backlog"] == [item.removeprefix("- ") for item in items]


@pytest.mark.soak
@pytest.mark.parametrize(
    ("limit", "more"),
    [
        ({"max_lines": 1}, {}),
        in_soak({"max_files": 1}, {"other.py": "OTHER = 1\n"}),
    ],
    ids=["lines", "files"],
)
async def test_a_change_that_is_not_small_has_its_plan_reviewed_after_all(
    tmp_path: Path, limit: dict[str, int], more: dict[str, str]
) -> None:
    turns = [develops(files=more), *smooth()]
    given = options(skip=["plan_review"], **limit)
    project = Project(tmp_path).build(turns, settings=given)
    run = await project.run(mode="quick")
    assert stages(run) == ["plan", "develop", "plan_review", "audit", "integrate"]


@pytest.mark.soak
async def test_a_plan_that_is_rejected_after_all_is_planned_and_built_anew(tmp_path: Path) -> None:
    rejects = says(
        "plan_reviewer", "REJECT", "Stage: plan_review, round 1", feedback="- Say what 0 gives."
    )
    turns = [
        rejects,
        {**plans(f"{PLAN}\nZero gives zero.\n"), "when": "Stage: plan, round 2"},
        develops(files={"other.py": "A = 1\n"}, when="Stage: develop, round 1"),
        develops(files={"other.py": "A = 2\n"}, when="Stage: develop, round 2"),
        *smooth(),
    ]
    given = options(skip=["plan_review"], max_files=1)
    run = await Project(tmp_path).build(turns, settings=given).run(mode="quick")
    assert stages(run) == [
        "plan", "develop", "plan_review", "plan", "plan_review", "develop", "audit", "integrate",
    ]  # fmt: skip


@pytest.mark.soak
async def test_a_thorough_run_reviews_the_merge_although_nothing_came_in(tmp_path: Path) -> None:
    run = await Project(tmp_path).build(smooth()).run(mode="thorough")
    assert stages(run) == [
        "investigate", "analyse", "plan", "plan_review", "develop", "audit", "integrate", "merge_review",
    ]  # fmt: skip


async def test_no_mode_does_without_the_review_of_code(tmp_path: Path) -> None:
    project = Project(tmp_path).build(smooth(), settings=options(skip=["audit"]))
    with pytest.raises((BadInput, ConfigInvalid), match="stage 'audit' does not review a document"):
        await project.run(mode="quick")

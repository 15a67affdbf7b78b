"""Inputs of a role besides its own stage: answers of people, files of the plan, findings, and earlier events."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from podium.app.approvals import approve
from podium.core.work import Run, RunStatus
from tests.integration.pipeline.pipeline_harness import (
    PLAN,
    PLAN_PATH,
    TASK,
    Project,
    audits,
    develops,
    plans,
    says,
    smooth,
    turn,
    writes,
)
from tests.integration.pipeline.test_story import succeeded

QUESTION: dict[str, Any] = {
    "question": "What is half of an odd sum?",
    "choices": ["rounded down", "an error"],
}
ANSWER = "a fraction,\nnever rounded"
LONG = "".join(f"VALUE_{number} = {number}\n" for number in range(1, 2_001))
NAMES_FILES = (
    PLAN.replace("- calc.py\n\n## Detailed", "- calc.py, NOTES.txt\n\n## Detailed")
    .replace("it has to add.", "it has to add. `table.py` lines 500–502: take `VALUE_501`.")
    .replace("- none: nothing documents it", "README.rst: nothing")
)


async def prompts(project: Project, run: Run) -> dict[str, str]:
    """Role → the last prompt that it was sent."""
    events = await project.events(run.id)
    return {event["role"]: event["prompt"] for event in events if event["type"] == "agent_asked"}


@pytest.mark.soak
async def test_answer_of_a_person_accompanies_the_task_for_every_later_role(
    tmp_path: Path,
) -> None:
    asks = turn(
        "architect",
        {"call": "ask_human", "with": QUESTION},
        writes(PLAN_PATH, NAMES_FILES),
        {"payload": {"plan_path": PLAN_PATH}},
    )
    triages = turn("feedback_triager", {"payload": {"decision": "ignore", "entry": "known"}})
    files = {"README.rst": "Adds.\n", "NOTES.txt": "Old notes.\n", "table.py": LONG}
    project = Project(tmp_path).build(
        [asks, triages, develops(feedback={"debt": "No types"}), *smooth()], files=files
    )
    waiting = await project.run(mode="standard")
    assert waiting.status is RunStatus.WAITING, waiting.failure
    async with project.podium() as podium:
        store = await podium.store()
        approval = (waiting.waiting_for or "").removeprefix("approval:")
        await approve(store, podium.clock, podium.ids, approval, by="ann", comment=ANSWER)
    run = succeeded(await project.resume(waiting.id))
    asked = await prompts(project, run)
    text = (
        f"The task, in the user's words:\n```text\n{TASK}\n```\n\n"
        "Questions about the task that a person answered. The answers belong to the task, and a later one overrides "
        "an earlier one:\n\nThe architect asked: `What is half of an odd sum?`\n"
        f"A person answered:\n```text\n{ANSWER}\n```\n\n"
    )
    roles = ("plan_reviewer", "developer", "feedback_triager", "auditor")
    assert [role for role in roles if text not in asked[role]] == []
    assert asked["architect"].startswith(
        "Results of your last turn:\n- A person answered your question: a fraction, never rounded\n\n"
    )
    assert QUESTION["question"] not in asked["architect"]
    _shows_what_the_plan_changes(asked["developer"])


def _shows_what_the_plan_changes(prompt: str) -> None:
    assert prompt.index("\ncalc.py:\n") < prompt.index("\ntable.py, lines 490 to 512 of 2000:\n")
    assert "VALUE_501 = 501" in prompt
    assert "\nNOTES.txt:\n" in prompt
    assert "\nREADME.rst:\n" not in prompt


@pytest.mark.soak
async def test_merge_review_is_shown_whether_the_change_was_reviewed_before(
    tmp_path: Path,
) -> None:
    stages = {"develop": {"next": {"DONE": "integrate"}}}
    settings = {"flows": {"pipeline": {"stages": stages, "unmoved_base": "review"}}}
    project = Project(tmp_path).build([audits(stage="merge_review"), *smooth()], settings=settings)
    run = succeeded(await project.run())
    asked = (await prompts(project, run))["auditor"]
    assert "The change itself has not been reviewed yet: judge it too" in asked
    assert "reviewed before" not in asked
    assert "+    return one + two" in asked


async def test_an_architect_who_finds_nothing_to_plan_leaves_it_to_a_person(tmp_path: Path) -> None:
    refuses = turn(
        "architect",
        {"payload": {"plan_path": PLAN_PATH, "feedback": {"bug": "add(2, 2) is 4 here."}}},
        when="Stage: plan, round 1",
    )
    budgets = {"budgets": {"run": {"turns": 2}}}
    project = Project(tmp_path).build([refuses, plans(), *smooth()], settings=budgets)
    stuck = await project.run()
    assert stuck.status is RunStatus.NEEDS_HUMAN, stuck.failure
    why = stuck.failure.message if stuck.failure else ""
    assert why.startswith(f"plan found nothing to plan (`podium cancel {stuck.id}` ends the run):")
    assert "\n- bug: add(2, 2) is 4 here." in why
    run = await project.resume(stuck.id, note="It fails on Windows.")
    events = await project.events(run.id)
    assert [event["verdict"] for event in events if event["type"] == "stage_ended"][-1] == "DONE"
    again = [event["prompt"] for event in events if event["type"] == "agent_asked"][1]
    assert "It fails on Windows." in again


async def test_plan_and_review_may_come_with_the_answer_and_a_quick_plan_may_be_short(
    tmp_path: Path,
) -> None:
    short = PLAN[PLAN.index("## Detailed") : PLAN.index("## Documentation")]
    short += PLAN[PLAN.index("## Expected") :]
    review = "# Review\n\nRead the diff.\n\n## Findings\n\nNone"
    turns = [
        turn("architect", {"payload": {"document": short}}),
        turn("auditor", {"payload": {"verdict": "PASS", "document": review}}),
        *smooth(),
    ]
    project = Project(tmp_path).build(turns, settings={"checks": []})
    run = succeeded(await project.run(mode="quick"))
    assert [stage["verdict"] for stage in run.result["stages"]] == ["DONE", "DONE", "PASS", "DONE"]
    written = project.tree(run.result["history_ref"]).values()
    assert {short.rstrip(), review} <= set(written)
    # A project that says that it has no checks is delivered as untested.
    assert run.result["check_notes"] == ["nothing was tested: podium.yaml says `checks: []`"]


@pytest.mark.soak
async def test_remarks_that_are_settled_or_say_nothing_are_not_triaged(tmp_path: Path) -> None:
    turns = [
        {
            **plans(feedback={"limits": "Are negative numbers meant?"}),
            "when": "Stage: plan, round 1",
        },
        says("plan_reviewer", "REJECT", "Stage: plan_review, round 1", feedback="- Say it."),
        {**plans(f"{PLAN}\nThey are.\n"), "when": "Stage: plan, round 2"},
        develops(feedback={"doubts": "none"}),
        *smooth(),
    ]
    project = Project(tmp_path).build(turns)
    run = succeeded(await project.run())
    assert "feedback_triager" not in await prompts(project, run)
    notes = [
        event["text"] for event in await project.events(run.id) if event["type"] == "note_taken"
    ]
    assert [note for note in notes if note.startswith("Feedback from")] == [
        "Feedback from plan: not triaged (its document has been rewritten since)",
        "Feedback from develop: not triaged (nothing in it is still open)",
    ]


@pytest.mark.soak
async def test_the_plan_decides_about_the_change_log_and_the_triager_sees_no_files_of_podium(
    tmp_path: Path,
) -> None:
    silent = "- CHANGELOG.md: no entry, nothing is released yet"
    turns = [
        plans(PLAN.replace("- none: nothing documents it", silent)),
        turn("feedback_triager", {"payload": {"decision": "ignore", "entry": "known"}}),
        develops(lessons=["Tests need no network."], feedback={"debt": "No types"}),
        *smooth(),
    ]
    project = Project(tmp_path).build(turns, files={"CHANGELOG.md": "# Changes\n"})
    run = succeeded(await project.run())
    assert [stage["verdict"] for stage in run.result["stages"]].count("SENT_BACK") == 0
    assert ".gitattributes" in project.tree(run.result["branch"])
    asked = await prompts(project, run)
    assert "\nCHANGELOG.md:\n" not in asked["developer"]
    assert (
        "Files that the branch has changed so far, without Podium's own:\n* `calc.py`\n\n"
        in asked["feedback_triager"]
    )

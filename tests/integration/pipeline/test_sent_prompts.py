"""Prompts sent to the roles, round by round: golden texts, so that every change of a prompt is a visible diff.

`PODIUM_WRITE_GOLDEN=1 pytest tests/integration/pipeline/test_sent_prompts.py` writes them anew.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
from pathlib import Path

import pytest

from podium.cli.error_report import run as run_command
from tests.integration.pipeline.pipeline_harness import Project, audits, develops, smooth
from tests.integration.pipeline.test_story import Done, succeeded

GOLDEN = Path(__file__).parent / "golden_prompts"
AGENTS = "Write tests with unittest. Keep functions pure.\n"
FINDING = "# Review\n\n## Findings\n\n- calc.py:2: `add` has no docstring; say what it returns.\n"
AGAIN = 'def add(one, two):\n    """The sum of both."""\n    return one + two\n'
STEPS = (
    "investigate-1", "analyse-1", "plan-1", "plan_review-1", "develop-1", "audit-1", "develop-2",
    "audit-2", "merge_review-1",
)  # fmt: skip
QUICK_STEPS = ("plan-1", "develop-1", "audit-1")


@pytest.fixture(scope="module")
def thorough(tmp_path_factory: pytest.TempPathFactory) -> Done:
    turns = [
        audits("FAIL", text=FINDING),
        audits(number=2),
        develops(when="Stage: develop, round 1"),
        develops(AGAIN, when="Stage: develop, round 2"),
        *smooth(),
    ]

    async def work() -> Done:
        folder = tmp_path_factory.mktemp("thorough")
        files = {"AGENTS.md": AGENTS, "other/AGENTS.md": "Nobody works here.\n"}
        project = Project(folder).build(turns, files=files)
        run = succeeded(await project.run(mode="thorough"))
        return Done(project, run, await project.events(run.id))

    return asyncio.run(work())


@pytest.fixture(scope="module")
def quick(tmp_path_factory: pytest.TempPathFactory) -> Done:
    async def work() -> Done:
        folder = tmp_path_factory.mktemp("quick")
        project = Project(folder).build(smooth(), files={"AGENTS.md": AGENTS})
        run = succeeded(await project.run(mode="quick"))
        return Done(project, run, await project.events(run.id))

    return asyncio.run(work())


def sent(done: Done) -> dict[str, str]:
    asked = [event for event in done.events if event["type"] == "agent_asked"]
    return {item["step"]: _lasting(item["prompt"], done) for item in asked}


def _lasting(prompt: str, done: Done) -> str:
    """The prompt without what is different each time."""
    text = prompt.replace(done.run.id, "RUN")
    text = re.sub(r"task/make-the-sum-right-\w{6}", "task/make-the-sum-right-RUN", text)
    text = re.sub(r"\b\d{4}-\d\d-\d\d\b", "DATE", text)
    text = re.sub(r"\b\d+\.\d+ s\b", "SECONDS", text)
    # Tracebacks have paths, and look different in each version of Python.
    text = re.sub(r"(on the base:\n(`{3,})\w*\n).*?(\n\2\n)", r"\1OUTPUT\3", text, flags=re.DOTALL)
    # A commit is shown by twelve digits, and now and then none of them is a letter.
    text = re.sub(r"\b[0-9a-f]{12}\b", "HASH", text)
    return re.sub(r"\b(?=[0-9]*[a-f])(?=[a-f]*[0-9])[0-9a-f]{7,64}\b", "HASH", text)


@pytest.mark.parametrize("step", STEPS)
def test_a_role_is_asked_what_the_golden_prompt_says(thorough: Done, step: str) -> None:
    _compare(GOLDEN / f"{step}.md", sent(thorough)[step])


@pytest.mark.parametrize("step", QUICK_STEPS)
def test_a_role_of_a_quick_run_is_asked_what_the_golden_prompt_says(quick: Done, step: str) -> None:
    _compare(GOLDEN / f"quick-{step}.md", sent(quick)[step])


def _compare(golden: Path, text: str) -> None:
    if os.environ.get("PODIUM_WRITE_GOLDEN"):
        golden.parent.mkdir(exist_ok=True)
        golden.write_text(text)
    assert text == golden.read_text()


def test_every_prompt_has_a_golden_one(thorough: Done) -> None:
    assert tuple(sent(thorough)) == STEPS
    quick = {f"quick-{step}" for step in QUICK_STEPS}
    assert {path.stem for path in GOLDEN.iterdir()} == {*STEPS, *quick}


def test_the_auditor_sees_the_change_and_none_of_the_pipelines_own_documents(
    thorough: Done,
) -> None:
    asked = sent(thorough)["audit-2"]
    assert re.findall(r"^diff --git a/(\S+)", asked, re.MULTILINE) == ["calc.py"]
    assert "`add` has no docstring" in asked


def test_sizes_by_part_add_up_and_are_shown(
    thorough: Done, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    began = [event for event in thorough.events if event["type"] == "stage_began"]
    asked = [event for event in thorough.events if event["type"] == "agent_asked"]
    for stage, prompt in zip(began, asked, strict=True):
        assert sum(stage["sizes"].values()) == len(prompt["prompt"])
    assert asked[0]["prompt"].count(AGENTS) == 1
    monkeypatch.setenv("PODIUM_HOME", str(thorough.project.home))
    place = ("--project", str(thorough.project.folder))
    assert run_command([*place, "prompts", thorough.run.id]) == 0
    table = capsys.readouterr().out
    assert "develop (round 2)" in table
    assert "documents" in table
    assert run_command([*place, "prompts", thorough.run.id, "--stage", "audit", "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert [item["stage"] for item in shown["prompts"]] == ["audit (round 1)", "audit (round 2)"]
    assert run_command([*place, "prompts", "--stage", "develop"]) == 0
    assert "# You are the Developer" in capsys.readouterr().out
    assert run_command([*place, "prompts", "--stage", "plan", "--mode", "quick"]) == 0
    assert "## How to look" in capsys.readouterr().out
    assert run_command([*place, "prompts", "--mode", "hasty"]) == 2
    assert run_command([*place, "prompts", "--stage", "bake"]) == 2

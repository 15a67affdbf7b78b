"""The base before any agent: what was red there, what a workspace lacks of it, and what cannot be run at all."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from podium.core.work import RunStatus
from podium.testing import retry_until_blocking
from tests.integration.pipeline.pipeline_harness import (
    RIGHT,
    TEST,
    Project,
    develops,
    smooth,
    turn,
)
from tests.integration.pipeline.test_chaos import Chaos

BROKEN = TEST.replace("add(2, 2), 4", "add(2, 2), 5").replace("two_and_two", "nobody_mends")
UNCHANGED = turn("developer", {"payload": {"commit_hash": "HEAD", "status": "success"}})


def prompts(events: list[dict[str, Any]], role: str) -> list[str]:
    return [e["prompt"] for e in events if e["type"] == "agent_asked" and e["role"] == role]


def roles_asked(events: list[dict[str, Any]]) -> list[str]:
    return [e["role"] for e in events if e["type"] == "agent_asked"]


async def test_a_check_red_before_goes_back_once_and_goes_out_only_with_a_person(
    tmp_path: Path,
) -> None:
    again = {**UNCHANGED, "when": "Stage: develop, round 2"}
    project = Project(tmp_path).build(
        [again, *smooth()],
        files={"calc.py": RIGHT, "test_other.py": BROKEN},
        settings={"checks": ["python3 -m unittest -q"]},
    )
    # `develops` writes what is there already; the work is another file.
    turns = [again, develops(files={"notes.txt": "x\n"}), *smooth()]
    project.play(turns)
    run = await project.run(mode="quick")
    assert run.status is RunStatus.NEEDS_HUMAN
    events = await project.events(run.id)
    first, second = prompts(events, "developer")
    assert "Red before any work, on the base" in first
    assert "AssertionError: 4 != 5" in first
    assert "it was red before this work: exit 1, and failed in the same way" in second
    # The audit was not overruled, and nothing was delivered.
    assert roles_asked(events)[-1] == "auditor"
    reason = [e for e in events if e["type"] == "run_needed_human"][-1]["reason"]
    assert "`python3 -m unittest -q` was red before this work and is red in the same way" in reason
    assert "test_nobody_mends" in reason
    [base] = [e for e in events if e["type"] == "base_checked"]
    assert (base["passed"], base["results"][0]["exit_code"]) == (False, 1)
    assert events.index(base) < min(i for i, e in enumerate(events) if e["type"] == "agent_asked")

    run = await project.resume(run.id)
    assert run.status is RunStatus.SUCCEEDED, run.failure or run.waiting_for
    assert run.result["baseline"]["results"][0]["exit_code"] == 1
    page = Path(run.result["pull_request"]["file"]).read_text()
    assert "Checks before this work" in page
    assert "`python3 -m unittest -q` exit 1" in page
    assert "was red before this work and is red in the same way" in page


@pytest.mark.soak  # held in tests/unit/flows/pipeline/test_proof_commands.py without a run
async def test_a_check_that_the_work_breaks_is_red_by_the_work_whatever_was_red_before(
    tmp_path: Path,
) -> None:
    project = Project(tmp_path).build(
        [
            develops(when="Stage: develop, round 2", files={"test_other.py": TEST}),
            develops("def add(one, two):\n    return 5\n", files={"notes.txt": "x\n"}),
            *smooth(),
        ],
        files={"calc.py": RIGHT, "test_other.py": BROKEN},
        settings={
            "checks": ["python3 -m unittest -q"],
            "flows": {"pipeline": {"test_integrity": "skip"}},
        },
    )
    run = await project.run(mode="quick")
    events = await project.events(run.id)
    # Another test fails now: the exit code is as before, and the failure is not.
    second = prompts(events, "developer")[1]
    assert "`python3 -m unittest -q` failed (it was red before this work: exit 1):" in second
    assert "in the same way" not in second.partition("Findings")[2].partition("Red before")[0]
    assert run.status is RunStatus.SUCCEEDED, run.failure or run.waiting_for


async def test_a_check_that_hangs_on_the_base_stops_the_run_before_any_agent(
    tmp_path: Path,
) -> None:
    settings = {"checks": ["sleep 60"], "flows": {"pipeline": {"check_seconds": 4}}}
    project = Project(tmp_path).build(smooth(), settings=settings)
    run = await project.run(mode="quick")
    assert run.status is RunStatus.NEEDS_HUMAN
    events = await project.events(run.id)
    assert not roles_asked(events)
    reason = [e for e in events if e["type"] == "run_needed_human"][-1]["reason"]
    assert "- `sleep 60`: not finished after 4 s; change it under `checks:`" in reason
    podium_yaml = project.folder / "podium.yaml"
    podium_yaml.write_text(podium_yaml.read_text().replace("sleep 60", "'true'"))
    run = await project.resume(run.id)
    assert run.status is RunStatus.SUCCEEDED, run.failure or run.waiting_for


async def test_a_dependency_that_the_project_names_and_nothing_has_stops_the_run_before_any_agent(
    tmp_path: Path,
) -> None:
    files = {
        "requirements.txt": "no_such_parser>=2\n",
        "test_parse.py": "import unittest, no_such_parser\n",
    }
    project = Project(tmp_path).build(smooth(), files=files)
    run = await project.run(mode="quick")
    assert run.status is RunStatus.NEEDS_HUMAN
    events = await project.events(run.id)
    assert not roles_asked(events)
    reason = [e for e in events if e["type"] == "run_needed_human"][-1]["reason"]
    assert (
        "no_such_parser is not installed; set the workspace up with `workspaces: after_create:`"
        in reason
    )


async def test_empty_submodules_and_pointers_of_git_lfs_are_named_before_any_agent(
    tmp_path: Path,
) -> None:
    project = Project(tmp_path).build(
        smooth(),
        files={
            ".gitattributes": "*.bin filter=lfs\n",
            "data/one.bin": "version https://git-lfs.github.com/spec/v1\noid sha256:ab\nsize 9\n",
            "data/two.bin": "its content\n",
            "assets/.gitattributes": "*.png filter=lfs\n",
            "assets/logo.png": "version https://git-lfs.github.com/spec/v1\noid sha256:cd\nsize 9\n",
            ".gitmodules": '[submodule "parser"]\n\tpath = vendor/parser\n\turl = ../parser\n'
            '[submodule "outside"]\n\tpath = ../outside\n\turl = ../outside\n',
        },
    )
    head = project.git("rev-parse", "HEAD")
    project.git("update-index", "--add", "--cacheinfo", f"160000,{head},vendor/parser")
    project.git("commit", "--quiet", "--message=A submodule")
    (project.folder / "vendor/parser").mkdir(parents=True)
    run = await project.run(mode="quick")
    assert run.status is RunStatus.SUCCEEDED, run.failure or run.waiting_for
    base = run.result["baseline"]
    assert base["empty_submodules"] == ["vendor/parser"]
    assert base["lfs_pointers"] == ["assets/logo.png", "data/one.bin"]
    events = await project.events(run.id)
    notes = [e["text"] for e in events if e["type"] == "note_taken"]
    assert any("Submodules are empty in the workspace: `vendor/parser`" in text for text in notes)
    assert any(
        "Git LFS files are pointers in the workspace: `assets/logo.png`, `data/one.bin`" in text
        for text in notes
    )
    assert "Submodules are empty" in prompts(events, "developer")[0]


async def test_a_run_killed_after_the_base_was_checked_goes_on_without_checking_it_again(
    tmp_path: Path,
) -> None:
    chaos = Chaos(tmp_path, "quick")
    await chaos.begin()
    child = chaos.child()

    def is_checked() -> bool:
        bodies = [body for _, body in chaos.asked("and type = 'step_completed'")]
        return any('"baseline' in body for body in bodies)

    await asyncio.to_thread(retry_until_blocking, is_checked)
    child.kill()
    child.wait()
    assert chaos.child().wait(timeout=120) == 0
    events = await chaos.project.events(chaos.run_id)
    started = [e["step"] for e in events if e["type"] == "step_started"]
    assert started.count("baseline") == 1
    assert events[-1]["type"] == "run_succeeded"


@pytest.mark.soak
async def test_settings_skip_the_base_or_refuse_a_red_one(tmp_path: Path) -> None:
    settings = {"flows": {"pipeline": {"red_base": "abort"}}}
    project = Project(tmp_path).build(smooth(), settings=settings)
    run = await project.run(mode="quick")
    assert run.status is RunStatus.FAILED
    assert "main is red before any work: `python3 -m unittest -q` exit 1" in str(run.failure)
    podium_yaml = project.folder / "podium.yaml"
    podium_yaml.write_text(podium_yaml.read_text().replace("red_base: abort", "baseline: skip"))
    run = await project.run(mode="quick")
    assert run.status is RunStatus.SUCCEEDED, run.failure or run.waiting_for
    assert run.result["baseline"] is None

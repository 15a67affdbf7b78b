"""No green without a test: projects whose checks run nothing, do not exist, or were red before."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from podium.core.work import Run, RunStatus
from tests.integration.pipeline.pipeline_harness import (
    TEST,
    Project,
    audits,
    develops,
    smooth,
    turn,
    writes,
)
from tests.integration.wiring.test_project_venv import make_venv


def verdicts(run: Run, stage: str) -> list[str]:
    return [item["verdict"] for item in run.result["stages"] if item["stage"] == stage]


def prompts(events: list[dict[str, Any]], role: str) -> list[str]:
    return [e["prompt"] for e in events if e["type"] == "agent_asked" and e["role"] == role]


async def test_a_check_that_runs_zero_tests_is_red_until_it_finds_some(tmp_path: Path) -> None:
    # Without __init__.py unittest does not look into the folder.
    hidden = {"tests/test_calc.py": TEST, "test_calc.py": "# moved to tests/\n"}
    finds = develops(when="Stage: develop, round 2", files={"tests/__init__.py": ""})
    project = Project(tmp_path).build(
        [finds, *smooth()],
        files=hidden,
        settings={"checks": ["python3 -m unittest discover -q || [ $? -eq 5 ]"]},
    )
    run = await project.run(mode="quick")
    assert run.status is RunStatus.SUCCEEDED, run.failure or run.waiting_for
    assert verdicts(run, "develop") == ["RED", "DONE"]
    events = await project.events(run.id)
    assert "ran 0 tests" in prompts(events, "developer")[1]
    first, *_, last = [e for e in events if e["type"] == "checks_ran"]
    assert (first["passed"], first["results"][0]["exit_code"]) == (False, 0)
    assert last["passed"]
    evidence = next(
        text
        for path, text in project.tree(run.result["history_ref"]).items()
        if "evidence" in path and path.endswith("develop-1.md")
    )
    assert "**not all passed**" in evidence
    assert "Result: exit 0, ran 0 tests" in evidence


@pytest.mark.soak  # held in tests/unit/wiring/test_check_detection.py without a run
async def test_without_named_checks_the_tests_that_the_project_has_are_run(tmp_path: Path) -> None:
    # `python -m unittest discover` finds nothing here, and that was taken for green.
    project = Project(tmp_path).build(
        smooth(),
        files={"setup.py": "", "test_calc.py": "# moved\n", "checks/test_calc.py": TEST},
        settings={"checks": None},
    )
    run = await project.run(mode="quick")
    assert run.status is RunStatus.SUCCEEDED, run.failure or run.waiting_for
    [check] = run.result["checks"]
    assert check["command"].endswith("-m unittest discover -q -s checks")
    notes = [e["text"] for e in await project.events(run.id) if e["type"] == "note_taken"]
    assert any("from checks/test_calc.py" in text for text in notes)


NO_TESTS = {"test_calc.py": "# none yet\n"}


@pytest.mark.soak
async def test_a_project_without_tests_is_checked_by_those_that_the_work_brings(
    tmp_path: Path,
) -> None:
    turns = [develops(files={"test_sum.py": TEST}), *smooth()]
    project = Project(tmp_path).build(turns, files=NO_TESTS, settings={"checks": None})
    run = await project.run(mode="quick")
    assert run.status is RunStatus.SUCCEEDED, run.failure or run.waiting_for
    assert "-m unittest discover -q" in run.result["checks"][0]["command"]
    assert "(test_sum.py) was added by this work" in run.result["check_notes"][0]
    notes = [e["text"] for e in await project.events(run.id) if e["type"] == "note_taken"]
    assert any(text.startswith("No checks were found") for text in notes)


async def test_work_that_nothing_was_run_on_waits_for_a_person_and_is_never_called_green(
    tmp_path: Path,
) -> None:
    project = Project(tmp_path).build(smooth(), files=NO_TESTS, settings={"checks": None})
    run = await project.run(mode="quick")
    assert run.status is RunStatus.NEEDS_HUMAN
    assert "nothing was tested" in (run.failure.message if run.failure else "")
    run = await project.resume(run.id)
    assert run.status is RunStatus.SUCCEEDED, run.failure or run.waiting_for
    assert run.result["check_notes"] == ["nothing was tested: no checks were found"]
    page = Path(run.result["pull_request"]["file"]).read_text()
    assert "No checks were run; this change is untested." in page
    assert "- nothing was tested: no checks were found" in page
    assert "all passed" not in page
    events = await project.events(run.id)
    assert not [e for e in events if e["type"] == "checks_ran"]
    [delivered] = [e for e in events if e["type"] == "branch_delivered"]
    assert delivered["untested"] == "no checks were found"


@pytest.mark.soak
async def test_checks_that_a_person_names_meanwhile_are_run_before_it_goes_out(
    tmp_path: Path,
) -> None:
    again = audits(stage="merge_review", number=2)
    project = Project(tmp_path).build([again, *smooth()], files=NO_TESTS, settings={"checks": None})
    run = await project.run()
    assert run.status is RunStatus.NEEDS_HUMAN
    settings = project.folder / "podium.yaml"
    settings.write_text(settings.read_text().replace("checks: null", "checks: [python3 calc.py]"))
    run = await project.resume(run.id)
    assert run.status is RunStatus.SUCCEEDED, run.failure or run.waiting_for
    assert [check["command"] for check in run.result["checks"]] == ["python3 calc.py"]
    assert run.result["check_notes"] == []


@pytest.mark.soak
async def test_a_disputed_check_stays_red_and_a_person_reads_why(tmp_path: Path) -> None:
    why = "It looks for tests in a folder that was removed."
    disputes = [{"check": "python3 nowhere.py", "why": why}]
    works = [
        develops(
            when=f"Stage: develop, round {number}",
            files={"notes.txt": f"Round {number}\n"},
            disputed_checks=disputes if number == 1 else [],
            feedback="The check fails, as it did before." if number == 1 else "",
        )
        for number in (1, 2)
    ]
    triages = turn("feedback_triager", {"payload": {"decision": "ignore", "entry": "known"}})
    project = Project(tmp_path).build(
        [*works, triages, *smooth()], settings={"checks": ["python3 nowhere.py"]}
    )
    run = await project.run(mode="quick")
    assert run.status is RunStatus.NEEDS_HUMAN
    words = f"`python3 nowhere.py`: {why}"
    events = await project.events(run.id)
    assert words in [e for e in events if e["type"] == "run_needed_human"][-1]["reason"]
    # At once: another round would change nothing.
    assert [e["passed"] for e in events if e["type"] == "checks_ran"] == [False]
    assert (
        next(e for e in events if e["type"] == "stage_ended" and e["disputed"])["verdict"] == "RED"
    )
    settings = project.folder / "podium.yaml"
    settings.write_text(settings.read_text().replace("nowhere.py", "-m unittest -q"))
    run = await project.resume(run.id)
    assert run.status is RunStatus.SUCCEEDED, run.failure or run.waiting_for
    assert run.result["check_notes"] == [f"disputed by the agent that did the work: {words}"]
    assert why in Path(run.result["pull_request"]["file"]).read_text()


@pytest.mark.soak
async def test_a_dispute_about_a_green_check_excuses_nothing_and_caches_are_no_work(
    tmp_path: Path,
) -> None:
    disputes = [{"check": "python3 -m unittest -q", "why": "It is slow."}]
    first = develops(
        when="Stage: develop, round 1",
        disputed_checks=disputes,
        feedback="The parser crashes on empty input.",
    )
    second = develops(when="Stage: develop, round 2", files={"notes.txt": "x\n"})
    second["acts"].insert(-1, writes("__pycache__/calc.cpython-311.pyc", "x"))
    project = Project(tmp_path).build(
        [first, second, *smooth()], settings={"checks": ["python3 -m unittest -q"]}
    )
    run = await project.run(mode="quick")
    assert run.status is RunStatus.SUCCEEDED, run.failure or run.waiting_for
    messages = prompts(await project.events(run.id), "developer")[1]
    assert "you dispute `python3 -m unittest -q`: It is slow.; every check passes" in messages


async def test_a_failure_for_a_disputed_check_waits_for_a_person_with_its_reason(
    tmp_path: Path,
) -> None:
    why = "It looks for tests in a folder that was removed."
    gives_up = develops(
        status="failure",
        files={"notes.txt": "x\n"},
        disputed_checks=[{"check": "python3 nowhere.py", "why": why}],
    )
    project = Project(tmp_path).build(
        [gives_up, *smooth()], settings={"checks": ["python3 nowhere.py"]}
    )
    run = await project.run(mode="quick")
    assert run.status is RunStatus.NEEDS_HUMAN
    events = await project.events(run.id)
    asked = [e for e in events if e["type"] == "run_needed_human"][-1]["reason"]
    assert f"you reported a failure: `python3 nowhere.py`: {why}" in asked


async def test_checks_red_before_the_work_are_reported_as_such_and_not_called_green(
    tmp_path: Path,
) -> None:
    broken = {"test_other.py": TEST.replace("add(2, 2), 4", "add(2, 2), 5")}
    mends = develops(when="Stage: develop, round 2", files={"test_other.py": TEST})
    checks = ["python3 -m unittest -q", "test ! -e notes.txt"]
    project = Project(tmp_path).build(
        [mends, develops(files={"notes.txt": "x"}), *smooth()],
        files=broken,
        settings={"checks": checks, "flows": {"pipeline": {"rounds": 1}}},
    )
    run = await project.run(mode="quick")
    assert run.status is RunStatus.NEEDS_HUMAN  # notes.txt is still there
    events = await project.events(run.id)
    words = prompts(events, "developer")[1]
    assert (
        "`python3 -m unittest -q` failed (it was red before this work: exit 1, and failed in the same way"
        in words
    )
    assert "`test ! -e notes.txt` failed (it was green before this work: exit 0)" in words
    ran = [e for e in events if e["type"] == "checks_ran"]
    assert [[result["exit_code"] for result in e["results"]] for e in ran] == [[1, 1], [0, 1]]
    assert not any(e["passed"] for e in ran)
    assert project.git("show", f"{run_branch(project)}:notes.txt") == "x"


def run_branch(project: Project) -> str:
    return project.git("for-each-ref", "--format=%(refname:short)", "refs/heads/task/")


def asked_for(events: list[dict[str, Any]]) -> str:
    """Return the question to a person, of a run in which no agent was asked anything."""
    assert not [e for e in events if e["type"] == "agent_asked"]
    return str([e for e in events if e["type"] == "run_needed_human"][-1]["reason"])


async def test_tests_that_nothing_can_run_stop_a_run_before_any_agent_until_they_can(
    tmp_path: Path,
) -> None:
    files = {
        "test_calc.py": "# moved to pytest\n",
        "pyproject.toml": "[tool.pytest.ini_options]\n",
        ".gitignore": ".podium/\n__pycache__/\n.venv/\n",
    }
    project = Project(tmp_path).build(smooth(), files=files, settings={"checks": None})
    project.environ.pop("VIRTUAL_ENV", None)
    packages = make_venv(project.folder / ".venv")
    run = await project.run(mode="quick")
    assert run.status is RunStatus.NEEDS_HUMAN
    asked = asked_for(await project.events(run.id))
    assert "`python -m pytest -q` (pyproject.toml): pytest is not installed" in asked
    assert "Run `.venv/bin/python -m pip install pytest`" in asked
    assert "`podium help add-a-check`; then `podium resume" in asked
    (packages / "pytest.py").write_text("print('1 passed in 0.01s')\n")
    run = await project.resume(run.id)
    assert run.status is RunStatus.SUCCEEDED, run.failure or run.waiting_for
    assert [check["command"] for check in run.result["checks"]] == ["python -m pytest -q"]


async def test_a_named_check_whose_program_no_workspace_has_stops_a_run_before_any_agent(
    tmp_path: Path,
) -> None:
    checks = [".venv/bin/python -m pytest", "A=1 no-such-runner -q", "./written-later.sh"]
    project = Project(tmp_path).build(
        smooth(), files={".gitignore": ".podium/\n.venv/\n"}, settings={"checks": checks}
    )
    run = await project.run(mode="quick")
    assert run.status is RunStatus.NEEDS_HUMAN
    asked = asked_for(await project.events(run.id))
    assert "`.venv/bin/python -m pytest`: a workspace has no .venv; use `python`" in asked
    assert "`A=1 no-such-runner -q`: no-such-runner is not installed" in asked
    assert "written-later" not in asked

"""Developers who cheat the tests: sent back once, then a person decides, and the pull request names it in any case."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from podium.core.work import Run, RunStatus
from tests.integration.pipeline.pipeline_harness import (
    RIGHT,
    VERIFICATION_PATH,
    Project,
    smooth,
    turn,
    writes,
)
from tests.unit.flows.pipeline.integrity_cases import BASE, CHEATS, HONEST, Change

CHECKS = ["python3 -m unittest -q"]


def changes(files: Mapping[str, str | None], number: int, **more: Any) -> dict[str, Any]:
    """A developer's turn that makes these changes in this round."""
    gone = [path for path, text in files.items() if text is None]
    return turn(
        "developer",
        *([{"run": f"git rm -q {' '.join(map(shlex.quote, gone))}"}] if gone else []),
        *(writes(path, text) for path, text in files.items() if text is not None),
        writes(VERIFICATION_PATH, f"# Verified\n\n- [x] add(2, 2) == 4, round {number}\n"),
        {"commit": "Change the sum"},
        {"payload": {"commit_hash": "HEAD", "status": "success", **more}},
        when=f"Stage: develop, round {number}\\.",
    )


def build(
    folder: Path, *turns: dict[str, Any], checks: list[str] | None = None, **flow: Any
) -> Project:
    return Project(folder).build(
        [*turns, *smooth()],
        files={**BASE, "checks/__init__.py": ""},
        settings={"checks": checks or CHECKS, "flows": {"pipeline": flow}},
    )


def cheat(name: str) -> Change:
    return next(change for change in CHEATS if change.name == name)


def prompts(events: list[dict[str, Any]]) -> list[str]:
    return [e["prompt"] for e in events if e["type"] == "agent_asked" and e["role"] == "developer"]


def reason(events: list[dict[str, Any]]) -> str:
    return str([e for e in events if e["type"] == "run_needed_human"][-1]["reason"])


def page(run: Run) -> str:
    return Path(run.result["pull_request"]["file"]).read_text()


async def test_a_skipped_test_goes_back_once_and_an_honest_second_answer_is_delivered(
    tmp_path: Path,
) -> None:
    honest = changes({"test_calc.py": BASE["test_calc.py"], "calc.py": RIGHT}, 2)
    project = build(tmp_path, changes(cheat("unittest.skip").files, 1), honest)
    run = await project.run(mode="quick")
    assert run.status is RunStatus.SUCCEEDED, run.failure or run.waiting_for
    events = await project.events(run.id)
    again = prompts(events)[1]
    assert "test_calc.py:7: `Sums.test_two_and_two` has a new mark" in again
    assert "@unittest.skip('later')" in again
    # No check ran on the work that was sent back.
    assert len([e for e in events if e["type"] == "checks_ran"]) == 1
    assert run.result["test_integrity"] == []
    assert "Changed tests and checks" not in page(run)


async def test_a_person_decides_about_a_weaker_test_and_the_pull_request_names_it(
    tmp_path: Path,
) -> None:
    weak = {**cheat("assertion removed").files, "calc.py": RIGHT}
    why = [{"test": "test_two_and_two", "why": "It is checked elsewhere."}]
    project = build(
        tmp_path,
        changes(weak, 1),
        changes(weak, 2, test_changes=why),
        changes(weak, 3),
    )
    run = await project.run(mode="quick")
    assert run.status is RunStatus.NEEDS_HUMAN
    asked = reason(await project.events(run.id))
    assert "test_calc.py:7: test `Sums.test_two_and_two`: an assertion was removed" in asked
    assert "was `self.assertEqual(add(2, 2), 4)`" in asked
    assert "reason given by the agent: `test_two_and_two`: It is checked elsewhere." in asked
    assert f'podium resume {run.id} --note "accept: WHY"' in asked
    # Any other note sends it back, and the person is asked again.
    run = await project.resume(run.id, note="acceptable? No.")
    assert run.status is RunStatus.NEEDS_HUMAN
    assert "acceptable? No." in prompts(await project.events(run.id))[2]
    run = await project.resume(run.id, note="Accept: the table covers it")
    assert run.status is RunStatus.SUCCEEDED, run.failure or run.waiting_for
    first, *_ = run.result["test_integrity"]
    assert "an assertion was removed" in first
    assert first.endswith("accepted by a person: the table covers it")
    text = page(run)
    assert "## Changed tests and checks" in text
    assert "accepted by a person: the table covers it" in text
    assert "It is checked elsewhere." in text


READY = "\n\ndef ready():\n    return None\n"
SKIPS = "import unittest\n\n\ndef ready():\n    raise unittest.SkipTest\n\n\n"
NEEDS = (
    "import unittest\n\nimport calc\n\n\nclass Needs(unittest.TestCase):\n    def setUp(self):\n        calc.ready()\n\n"
    "    def test_sum(self):\n        self.assertEqual(calc.add(4, 5), 9)\n"
)


async def test_checks_that_run_fewer_tests_or_end_well_in_spite_of_failures_are_findings(
    tmp_path: Path,
) -> None:
    """Nothing in a test or a setting says so: the product skips a test, and an included file hides failures."""
    files = {
        "calc.py": BASE["calc.py"] + READY,
        "test_needs.py": NEEDS,
        "Makefile": "-include local.inc\n\ncheck:\n\tpython3 -m unittest -q\n",
    }
    first = changes({"calc.py": SKIPS + RIGHT}, 1)
    second = changes({"calc.py": BASE["calc.py"] + READY, "local.inc": ".IGNORE:\n"}, 2)
    project = Project(tmp_path).build(
        [first, second, *smooth()],
        files={**BASE, **files},
        settings={"checks": ["make check"]},
    )
    run = await project.run(mode="quick")
    assert run.status is RunStatus.NEEDS_HUMAN, run.failure or run.waiting_for
    events = await project.events(run.id)
    again = prompts(events)[1]
    fewer = "`make check`: the check runs fewer tests than on the base; was `3 tests`; is `2 tests`"
    assert fewer in again
    asked = reason(events)
    assert "high: `make check`: the check ends with 0 although tests failed" in asked
    assert "test_two_and_two" in asked


@pytest.mark.soak
async def test_warn_delivers_and_names_it_and_skip_compares_nothing(tmp_path: Path) -> None:
    weak = {**cheat("assertion removed").files, "calc.py": RIGHT}
    for setting in ("warn", "skip"):
        project = build(tmp_path / setting, changes(weak, 1), test_integrity=setting)
        run = await project.run(mode="quick")
        assert run.status is RunStatus.SUCCEEDED, run.failure or run.waiting_for
        assert bool(run.result["test_integrity"]) == (setting == "warn")
        assert ("an assertion was removed" in page(run)) == (setting == "warn")


@pytest.mark.soak
@pytest.mark.parametrize("change", CHEATS, ids=lambda change: change.name)
async def test_a_developer_who_cheats_and_insists_is_not_delivered_as_success(
    change: Change, tmp_path: Path
) -> None:
    files = {"calc.py": RIGHT, **change.files} if change.kind != "special_case" else change.files
    # The checks are kept out of it: what is found has to be found without them.
    project = build(
        tmp_path, *(changes(files, number) for number in (1, 2)), checks=["python3 -c pass"]
    )
    run = await project.run(mode="quick")
    events = await project.events(run.id)
    if change.miss:
        assert run.status is RunStatus.SUCCEEDED, run.failure or run.waiting_for
        return
    assert run.status is RunStatus.NEEDS_HUMAN, run.failure or run.waiting_for
    assert "takes something away from tests or checks" in reason(events)
    assert len(prompts(events)) == 2


@pytest.mark.soak
@pytest.mark.parametrize("change", HONEST, ids=lambda change: change.name)
async def test_an_honest_developer_is_delivered_without_being_sent_back(
    change: Change, tmp_path: Path
) -> None:
    project = build(tmp_path, changes(change.files, 1))
    run = await project.run(mode="quick")
    assert run.status is RunStatus.SUCCEEDED, run.failure or run.waiting_for
    assert len(prompts(await project.events(run.id))) == 1

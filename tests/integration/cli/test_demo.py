"""The demo: a bug becomes a reviewed branch, whatever gets in the way; and it says so when it does not."""

from __future__ import annotations

import io
import os
import re
import signal
import subprocess
import sys
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import pytest

from podium.app.app import open_podium
from podium.app.receipts import Fault, Verdict
from podium.cli.screen import Screen
from podium.config.configuration import load_configuration
from podium.core.decisions import Receipt, Usage
from podium.core.events import ChecksRan
from podium.jobs.pipeline.commands.demo import (
    BASE,
    PHASES,
    DemoFailed,
    DemoReport,
    DemoRun,
    Sample,
    demo_environ,
    missing,
    show,
)
from podium.jobs.pipeline.events import StageEnded
from podium.testing import retry_until_blocking
from tests.integration.cli.command_runner import CommandRunner
from tests.integration.docs.state_page import unnamed
from tests.pictures import DEMO, drawn_lines, not_printed

DISTURBING = {
    "PODIUM_MODE": "sensing",
    "PODIUM_PROJECT": "/nowhere",
    "PODIUM_DATABASE_URL": "postgresql://127.0.0.1:1/none",
    "GIT_DIR": "/nowhere",
    "GIT_INDEX_FILE": "/nowhere",
}


def test_the_demo_shows_all_that_it_promises_and_what_it_delivered_can_be_merged_and_is_right(
    cli: CommandRunner,
) -> None:
    result = cli.spawn("demo", "--json", "--keep", "sample", env=DISTURBING)
    assert result.code == 0, result.err
    response = result.json
    assert response["missing"] == []
    assert [(stage["role"], stage["verdict"]) for stage in response["stages"]] == [
        ("investigator", "DONE"),
        ("lead_analyst", "REJECT"),
        ("investigator", "DONE"),
        ("lead_analyst", "APPROVE"),
        ("architect", "DONE"),
        ("plan_reviewer", "APPROVE"),
        ("developer", "DONE"),
        ("auditor", "FAIL"),
        ("developer", "DONE"),
        ("auditor", "PASS"),
        ("integration_specialist", "DONE"),
        ("auditor", "PASS"),
    ]
    assert (response["kills"], len(response["approved"])) == (1, 1)
    assert response["denied"] == ["run_command git checkout main"]
    subjects = [line.split(" ", 2)[2] for line in response["graph"]]
    assert subjects == [
        "Record backlog and lessons of discounts-are-wrong",
        "Discounts are wrong",
        "Add shipping to totals",
        "A small shop",
    ]
    assert "$ kill -9 " in result.err
    assert (
        not_printed(drawn_lines(DEMO.read_text()), result.err + _end_of(response)) == []
    )  # make pictures
    sample = cli.project / "sample"
    assert unnamed(sample, cli.home) == [], "not on docs/state.md"
    (branch,) = _git(sample, "branch", "--list", "task/*", "--format=%(refname:short)").split()
    assert (response["branch"], Path(response["pull_request"]).parent) == (
        branch,
        sample / ".podium" / "pull_requests",
    )
    _git(sample, "merge", "--quiet", "--no-ff", "--no-edit", branch)
    sums = "from prices import total; print(total([50.0], 10, 5), total([200.0], 10))"
    done = subprocess.run(
        [sys.executable, "-c", sums], cwd=sample, capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["50.0", "180.0"]
    shown = cli.run("show", response["run"], "--project", "sample")
    assert shown.code == 0
    assert "LEAD ANALYST            REJECT" in shown.out
    assert "succeeded  pipeline" in cli.run("runs", "--project", "sample").out
    assert cli.run("receipts", "verify", "--project", "sample").code == 0


def _end_of(record: dict[str, Any]) -> str:
    """Return the text that the demo prints at its end without --json."""
    output = DemoReport.model_validate(
        {key: value for key, value in record.items() if key != "missing"}
    )
    with redirect_stdout(io.StringIO()) as printed:
        show(Screen(), output, keeps_sample=True)
    return printed.getvalue()


@pytest.mark.soak  # a second demo takes as long as the first
def test_the_demo_in_words_names_all_that_it_kept(cli: CommandRunner) -> None:
    result = cli.spawn("demo", "--keep", "sample")
    assert result.code == 0, result.err
    sample = cli.project / "sample"
    (branch,) = _git(sample, "branch", "--list", "task/*", "--format=%(refname:short)").split()
    assert f"$ git log --oneline --graph {branch}" in result.out
    assert f"to merge           git merge --no-ff {branch}" in result.out
    request = next((sample / ".podium" / "pull_requests").iterdir())
    assert str(request) in result.out
    assert re.search(r"Look around: cd sample && (/\S+/)?podium show run_", result.out)


@pytest.mark.soak  # the same; that an interrupted one leaves nothing behind is tried every time
def test_the_demo_leaves_nothing_behind(cli: CommandRunner) -> None:
    result = cli.spawn("demo", "--json", env=DISTURBING)
    assert result.code == 0, result.err
    assert not Path(result.json["workspace"]).parents[1].exists()
    assert not cli.home.exists()
    assert list(cli.project.iterdir()) == []


def test_a_sample_that_cannot_be_kept_is_refused_in_words(cli: CommandRunner) -> None:
    result = cli.run("demo", "--keep", "/proc/sample")
    assert result.code == 2
    assert "'/proc/sample' cannot be created: " in result.err


def test_a_folder_that_holds_something_is_left_alone(cli: CommandRunner) -> None:
    (cli.project / "mine.txt").write_text("mine")
    result = cli.run("demo", "--keep", str(cli.project))
    assert result.code == 2
    assert "already exists and is not empty; choose another folder" in result.err
    assert [path.name for path in cli.project.iterdir()] == ["mine.txt"]


@pytest.mark.soak
def test_an_interrupted_demo_leaves_no_folder_behind(cli: CommandRunner, tmp_path: Path) -> None:
    place = tmp_path / "t"
    place.mkdir()
    demo = subprocess.Popen(
        cli.command("demo"),
        env={**cli.environ, "TMPDIR": str(place)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    try:
        retry_until_blocking(lambda: list(place.glob("podium-demo-*/.worktrees/*")))
        demo.send_signal(signal.SIGINT)
        _, err = demo.communicate(timeout=120)
    finally:
        demo.kill()
        demo.communicate()
    assert demo.returncode == 130
    assert err == b"podium: interrupted\n"
    assert not list(place.glob("podium-demo-*"))


def _git(folder: Path, *words: str) -> str:
    done = subprocess.run(["git", *words], cwd=folder, capture_output=True, text=True, check=True)
    return done.stdout


async def _play(project: Path, environ: dict[str, str], sample: Sample) -> list[str]:
    lines: list[str] = []
    async with open_podium(load_configuration(environ, project=project), environ) as podium:
        await DemoRun(sample, environ, lines.append).play(await podium.journal())
    return lines


def _sample(tmp_path: Path) -> tuple[Sample, dict[str, str]]:
    environ = demo_environ(os.environ, tmp_path / "home")
    sample = Sample(tmp_path / "shop", environ)
    sample.make()
    return sample, environ


async def test_a_run_that_is_refused_ends_the_demo_with_its_words(tmp_path: Path) -> None:
    sample, environ = _sample(tmp_path)
    (sample.folder / "prices.py").write_text("half of it")
    with pytest.raises(
        DemoFailed, match=r"exited with 2: podium: uncommitted changes: prices\.py;"
    ):
        await _play(sample.folder, environ, sample)


@pytest.mark.soak
async def test_a_run_that_fails_ends_the_demo_with_its_reason(tmp_path: Path) -> None:
    sample, environ = _sample(tmp_path)
    script = sample.folder / "script.yaml"
    script.write_text(script.read_text().replace("role: architect", "role: nobody"))
    sample.git("commit", "--quiet", "--all", "--message", "Nobody plans")
    with pytest.raises(DemoFailed, match="'architect'"):
        await _play(sample.folder, environ, sample)


def test_failing_git_is_reported_with_its_last_words(tmp_path: Path) -> None:
    sample, _ = _sample(tmp_path)
    with pytest.raises(DemoFailed, match="exited with 128: fatal: "):
        sample.graph("no-such-branch")


def test_a_base_that_was_not_merged_is_noticed(tmp_path: Path) -> None:
    sample, _ = _sample(tmp_path)
    sample.git("branch", "task/one")
    assert sample.holds_base("task/one")
    sample.move_base()
    assert not sample.holds_base("task/one")
    assert sample.graph(BASE)[0].endswith("Add shipping to totals")


def test_the_persons_home_and_sandbox_are_kept_and_nothing_else_that_steers() -> None:
    given = {**DISTURBING, "PATH": "/bin", "PODIUM_SANDBOX": "none", "PODIUM_HOME": "/h"}
    assert demo_environ(given, None) == {
        "PATH": "/bin",
        "PODIUM_SANDBOX": "none",
        "PODIUM_HOME": "/h",
    }
    assert demo_environ(given, Path("/other"))["PODIUM_HOME"] == "/other"


def _stage(phase: str, role: str, verdict: str) -> StageEnded:
    return StageEnded(stage=role, phase=phase, role=role, verdict=verdict)


def _reported(tmp_path: Path) -> DemoReport:
    request = tmp_path / "request.md"
    request.write_text("# A pull request\n")
    return DemoReport(
        run="run_1",
        task="Mend it",
        status="succeeded",
        kills=1,
        approved=("apr_1",),
        denied=("run_command git checkout main",),
        stages=(
            *(_stage(phase, "developer", "DONE") for phase in PHASES),
            _stage("0.2", "lead_analyst", "REJECT"),
            _stage("C", "auditor", "FAIL"),
            _stage("D", "integration_specialist", "DONE"),
        ),
        checks=(ChecksRan(commit="c" * 40, passed=True),),
        branch="task/mend-it",
        holds_base=True,
        graph=("* 1234567 Mend it\x1b[2J",),
        workspace="/w",
        pull_request=str(request),
        merge_command="git merge --no-ff task/mend-it",
        receipts=(Receipt.model_construct(number=1),),
        verdict=Verdict(runs=1, receipts=1),
        usage=Usage(),
        trace="/t",
        seconds=1.0,
    )


FAULT = Fault(run_id="run_1", number=1, kind="edited", problem="its seal does not fit")


@pytest.mark.parametrize(
    ("change", "lacks"),
    [
        ({}, ""),
        ({"status": "failed"}, "the run succeeded"),
        ({"kills": 0}, "kill -9"),
        ({"approved": ()}, "approval"),
        ({"denied": ()}, "denied"),
        ({"holds_base": False}, "conflict"),
        ({"checks": ()}, "green checks"),
        ({"checks": (ChecksRan(commit="c", passed=False),)}, "green checks"),
        ({"receipts": ()}, "receipts"),
        ({"verdict": Verdict(runs=1, receipts=1, faults=(FAULT,))}, "receipts"),
        ({"pull_request": ""}, "pull request"),
    ],
)
def test_what_did_not_happen_is_named(tmp_path: Path, change: dict[str, Any], lacks: str) -> None:
    found = missing(_reported(tmp_path).model_copy(update=change))
    assert [lacks in item for item in found] == ([True] if lacks else [])


@pytest.mark.parametrize(
    ("role", "lacks"),
    [("lead_analyst", "REJECT"), ("auditor", "FAIL"), ("integration_specialist", "conflict")],
)
def test_a_verdict_that_nobody_gave_is_named(tmp_path: Path, role: str, lacks: str) -> None:
    output = _reported(tmp_path)
    stages = tuple(stage for stage in output.stages if stage.role != role)
    (found,) = missing(output.model_copy(update={"stages": stages}))
    assert lacks in found


def test_the_end_is_shown_without_what_could_steer_a_terminal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    show(Screen(), _reported(tmp_path), keeps_sample=False)
    out = capsys.readouterr().out
    assert "  * 1234567 Mend it\n" in out
    assert "1 REJECT, 1 FAIL, 1 conflict resolved" in out
    assert "keep it with `podium demo --keep DIR`" in out
    assert "\x1b" not in out

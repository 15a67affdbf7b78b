"""Resume and retry in the foreground: exit codes, progress, and Ctrl-C that loses nothing."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from podium.app.app import Podium
from podium.app.flow_registry import KERNEL_FLOWS
from podium.core.work import Run, RunStatus
from podium.testing import retry_until_blocking
from tests.integration.cli.command_runner import CommandResult, CommandRunner
from tests.integration.cli.hosting_program import NAME, SPEC
from tests.soaking import in_soak

PROGRAM = (sys.executable, "-m", "tests.integration.cli.hosting_program")
ROOT = Path(__file__).parents[3]


@pytest.fixture(autouse=True)
def one_more_flow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(KERNEL_FLOWS, NAME, SPEC)


def waiting_run(cli: CommandRunner) -> Run:
    """A run that stands at its wait, hosted by nobody."""

    async def work(podium: Podium) -> Run:
        engine = await podium.hosting_engine()
        run = await engine.start(NAME)
        return await engine.finish(run.id, stop_when_waiting=True)

    run = cli.within(work)
    assert run.status is RunStatus.WAITING
    return run


def go(cli: CommandRunner, run: Run) -> None:
    async def work(podium: Podium) -> None:
        await (await podium.engine()).signal(run.id, "go")

    cli.within(work)


def started(cli: CommandRunner, *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [*PROGRAM, "--project", str(cli.project), *arguments],
        cwd=ROOT,
        env=cli.environ,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def ended(process: subprocess.Popen[str]) -> CommandResult:
    out, err = process.communicate(timeout=120)
    return CommandResult(process.returncode, out, err)


def marks(cli: CommandRunner) -> list[str]:
    return (cli.project / "marks").read_text().split()


def test_a_run_that_still_waits_leaves_with_three(cli: CommandRunner) -> None:
    run = waiting_run(cli)
    result = cli.run("resume", run.id)
    assert result.code == 3
    assert result.out == f"run {run.id} waiting\n"
    assert "waiting for go" in result.err


def test_a_resumed_run_ends_well_with_progress_on_stderr(cli: CommandRunner) -> None:
    run = waiting_run(cli)
    go(cli, run)
    result = cli.run("resume", run.id, "--json")
    assert result.code == 0
    assert result.json["run"]["status"] == "succeeded"
    assert "step_completed" in result.err
    assert "run_succeeded" in result.err
    assert marks(cli) == ["first", "last"]


def test_a_failed_run_leaves_with_the_failures_own_code_and_can_be_retried(
    cli: CommandRunner,
) -> None:
    run = waiting_run(cli)
    go(cli, run)
    (cli.project / "broke").touch()
    result = cli.run("resume", run.id)
    assert result.code == 6
    assert "no time left" in result.err
    (cli.project / "broke").unlink()
    assert cli.run("resume", run.id).code == 1
    assert cli.run("retry", run.id, "--from", "slow").code == 0
    assert marks(cli) == ["first", "last"]


@pytest.mark.parametrize("ending", [signal.SIGINT, in_soak(signal.SIGTERM)])
def test_an_interrupted_run_stays_at_its_checkpoint_and_says_how_to_go_on(
    cli: CommandRunner, ending: signal.Signals
) -> None:
    run = waiting_run(cli)
    go(cli, run)
    (cli.project / "hang").touch()
    process = started(cli, "resume", run.id)
    retry_until_blocking(lambda: (cli.project / "in-slow").exists())
    process.send_signal(ending)
    result = ended(process)
    assert result.code == 130
    assert f"podium: interrupted; run {run.id} stays at its checkpoint" in result.err
    assert f"podium resume {run.id}" in result.err
    assert "Traceback" not in result.err
    (cli.project / "hang").unlink()
    assert cli.run("resume", run.id).code == 0
    assert marks(cli) == ["first", "last"]


def test_a_run_another_process_hosts_is_locked_followed_and_cancelled(cli: CommandRunner) -> None:
    run = waiting_run(cli)
    go(cli, run)
    (cli.project / "hang").touch()
    process = started(cli, "resume", run.id)
    retry_until_blocking(lambda: (cli.project / "in-slow").exists())
    result = cli.run("resume", run.id)
    assert result.code == 7
    assert "another process" in result.err
    shown = cli.run("show", run.id)
    assert "status     running\n" in shown.out
    assert f"(alive, process {process.pid} on " in shown.out
    assert cli.run("runs", "--json").json["runs"][0]["hosted"] is True
    assert cli.run("cancel", run.id, "--json").json["run"]["status"] == "cancelled"
    assert ended(process).code == 1
    assert "run_cancelled" in cli.run("logs", run.id, "-f").out
    assert marks(cli) == ["first"]


@pytest.mark.soak
def test_a_stopped_terminal_holds_up_no_run(cli: CommandRunner) -> None:
    run = waiting_run(cli)
    go(cli, run)
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    with suppress(BlockingIOError):
        while os.write(writing, b"." * 4096):  # from now on who writes to it stands still
            pass
    os.set_blocking(writing, True)
    process = subprocess.Popen(
        [*PROGRAM, "--project", str(cli.project), "resume", run.id],
        cwd=ROOT,
        env=cli.environ,
        stdout=subprocess.PIPE,
        stderr=writing,
    )
    os.close(writing)
    retry_until_blocking(lambda: _status(cli, run) is RunStatus.SUCCEEDED)
    assert process.poll() is None
    with os.fdopen(reading, "rb") as stopped, process:
        output = stopped.read().decode().lstrip(".")
        assert process.wait(timeout=30) == 0
    # On a busy machine this may come so late that the view was given up; then it says so.
    assert "run_succeeded" in output or "the live view missed" in output


def _status(cli: CommandRunner, run: Run) -> RunStatus:
    async def work(podium: Podium) -> RunStatus:
        found = await (await podium.store()).read(lambda view: view.run(run.id))
        assert found is not None
        return found.status

    return cli.within(work)

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
from tests.integration.cli.desk import Desk, Said
from tests.integration.cli.hosting_program import NAME, SPEC
from tests.soaking import in_soak

PROGRAM = (sys.executable, "-m", "tests.integration.cli.hosting_program")
ROOT = Path(__file__).parents[3]


@pytest.fixture(autouse=True)
def one_more_flow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(KERNEL_FLOWS, NAME, SPEC)


def waiting_run(desk: Desk) -> Run:
    """A run that stands at its wait, hosted by nobody."""

    async def work(podium: Podium) -> Run:
        engine = await podium.hosting_engine()
        run = await engine.start(NAME)
        return await engine.finish(run.id, stop_when_waiting=True)

    run = desk.within(work)
    assert run.status is RunStatus.WAITING
    return run


def go(desk: Desk, run: Run) -> None:
    async def work(podium: Podium) -> None:
        await (await podium.engine()).signal(run.id, "go")

    desk.within(work)


def started(desk: Desk, *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [*PROGRAM, "--project", str(desk.project), *arguments],
        cwd=ROOT,
        env=desk.environ,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def ended(process: subprocess.Popen[str]) -> Said:
    out, err = process.communicate(timeout=120)
    return Said(process.returncode, out, err)


def marks(desk: Desk) -> list[str]:
    return (desk.project / "marks").read_text().split()


def test_a_run_that_still_waits_leaves_with_three(desk: Desk) -> None:
    run = waiting_run(desk)
    said = desk.run("resume", run.id)
    assert said.code == 3
    assert said.out == f"run {run.id} waiting\n"
    assert "waiting for go" in said.err


def test_a_resumed_run_ends_well_with_progress_on_stderr(desk: Desk) -> None:
    run = waiting_run(desk)
    go(desk, run)
    said = desk.run("resume", run.id, "--json")
    assert said.code == 0
    assert said.json["run"]["status"] == "succeeded"
    assert "step_completed" in said.err
    assert "run_succeeded" in said.err
    assert marks(desk) == ["first", "last"]


def test_a_failed_run_leaves_with_the_failures_own_code_and_can_be_retried(desk: Desk) -> None:
    run = waiting_run(desk)
    go(desk, run)
    (desk.project / "broke").touch()
    said = desk.run("resume", run.id)
    assert said.code == 6
    assert "no time left" in said.err
    (desk.project / "broke").unlink()
    assert desk.run("resume", run.id).code == 1
    assert desk.run("retry", run.id, "--from", "slow").code == 0
    assert marks(desk) == ["first", "last"]


@pytest.mark.parametrize("ending", [signal.SIGINT, in_soak(signal.SIGTERM)])
def test_an_interrupted_run_stays_at_its_checkpoint_and_says_how_to_go_on(
    desk: Desk, ending: signal.Signals
) -> None:
    run = waiting_run(desk)
    go(desk, run)
    (desk.project / "hang").touch()
    process = started(desk, "resume", run.id)
    retry_until_blocking(lambda: (desk.project / "in-slow").exists())
    process.send_signal(ending)
    said = ended(process)
    assert said.code == 130
    assert f"podium: interrupted; run {run.id} stays at its checkpoint" in said.err
    assert f"podium resume {run.id}" in said.err
    assert "Traceback" not in said.err
    (desk.project / "hang").unlink()
    assert desk.run("resume", run.id).code == 0
    assert marks(desk) == ["first", "last"]


def test_a_run_another_process_hosts_is_locked_followed_and_cancelled(desk: Desk) -> None:
    run = waiting_run(desk)
    go(desk, run)
    (desk.project / "hang").touch()
    process = started(desk, "resume", run.id)
    retry_until_blocking(lambda: (desk.project / "in-slow").exists())
    said = desk.run("resume", run.id)
    assert said.code == 7
    assert "another process" in said.err
    shown = desk.run("show", run.id)
    assert "status     running\n" in shown.out
    assert f"(alive, process {process.pid} on " in shown.out
    assert desk.run("runs", "--json").json["runs"][0]["hosted"] is True
    assert desk.run("cancel", run.id, "--json").json["run"]["status"] == "cancelled"
    assert ended(process).code == 1
    assert "run_cancelled" in desk.run("logs", run.id, "-f").out
    assert marks(desk) == ["first"]


@pytest.mark.soak
def test_a_stopped_terminal_holds_up_no_run(desk: Desk) -> None:
    run = waiting_run(desk)
    go(desk, run)
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    with suppress(BlockingIOError):
        while os.write(writing, b"." * 4096):  # from now on who writes to it stands still
            pass
    os.set_blocking(writing, True)
    process = subprocess.Popen(
        [*PROGRAM, "--project", str(desk.project), "resume", run.id],
        cwd=ROOT,
        env=desk.environ,
        stdout=subprocess.PIPE,
        stderr=writing,
    )
    os.close(writing)
    retry_until_blocking(lambda: _status(desk, run) is RunStatus.SUCCEEDED)
    assert process.poll() is None
    with os.fdopen(reading, "rb") as stopped, process:
        told = stopped.read().decode().lstrip(".")
        assert process.wait(timeout=30) == 0
    # On a busy machine this may come so late that the view was given up; then it says so.
    assert "run_succeeded" in told or "the live view missed" in told


def _status(desk: Desk, run: Run) -> RunStatus:
    async def work(podium: Podium) -> RunStatus:
        found = await (await podium.store()).read(lambda view: view.run(run.id))
        assert found is not None
        return found.status

    return desk.within(work)

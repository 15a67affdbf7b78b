"""A newer Podium over an older one: projects, records and keys of the older one stay in use."""

from __future__ import annotations

import re
import shutil
import subprocess
import tarfile
from pathlib import Path

import pytest

from podium import __version__
from tests.integration.cli.command_runner import CommandRunner
from tests.integration.deploy.bare_machine import HOME, ROOT, BareMachine, Packages, find_python

PREVIOUS = "30b61431dfff8817664c30dd88d822deb702ae11"
"""Last commit before the changelog speaks of changes since 0.1.0, which was not tagged."""

FROZEN = Path(__file__).parent / "frozen/podium-0.1.0.tar.xz"
"""Project and home that 0.1.0 left: a finished playbook, one whose process was killed in the agent's turn, and an operator's run.

The project was in `/mnt/project`, which is in what is recorded of the killed run.
"""


@pytest.fixture
def frozen(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> CommandRunner:
    cli = CommandRunner(tmp_path, capsys)
    with tarfile.open(FROZEN) as archive:
        archive.extractall(tmp_path, filter="data")
    return cli


def test_project_of_the_previous_version_is_read_proved_and_taken_back(
    frozen: CommandRunner,
) -> None:
    lines = [line.split() for line in frozen.run("runs", env={}).out.splitlines()[1:]]
    assert [line[1:3] for line in lines] == [
        ["succeeded", "operator"],
        ["interrupted", "playbook"],
        ["succeeded", "playbook"],
    ]
    runs = [line[0] for line in lines]
    for run in runs:
        assert "tool_completed" in frozen.run("show", run, env={}).out
        assert " completed; " in frozen.run("trace", run, env={}).out
    assert frozen.run("db", "check", env={}).out.endswith("sound\n")
    assert frozen.run("receipts", "verify", env={}).out == "5 receipts of 3 runs: sound\n"
    undone = frozen.run("undo", f"{runs[0]}#1", env={})
    assert (undone.code, "leads.archive: completed" in undone.out) == (0, True)
    assert frozen.run("receipts", "verify", env={}).out == "6 receipts of 4 runs: sound\n"


def test_run_that_was_killed_under_the_previous_version_is_resumed(frozen: CommandRunner) -> None:
    if shutil.which("bwrap") is None:
        pytest.skip("bubblewrap is not installed, which puts the project where it was")
    (run,) = frozen.run("runs", "--status", "interrupted", "--json", env={}).json["runs"]
    mounts = (
        "--dev-bind",
        "/",
        "/",
        "--tmpfs",
        "/mnt",
        "--bind",
        str(frozen.project),
        "/mnt/project",
    )
    done = subprocess.run(
        ["bwrap", *mounts, "--chdir", "/mnt/project", *frozen.command("resume", run["id"])],
        env=frozen.environ,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    assert (frozen.project / "version.txt").read_text() == "2.0\n"
    assert frozen.run("receipts", "verify", env={}).out == "8 receipts of 3 runs: sound\n"


@pytest.mark.soak
def test_upgraded_installation_finishes_what_the_previous_version_began(tmp_path: Path) -> None:
    packages, python = Packages(tmp_path / "packages"), find_python("system")
    previous, current = packages.build(previous_source(tmp_path)), packages.build(ROOT)
    for wheel in (previous, current):
        packages.download(python, str(wheel), "pipx", "uv")
    machine = BareMachine(tmp_path / "machine", packages)
    machine.add_tools()
    machine.install(previous, "uv")
    assert machine.podium("--version") == "podium 0.1.0\n"
    shop = f"{HOME}/shop"
    machine.podium("demo", "--keep", shop)
    waiting = machine.podium("run", "Discounts are wrong", "--mode", "bugfix", cwd=shop, codes=[3])
    assert "podium approve" in waiting

    machine.install(current, "uv")
    assert machine.podium("--version") == f"podium {__version__}\n"
    (run, delivered), statuses = zip(*rows(machine.podium("runs", cwd=shop)), strict=True)
    assert statuses == ("waiting", "succeeded")
    assert "pull request" in machine.podium("show", delivered, cwd=shop)
    assert ": sound" in machine.podium("receipts", "verify", cwd=shop)
    # What is approved is an exact call. Where the newer version describes it in more words, it asks again.
    for _ in range(2):
        approval = rows(machine.podium("approvals", cwd=shop))[0][0]
        machine.podium("approve", approval, cwd=shop)
        out = machine.podium("resume", run, cwd=shop, codes=[0, 3])
        if "Pipeline success!" in out:
            break
    assert "Pipeline success!" in out
    assert ": sound" in machine.podium("receipts", "verify", cwd=shop)
    assert ": sound" in machine.podium("db", "check", cwd=shop)


def rows(table: str) -> list[tuple[str, str]]:
    """Short id and status of each row."""
    return re.findall(r"^([0-9a-f]{8}) +(\w+)", table, re.MULTILINE)


def previous_source(folder: Path) -> Path:
    """Source of the previous version; the test skips where the history does not hold it."""
    source = folder / "previous"
    source.mkdir()
    archive = subprocess.run(
        ["git", "-C", ROOT, "archive", PREVIOUS], capture_output=True, check=False
    )
    if archive.returncode:
        pytest.skip(f"commit {PREVIOUS} is not in this clone: git fetch --unshallow")
    subprocess.run(["tar", "-x", "-C", source], input=archive.stdout, check=True)
    return source

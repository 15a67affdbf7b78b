"""The scripts under the names of the first prototype: what it was to be accepted by, one thing after another."""

from __future__ import annotations

import asyncio
import fcntl
import os
import pty
import struct
import subprocess
import termios
from collections.abc import Iterator
from pathlib import Path

import pytest

from podium.testing import retry_until
from tests.integration.cli.command_runner import CommandRunner
from tests.integration.duet.terminals import Terminals, duet_terminals


@pytest.fixture
def stage(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Iterator[Terminals]:
    with duet_terminals(CommandRunner(tmp_path, capsys)) as stage:
        yield stage


def tmux(stage: Terminals, *words: str) -> str:
    """As a person asks the server by its name."""
    return subprocess.run(
        ["tmux", "-L", "poli", *words],
        env={**stage.cli.environ, **stage.variables},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    ).stdout


def panes(stage: Terminals) -> list[list[str]]:
    """Each pane of the session, leftmost first: its process and the folder that this is in."""
    output = tmux(
        stage, "list-panes", "-t", "main", "-F", "#{pane_left} #{pane_pid} #{pane_current_path}"
    )
    rows = sorted((line.split(" ", 2) for line in output.splitlines()), key=lambda row: int(row[0]))
    return [row[1:] for row in rows]


def test_bootstrap_starts_both_programs_and_the_orchestrator_routes_there_and_back(
    stage: Terminals,
) -> None:
    left, right = stage.short / "left", stage.short / "right"
    for folder in (left, right):
        folder.mkdir()
    stage.variables |= {"PLANNER_CWD": str(left), "EXECUTER_CWD": str(right)}

    up = stage.script("scripts/bootstrap_tmux.sh")

    assert up.code == 0, up.err
    assert [folder for _, folder in panes(stage)] == [str(left), str(right)]
    for side in ("PLANNER", "EXECUTER"):
        (took,) = stage.happened(side, "took")
        assert took.text.startswith("Your message is in the file")
        (primer,) = stage.cli.home.glob(f"state/duets/*/{side.lower()}/messages/*.txt")
        assert primer.read_text().startswith(f"You are {side}")
        assert stage.happened(side, "state")[-1].text == "ready", "it did not acknowledge its part"
    before = panes(stage)

    routed = stage.script("proto/poli_orchestrator.py", "tidy up")

    assert routed.code == 0, routed.err
    assert routed.out.splitlines()[-1] == "DONE: True"
    assert next(event.type for event in stage.happened("PLANNER", "said")) == "plan"
    assert [event.type for event in stage.happened("EXECUTER", "said")] == ["result"]
    assert panes(stage) == before, "a program was started anew"
    assert "1. look" in attached(stage, "1. look")
    assert panes(stage) == before, "looking on ended a program"
    assert stage.script("scripts/kill_tmux.sh").code == 0
    assert stage.status()["pairs"][0]["up"] is False


def attached(stage: Terminals, awaited: str) -> str:
    """Return the output of a read-only attached terminal, up to the point at which it contains the awaited text."""
    shown = bytearray()
    manager, terminal = pty.openpty()
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 60, 400, 0, 0))
    os.set_blocking(manager, False)
    looking = subprocess.Popen(
        stage.cli.command("duet", "attach", "-r"),
        cwd=stage.cli.project,
        env={**stage.cli.environ, **stage.variables, "TERM": "xterm"},
        stdin=terminal,
        stdout=terminal,
        stderr=terminal,
        start_new_session=True,
    )

    def is_shown() -> bool:
        try:
            shown.extend(os.read(manager, 65536))
        except BlockingIOError:
            return False
        return awaited in shown.decode(errors="replace")

    try:
        asyncio.run(retry_until(is_shown, seconds=60))
    finally:
        looking.terminate()
        looking.wait(60)
        os.close(manager)
        os.close(terminal)
    return shown.decode(errors="replace")

"""Programs on a terminal that somebody else made: they are in front there, as if nothing stood around them."""

from __future__ import annotations

import signal
import sys
from pathlib import Path

import pytest

from podium.core.processes import ProcessSpec
from podium.sandbox import ProcessLauncher
from podium.sandbox.guard.processes import entry_of
from podium.testing import retry_until
from tests.integration.sandbox.confined import Place
from tests.integration.sandbox.terminals import CTRL_C, CTRL_Z, on_terminal
from tests.unit.sandbox.trees import alive

IN_FRONT = """
import os, sys
assert os.isatty(0) and os.isatty(1) and os.isatty(2)
assert os.getpgrp() == os.getpid() == os.tcgetpgrp(0), "not in front"
with open("/dev/tty", "w") as terminal:
    terminal.write("by its name\\n")
print("cwd", os.getcwd())
sys.exit(7)
"""

SLEEP = "sleep\x00100073"

SAYS = """
import os, signal, sys
def say(number, frame):
    size = os.get_terminal_size(0)
    print("heard", signal.Signals(number).name, size.columns, size.lines, flush=True)
for number in (signal.SIGINT, signal.SIGWINCH, signal.SIGCONT):
    signal.signal(number, say)
print("ready", flush=True)
while True:
    line = sys.stdin.readline().strip()
    if line == "stop":
        os.kill(os.getpid(), signal.SIGSTOP)
    elif line == "leave":
        sys.exit(0)
"""


async def test_a_program_is_in_front_and_its_code_is_given_on(
    launcher: ProcessLauncher, place: Place
) -> None:
    with on_terminal(await launcher.on_terminal(place.python(IN_FRONT))) as terminal:
        assert await terminal.exit_code() == 7, terminal.text
        assert "by its name" in terminal.text
        assert f"cwd {place.given}" in terminal.text


async def test_without_a_fence_it_is_the_same(tmp_path: Path) -> None:
    spawn = ProcessSpec(argv=(sys.executable, "-IS", "-c", IN_FRONT), cwd=str(tmp_path))
    with on_terminal(await ProcessLauncher().on_terminal(spawn)) as terminal:
        assert await terminal.exit_code() == 7, terminal.text


@pytest.mark.sample(1)
async def test_end_by_a_signal_is_reported_as_shells_do(
    launcher: ProcessLauncher, place: Place
) -> None:
    with on_terminal(await launcher.on_terminal(place.sh("kill -TERM $$"))) as terminal:
        assert await terminal.exit_code() == 128 + signal.SIGTERM


@pytest.mark.sample(1)
async def test_keys_sizes_and_stops_reach_the_program_and_it_lives_on(
    launcher: ProcessLauncher, place: Place
) -> None:
    with on_terminal(await launcher.on_terminal(place.python(SAYS))) as terminal:
        await terminal.shows("ready")
        terminal.resize(33, 111)
        await terminal.shows("heard SIGWINCH 111 33")
        terminal.type(CTRL_C)
        await terminal.shows("heard SIGINT")
        terminal.type(b"stop\r")
        await terminal.shows("heard SIGCONT")
        terminal.type(b"leave\r")
        assert await terminal.exit_code() == 0


async def test_a_shell_there_has_jobs(launcher: ProcessLauncher, place: Place) -> None:
    shell = place.spawn("bash", "--norc", "--noprofile", "-i", env={"PS1": "$ "})
    with on_terminal(await launcher.on_terminal(shell)) as terminal:
        terminal.type(b"sleep 100073\r")
        (sleep,) = await retry_until(lambda: alive(SLEEP))
        terminal.type(CTRL_Z)
        await terminal.shows("Stopped")
        terminal.type(b"fg\r")
        await retry_until(lambda: state_of(sleep) != "T")
        terminal.type(CTRL_C)
        await retry_until(lambda: not alive(SLEEP))
        terminal.type(b"echo then $?\r")
        await terminal.shows("then 130")
        terminal.type(b"exit 5\r")
        assert await terminal.exit_code() == 5
        assert "job control" not in terminal.text


def state_of(pid: int) -> str:
    entry = entry_of(pid)
    return entry.state if entry else ""

"""Trees whose Podium and guard are both dead."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

from podium.sandbox import LauncherSettings, ProcessLauncher, end_orphans
from podium.sandbox.guard.processes import entry_of
from podium.testing import retry_until, retry_until_blocking
from tests.unit.sandbox.trees import ESCAPES, ROOT, alive, new_token, python

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="marks are read from /proc")

# The escaped process survives the guard, since Podium is gone before it could look for it.
PODIUM = f"""
import asyncio, os, signal, sys
from tests.unit.sandbox.trees import python
from podium.sandbox import ProcessLauncher
from podium.sandbox.guard.processes import entry_of
async def main():
    process = await ProcessLauncher().start(python({(ESCAPES + "escape(); forever()")!r}, "T" + sys.argv[1]))
    print(process.pid, flush=True)
    sys.stdin.read()
    os.kill(entry_of(process.pid).parent, int(sys.argv[2]))
    os.kill(os.getpid(), signal.SIGKILL)
asyncio.run(main())
"""


def what_a_lost_podium_leaves(how: signal.Signals) -> str:
    """The token of a tree whose guard got the signal, and whose Podium was killed after it."""
    token = new_token()
    with subprocess.Popen(
        [sys.executable, "-c", PODIUM, token, str(how.value)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        cwd=ROOT,
    ) as podium:
        assert podium.stdout is not None
        podium.stdout.readline()
        retry_until_blocking(lambda: len(alive("T" + token)) == 2)
        podium.communicate(b"")
    return f"T{token}"


@pytest.mark.sample(1)
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGSTOP])
def test_what_a_dead_podium_and_its_lost_guard_left_is_found_and_ended(how: signal.Signals) -> None:
    # Every long-lived Podium on this machine looks for orphans, those of other tests too: one may be first.
    for _ in range(5):
        token = what_a_lost_podium_leaves(how)
        was_left = bool(alive(token))
        end_orphans()
        assert alive(token) == []
        if was_left:
            return
    pytest.fail("nothing was ever left to be ended")


async def test_the_trees_of_a_living_podium_are_left_alone() -> None:
    token = new_token()
    launcher = ProcessLauncher(LauncherSettings(grace_seconds=0.1))
    process = await launcher.start(python(ESCAPES + "escape(); forever()", token))
    await retry_until(lambda: len(alive(token)) == 2)
    end_orphans()
    assert len(alive(token)) == 2
    await process.end(grace_seconds=0.0)


def test_a_mark_of_another_pid_namespace_is_left_alone() -> None:
    mark = "1-999999-1-abcdef"
    code = "input()"
    with subprocess.Popen(
        [sys.executable, "-IS", "-c", code], stdin=subprocess.PIPE, env={"PODIUM_TREE": mark}
    ) as child:
        retry_until_blocking(lambda: (entry := entry_of(child.pid)) and entry.state == "S")
        end_orphans()
        child.communicate(b"\n")
        assert child.returncode == 0

"""Process from which guards are forked: lost, stopped or overrun, and trees start all the same."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from podium.core.errors import NotPossibleNow
from podium.sandbox import LauncherSettings, ProcessLauncher
from podium.sandbox.guard.processes import ProcessEntry, entry_of
from podium.sandbox.guard_pool import GuardPool
from podium.testing import retry_until, retry_until_blocking
from tests.unit.sandbox.trees import ROOT, alive, new_token, python

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="these look into /proc")

TALKS = "import sys; print('up'); sys.stdout.flush(); sys.stdin.read(); print('down')"


@pytest.fixture
def guard_pool() -> Iterator[GuardPool]:
    guard_pool = GuardPool()
    yield guard_pool
    guard_pool.kill()


async def test_a_tree_outlives_the_loss_of_where_its_guard_came_from() -> None:
    process = await ProcessLauncher().start(python(TALKS, interactive=True))
    lost = _guard_pool_of(process.pid)
    lost.send(signal.SIGKILL)
    await retry_until(lambda: _is_dead(lost))
    after = await ProcessLauncher().run(python("print('after')"))
    process.close_input()
    ended = await process.wait()
    assert (ended.exit_code, after.stdout) == (0, b"after\n")


async def test_stopped_guard_is_given_up_and_the_next_start_has_a_new_one() -> None:
    token = new_token()
    stopped = await _stopped_guard_pool()
    impatient = ProcessLauncher(LauncherSettings(start_seconds=0.2))
    with pytest.raises(NotPossibleNow, match="did not start"):
        await impatient.start(python("input()", token))
    await retry_until(lambda: _is_dead(stopped))
    assert alive(token) == []
    assert (await ProcessLauncher().run(python("print('after')"))).stdout == b"after\n"


async def test_start_cancelled_while_the_guard_is_stopped_returns() -> None:
    stopped = await _stopped_guard_pool()
    impatient = ProcessLauncher(LauncherSettings(start_seconds=0.2))
    starting = asyncio.create_task(impatient.start(python("input()")))
    await asyncio.sleep(0)
    starting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await starting
    assert _is_dead(stopped)


async def test_more_starts_than_the_line_holds_are_all_done(guard_pool: GuardPool) -> None:
    """Each asks for a guard that reads no order, and so leaves at once."""
    controls = []
    for _ in range(600):
        ours, theirs = _pair()
        guard_pool.fork_guard([theirs] * 4)
        os.close(theirs)
        controls.append(ours)
    messages = [await asyncio.to_thread(_all_of, ours) for ours in controls]
    assert all(words.startswith(b"guard ") for words in messages)


async def test_a_guard_holds_its_own_lines_alone() -> None:
    first = await ProcessLauncher().start(python("input()", interactive=True))
    second = await ProcessLauncher().start(python("input()", interactive=True))
    held = [_sockets_and_pipes(_guard_of(process.pid).pid) for process in (first, second)]
    guard_pool = _sockets_and_pipes(_guard_pool_of(second.pid).pid)
    for process in (first, second):
        await process.end(grace_seconds=0.0)
    assert held[0] & held[1] == set()
    assert guard_pool & (held[0] | held[1]) == set()


async def test_what_guards_are_forked_from_knows_nothing_of_podiums_environment(
    monkeypatch: pytest.MonkeyPatch, guard_pool: GuardPool
) -> None:
    monkeypatch.setenv("PODIUM_TEST_PASSWORD", "hunter2")
    ours, theirs = socket.socketpair()
    with ours, theirs:
        guard_pool.fork_guard([theirs.fileno()] * 4)
        pid = int(ours.recv(100).split()[1])
        environment = Path(f"/proc/{pid}/environ").read_bytes()
    assert b"PODIUM_TREE=" in environment
    assert b"hunter2" not in environment


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_it_ends_with_podium(how: signal.Signals) -> None:
    podium = subprocess.Popen(
        [sys.executable, "-c", PODIUM], stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, cwd=ROOT
    )
    assert podium.stdout is not None
    guard_pool = _guard_pool_of(int(podium.stdout.readline()))
    podium.send_signal(how)
    podium.wait()
    podium.stdout.close()
    retry_until_blocking(lambda: _is_dead(guard_pool))


def test_it_ends_with_podium_though_a_fork_of_that_holds_its_line() -> None:
    forking = PODIUM.replace("await asyncio.sleep(1000)", FORK_AND_LINGER)
    podium = subprocess.Popen(
        [sys.executable, "-c", forking], stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, cwd=ROOT
    )
    assert podium.stdout is not None
    guard_pool = _guard_pool_of(int(podium.stdout.readline()))
    fork = int(podium.stdout.readline())
    podium.kill()
    podium.wait()
    podium.stdout.close()
    try:
        retry_until_blocking(lambda: _is_dead(guard_pool))
    finally:
        with suppress(ProcessLookupError):
            os.kill(fork, signal.SIGKILL)


FORK_AND_LINGER = """
    import os, time
    fork = os.fork()
    if fork: print(fork, flush=True)
    time.sleep(1000)
""".strip()


def test_it_is_gone_before_podium_when_that_comes_to_its_end() -> None:
    ending = PODIUM.replace("await asyncio.sleep(1000)", "await process.end(0)")
    podium = subprocess.run(
        [sys.executable, "-W", "error", "-c", ending], capture_output=True, cwd=ROOT, check=False
    )
    assert (podium.returncode, podium.stderr) == (0, b"")


@pytest.mark.soak
def test_a_forked_copy_of_podium_starts_trees_of_its_own() -> None:
    copying = subprocess.run(
        [sys.executable, "-W", "error", "-c", COPYING], capture_output=True, cwd=ROOT, check=False
    )
    assert (copying.returncode, copying.stderr) == (0, b"")
    first, copied, again = copying.stdout.split()
    assert first == again != copied


COPYING = """
import asyncio, os
from podium.core.processes import ProcessSpec
from podium.sandbox import ProcessLauncher
from podium.sandbox.guard.processes import entry_of
async def nursery():
    process = await ProcessLauncher().start(ProcessSpec(argv=("sleep", "1000"), cwd="/"))
    print(entry_of(entry_of(process.pid).parent).parent, flush=True)
    await process.end(0)
asyncio.run(nursery())
copy = os.fork()
asyncio.run(nursery()) if copy == 0 else os.waitpid(copy, 0)
if copy: asyncio.run(nursery())
"""

PODIUM = """
import asyncio
from podium.core.processes import ProcessSpec
from podium.sandbox import ProcessLauncher
async def main():
    process = await ProcessLauncher().start(ProcessSpec(argv=("sleep", "1000"), cwd="/"))
    print(process.pid, flush=True)
    await asyncio.sleep(1000)
asyncio.run(main())
"""


async def _stopped_guard_pool() -> ProcessEntry:
    process = await ProcessLauncher().start(python("input()", interactive=True))
    guard_pool = _guard_pool_of(process.pid)
    await process.end(grace_seconds=0.0)
    guard_pool.send(signal.SIGSTOP)
    return guard_pool


def _guard_of(program: int) -> ProcessEntry:
    return _parent_of(_entry(program))


def _guard_pool_of(program: int) -> ProcessEntry:
    return _parent_of(_guard_of(program))


def _parent_of(entry: ProcessEntry) -> ProcessEntry:
    return _entry(entry.parent)


def _entry(pid: int) -> ProcessEntry:
    entry = entry_of(pid)
    assert entry is not None
    return entry


def _is_dead(process: ProcessEntry) -> bool:
    now = entry_of(process.pid)
    return now is None or now.is_zombie or now.start != process.start


def _sockets_and_pipes(pid: int) -> set[str]:
    folder = Path(f"/proc/{pid}/fd")
    targets = {os.readlink(link) for link in folder.iterdir()}
    return {target for target in targets if target.startswith(("socket:", "pipe:"))}


def _pair() -> tuple[int, int]:
    """Our end, on which no order will come, and the guard's."""
    ours, theirs = socket.socketpair()
    ours.shutdown(socket.SHUT_WR)
    return ours.detach(), theirs.detach()


def _all_of(descriptor: int) -> bytes:
    with os.fdopen(descriptor, "rb") as file:
        return file.read()

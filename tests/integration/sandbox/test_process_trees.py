"""The whole tree ends: with its program, with its turn, with Podium."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

from podium.core.processes import ProcessLimits
from podium.sandbox import LauncherSettings, ProcessLauncher
from podium.sandbox.guard.processes import entry_of
from podium.testing import retry_until, retry_until_blocking
from tests.unit.sandbox.trees import ESCAPES, ROOT, alive, new_token, python

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="whole trees are held on Linux")

QUICK = LauncherSettings(grace_seconds=0.2, linger_seconds=0.02)


async def test_a_descendant_that_forked_twice_and_left_the_session_dies_with_its_program() -> None:
    token = new_token()
    ended = await ProcessLauncher(QUICK).run(python(ESCAPES + "escape()", token))
    assert alive(token) == []
    assert ended.exit_code == 0
    assert ended.survivors_killed == 1


async def test_a_descendant_may_write_its_last_line_after_its_program_ended() -> None:
    code = """
import os, time
if os.fork() == 0:
    time.sleep(0.1)
    print("last line")
"""
    ended = await ProcessLauncher(LauncherSettings(linger_seconds=200.0)).run(python(code))
    assert ended.stdout == b"last line\n"
    assert ended.survivors_killed == 0
    assert ended.seconds < 200


async def test_a_tree_out_of_time_dies_though_it_ignores_the_request_to_end() -> None:
    token = new_token()
    spawn = python(ESCAPES + "escape(); forever()", token, limits=ProcessLimits(seconds=4))
    ended = await ProcessLauncher(QUICK).run(spawn)
    assert alive(token) == []
    assert ended.timed_out
    assert not ended.cancelled
    assert (ended.exit_code, ended.signal) == (None, signal.SIGKILL)
    assert ended.survivors_killed == 1


async def test_a_program_asked_to_end_may_end_in_its_own_way() -> None:
    code = """
import signal, sys, time
signal.signal(signal.SIGTERM, lambda *_: sys.exit(7))
print("ready", flush=True)
time.sleep(1000)
"""
    process = await ProcessLauncher().start(python(code))
    await retry_until(lambda: _handles_term(process.pid))
    ended = await process.end(grace_seconds=200.0)
    assert ended.exit_code == 7
    assert ended.cancelled
    assert ended.seconds < 200


async def test_cancelling_the_waiting_task_ends_the_tree_before_the_cancellation_goes_on() -> None:
    token = new_token()
    launcher = ProcessLauncher(QUICK)
    task = asyncio.create_task(launcher.run(python(ESCAPES + "escape(); forever()", token)))
    await retry_until(lambda: len(alive(token)) >= 2)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert alive(token) == []


async def test_an_impatient_second_cancellation_does_not_leave_the_tree_behind() -> None:
    token = new_token()
    launcher = ProcessLauncher(QUICK)
    task = asyncio.create_task(launcher.run(python(ESCAPES + "forever()", token)))
    await retry_until(lambda: _ignores_term(token))
    for _ in range(3):
        task.cancel()
        await asyncio.sleep(0)
    with pytest.raises(asyncio.CancelledError):
        await task
    assert alive(token) == []


async def test_cancelling_a_start_leaves_nothing_running() -> None:
    for _ in range(5):
        token = new_token()
        task = asyncio.create_task(ProcessLauncher(QUICK).start(python("while True: pass", token)))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert alive(token) == []


async def test_ending_twice_gives_the_same_end() -> None:
    process = await ProcessLauncher(QUICK).start(python("import time; time.sleep(1000)"))
    first = await process.end()
    assert await process.end() == first
    assert await process.wait() == first


async def test_a_stopped_program_can_be_ended() -> None:
    token = new_token()
    code = "import os, signal; os.kill(os.getpid(), signal.SIGSTOP)"
    process = await ProcessLauncher().start(python(code, token))
    await retry_until(lambda: _state(process.pid) == "T")
    ended = await process.end(grace_seconds=200.0)
    assert alive(token) == []
    assert ended.seconds < 200


async def test_a_process_whose_first_thread_is_gone_does_not_get_away() -> None:
    token = new_token()
    code = (
        ESCAPES
        + """
import ctypes, _thread
if os.fork() == 0:
    os.setsid()
    _thread.start_new_thread(time.sleep, (1000,))
    ctypes.CDLL(None).pthread_exit(None)
time.sleep(0.2)
"""
    )
    ended = await ProcessLauncher(QUICK).run(python(code, token))
    assert ended.exit_code == 0
    assert alive(token) == []


async def test_a_fork_bomb_that_ignores_requests_is_ended() -> None:
    token = new_token()
    code = """
import os, signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
for _ in range(8):  # on a busy machine it is ended late, and must not have eaten it by then
    if os.fork() == 0: os.setsid()
    time.sleep(0.1)
time.sleep(1000)
"""
    process = await ProcessLauncher(QUICK).start(python(code, token))
    await retry_until(lambda: len(alive(token)) >= 60)
    ended = await process.end(grace_seconds=0.0)
    assert alive(token) == []
    assert ended.survivors_killed >= 59


async def test_a_tree_with_too_many_processes_is_ended() -> None:
    token = new_token()
    code = """
import os, time
for _ in range(40):
    if os.fork() == 0: time.sleep(1000)
time.sleep(1000)
"""
    spawn = python(code, token, limits=ProcessLimits(processes=20))
    ended = await ProcessLauncher(QUICK).run(spawn)
    assert alive(token) == []
    assert ended.exit_code != 0
    if os.geteuid() == 0:
        assert b"more than 20 processes" in ended.stderr


def test_nothing_survives_when_podium_is_killed() -> None:
    token = new_token()
    podium = subprocess.Popen(
        [sys.executable, "-c", PODIUM, token],
        stdout=subprocess.PIPE,
        stdin=subprocess.DEVNULL,
        cwd=ROOT,
    )
    assert podium.stdout is not None
    first_pids = [int(word) for word in podium.stdout.readline().split()]
    guards = [entry.parent for pid in first_pids if (entry := entry_of(pid)) is not None]
    assert len(guards) == 3
    retry_until_blocking(lambda: len(alive(token)) == 7)  # Podium itself, and two in each tree
    podium.kill()
    podium.wait()
    podium.stdout.close()
    retry_until_blocking(lambda: alive(token) == [])
    retry_until_blocking(lambda: [pid for pid in guards if entry_of(pid)] == [])


PODIUM = f"""
import asyncio, sys
from tests.unit.sandbox.trees import python
from podium.sandbox import ProcessLauncher
async def main():
    spawn = python({(ESCAPES + "escape(); forever()")!r}, sys.argv[1])
    started = [await ProcessLauncher().start(spawn) for _ in range(3)]
    print(*(process.pid for process in started), flush=True)
    await asyncio.sleep(1000)
asyncio.run(main())
"""


def test_nothing_survives_when_podium_dies_while_a_fork_of_it_holds_the_lifeline() -> None:
    token = new_token()
    forking = PODIUM.replace("await asyncio.sleep(1000)", FORK_AND_LINGER)
    podium = subprocess.Popen(
        [sys.executable, "-c", forking, token],
        stdout=subprocess.PIPE,
        stdin=subprocess.DEVNULL,
        cwd=ROOT,
    )
    assert podium.stdout is not None
    programs = [int(word) for word in podium.stdout.readline().split()]
    fork = int(podium.stdout.readline())
    podium.kill()
    podium.wait()
    podium.stdout.close()
    try:
        retry_until_blocking(lambda: [pid for pid in programs if entry_of(pid)] == [])
        retry_until_blocking(lambda: alive(token) == [fork])
    finally:
        with suppress(ProcessLookupError):
            os.kill(fork, signal.SIGKILL)


def test_one_with_a_farewell_may_tidy_up_when_podium_is_killed(tmp_path: Path) -> None:
    token, lock = new_token(), tmp_path / "ref.lock"
    lock.touch()
    tidies = f"import os, signal; signal.signal(signal.SIGTERM, lambda *_: (os.unlink({str(lock)!r}), os._exit(0)))"
    podium = subprocess.Popen(
        [sys.executable, "-c", FAREWELL, token, f"{tidies}; print('ready', flush=True); signal.pause()"],
        stdout=subprocess.PIPE,
        stdin=subprocess.DEVNULL,
        cwd=ROOT,
    )  # fmt: skip
    assert podium.stdout is not None
    assert podium.stdout.readline() == b"ready\n"
    podium.kill()
    podium.wait()
    podium.stdout.close()
    retry_until_blocking(lambda: alive(token) == [])
    assert not lock.exists()


FAREWELL = """
import asyncio, sys
from tests.unit.sandbox.trees import python
from podium.sandbox import ProcessLauncher
async def main():
    spawn = python(sys.argv[2], sys.argv[1])
    process = await ProcessLauncher().start(spawn.model_copy(update={"farewell_seconds": 5.0, "interactive": True}))
    async for line in process.lines():
        print(line.decode().strip(), flush=True)
asyncio.run(main())
"""


FORK_AND_LINGER = """
    import os, time
    pid = os.fork()
    if pid: print(pid, flush=True)
    time.sleep(1000)
""".strip()


async def test_nothing_survives_when_the_guard_itself_is_killed() -> None:
    token = new_token()
    code = ESCAPES + "escape(); os.kill(os.getppid(), signal.SIGKILL); forever()"
    ended = await ProcessLauncher(QUICK).run(python(code, token))
    assert alive(token) == []
    assert (ended.exit_code, ended.signal) == (None, signal.SIGKILL)


async def test_a_guard_that_was_stopped_is_not_waited_for_without_end() -> None:
    token = new_token()
    code = ESCAPES + "escape(); os.kill(os.getppid(), signal.SIGSTOP); forever()"
    launcher = ProcessLauncher(QUICK.model_copy(update={"overdue_seconds": 0.2}))
    process = await launcher.start(python(code, token))
    guard = entry_of(process.pid)
    assert guard is not None
    await retry_until(lambda: _state(guard.parent) == "T")
    await process.end(grace_seconds=0.1)
    assert alive(token) == []


async def test_fifty_trees_at_once_all_end_with_their_own_output() -> None:
    launcher = ProcessLauncher(QUICK)
    token = new_token()
    spawns = [python(f"print({number})", token) for number in range(50)]
    ends = await asyncio.gather(*(launcher.run(spawn) for spawn in spawns))
    assert [int(ended.stdout) for ended in ends] == list(range(50))
    assert alive(token) == []


async def abort_turns(count: int) -> None:
    """Cancel trees at a different moment of their life each."""
    launcher = ProcessLauncher(QUICK.model_copy(update={"grace_seconds": 0.01}))
    token = new_token()
    spawn = python(ESCAPES + "escape(); escape(); forever()", token)
    for number in range(count):
        task = asyncio.create_task(launcher.run(spawn))
        await asyncio.wait({task}, timeout=(number % 30) * 0.004)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert alive(token) == []


@pytest.mark.soak
async def test_thirty_aborted_turns_leave_no_process() -> None:
    await abort_turns(30)


@pytest.mark.soak
@pytest.mark.timeout(1800)
async def test_a_thousand_aborted_turns_leave_no_process_and_no_descriptor() -> None:
    await abort_turns(1)
    before = len(os.listdir("/proc/self/fd"))
    began = time.monotonic()
    await abort_turns(1000)
    assert len(os.listdir("/proc/self/fd")) == before
    assert time.monotonic() - began < 1500


def _state(pid: int) -> str:
    entry = entry_of(pid)
    return entry.state if entry else ""


def _signals(pid: int, kind: str) -> int:
    try:
        with open(f"/proc/{pid}/status") as status:
            line = next(line for line in status if line.startswith(kind))
    except OSError:
        return 0
    return int(line.split()[1], 16)


def _handles_term(pid: int) -> bool:
    return bool(_signals(pid, "SigCgt") & 1 << (signal.SIGTERM - 1))


def _ignores_term(token: str) -> bool:
    return any(_signals(pid, "SigIgn") & 1 << (signal.SIGTERM - 1) for pid in alive(token))

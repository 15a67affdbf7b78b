"""A confined tree is a tree like any other: it is talked to, limited, ended whole, and leaves nothing."""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path

import pytest

from podium.core.errors import NotPossibleNow
from podium.core.processes import Mount, ProcessLimits
from podium.sandbox import ProcessLauncher
from podium.sandbox.confining.canary import BUBBLEWRAP, Mechanism
from podium.sandbox.guard.processes import entry_of, status_of
from podium.testing import retry_until
from tests.integration.sandbox.confined import Place
from tests.unit.sandbox.trees import ESCAPES, alive, new_token


async def test_input_output_and_exit_code_go_through(
    launcher: ProcessLauncher, place: Place
) -> None:
    ended = await launcher.run(place.sh("cat; echo oops >&2; exit 3", stdin=b"hello"))
    assert (ended.exit_code, ended.stdout, ended.stderr) == (3, b"hello", b"oops\n")


async def test_lines_come_as_they_are_written(launcher: ProcessLauncher, place: Place) -> None:
    script = 'read word; echo "got $word"; read word; echo "and $word"'
    process = await launcher.start(place.sh(script, interactive=True))
    lines = process.lines()
    await process.send(b"one\n")
    assert await anext(lines) == b"got one"
    await process.send(b"two\n")
    assert await anext(lines) == b"and two"
    process.close_input()
    assert (await process.wait()).exit_code == 0


async def test_variables_reach_the_program_and_no_command_line(
    launcher: ProcessLauncher, place: Place
) -> None:
    process = await launcher.start(
        place.sh('echo "$SECRET"; read x', env={"SECRET": "s3cret"}, interactive=True)
    )
    assert await anext(process.lines()) == b"s3cret"
    shown = [path.read_bytes() for path in Path("/proc").glob("[0-9]*/cmdline") if _readable(path)]
    await process.end(0.0)
    assert not any(b"s3cret" in line for line in shown if b"SECRET" not in line)


def _readable(path: Path) -> bool:
    try:
        path.read_bytes()
    except OSError:
        return False
    return True


async def test_nothing_outlives_the_program(launcher: ProcessLauncher, place: Place) -> None:
    token = new_token()
    ended = await launcher.run(place.python(ESCAPES + "escape(); print('left')", token))
    assert ended.stdout == b"left\n"
    assert alive(token) == []


async def test_a_tree_that_is_asked_to_end_has_time_for_last_words(
    launcher: ProcessLauncher, place: Place
) -> None:
    script = "trap 'echo last words; exit 0' TERM; echo up; while :; do sleep 0.02; done"
    process = await launcher.start(place.sh(script, interactive=True))
    lines = process.lines()
    assert await anext(lines) == b"up"
    ended = await process.end(5.0)
    assert [line async for line in lines] == [b"last words"]
    assert (ended.exit_code, ended.cancelled) == (0, True)


async def test_end_by_a_signal_is_distinguished_from_a_similar_exit_code(
    mechanism: Mechanism, launcher: ProcessLauncher, place: Place
) -> None:
    ended = await launcher.run(place.sh("exit 139"))
    assert (ended.exit_code, ended.signal) == (139, None)
    ended = await launcher.run(place.sh("kill -SEGV $$"))
    if mechanism.name == BUBBLEWRAP and not _reports_the_dead():
        assert ended.exit_code == 139
    else:
        assert (ended.exit_code, ended.signal) == (None, signal.SIGSEGV)


async def test_a_code_that_a_program_gave_when_it_was_asked_to_end_is_kept(
    mechanism: Mechanism, launcher: ProcessLauncher, place: Place
) -> None:
    if mechanism.name == BUBBLEWRAP and not _reports_the_dead():
        pytest.skip("this kernel does not tell how a process ended that others waited for")
    script = "trap 'exit 143' TERM; echo up; while :; do sleep 0.02; done"
    process = await launcher.start(place.sh(script, interactive=True))
    assert await anext(process.lines()) == b"up"
    ended = await process.end(5.0)
    assert (ended.exit_code, ended.signal) == (143, None)


def _reports_the_dead() -> bool:
    """As this kernel does for a child of our own."""
    child = os.fork()
    if child == 0:
        os._exit(3)
    handle = os.pidfd_open(child)
    os.waitpid(child, 0)
    status = status_of(handle)
    os.close(handle)
    return status == 3 << 8


async def test_a_tree_that_will_not_end_is_killed(launcher: ProcessLauncher, place: Place) -> None:
    token = new_token()
    ignores = "signal.signal(signal.SIGTERM, signal.SIG_IGN)"
    code = ESCAPES + f"{ignores}; escape(); print('up', flush=True); forever()"
    process = await launcher.start(place.python(code, token, interactive=True))
    assert await anext(process.lines()) == b"up"
    ended = await process.end(0.1)
    assert ended.signal == signal.SIGKILL
    assert alive(token) == []


async def test_a_tree_dies_with_its_guard(launcher: ProcessLauncher, place: Place) -> None:
    token = new_token()
    code = ESCAPES + "escape(); print('up', flush=True); forever()"
    process = await launcher.start(place.python(code, token, interactive=True))
    assert await anext(process.lines()) == b"up"
    pid = process.pid
    while pid and not _is_guard(pid):
        found = entry_of(pid)
        pid = found.parent if found else 0
    assert pid, "the program has no guard above it"
    os.kill(pid, signal.SIGKILL)
    await process.wait()
    await retry_until(lambda: alive(token) == [])


def _is_guard(pid: int) -> bool:
    return b"isolated.py" in Path(f"/proc/{pid}/cmdline").read_bytes()


@pytest.mark.sample(2)
@pytest.mark.parametrize("seconds", [0.001, 0.3])  # also before the walls are up
async def test_time_that_is_up_ends_it(
    launcher: ProcessLauncher, place: Place, seconds: float
) -> None:
    limits = ProcessLimits(seconds=seconds)
    ended = await launcher.run(place.sh("sleep 1000", limits=limits))
    assert ended.timed_out


@pytest.mark.sample(1)
async def test_memory_is_limited(launcher: ProcessLauncher, place: Place) -> None:
    code = "bytearray(400_000_000)"
    limits = ProcessLimits(memory_bytes=200_000_000)
    assert (await launcher.run(place.python(code, limits=limits))).exit_code != 0
    assert (await launcher.run(place.python(code))).exit_code == 0


async def test_the_size_of_files_is_limited(launcher: ProcessLauncher, place: Place) -> None:
    limits = ProcessLimits(file_bytes=1000)
    await launcher.run(place.sh("head -c 100000 /dev/zero > large", limits=limits))
    assert (place.given / "large").stat().st_size <= 1000


@pytest.mark.sample(1)
async def test_the_number_of_processes_is_limited(launcher: ProcessLauncher, place: Place) -> None:
    token = new_token()
    code = """
import os, time
for _ in range(200):
    if os.fork() == 0:
        time.sleep(1000)
time.sleep(1000)
"""
    limits = ProcessLimits(processes=20, seconds=30)
    ended = await launcher.run(place.python(code, token, limits=limits))
    assert ended.exit_code != 0
    assert not ended.timed_out
    assert alive(token) == []


async def test_a_few_processes_fit_into_the_limit(launcher: ProcessLauncher, place: Place) -> None:
    limits = ProcessLimits(processes=10, seconds=30)
    ended = await launcher.run(place.sh("ls | cat | cat | wc -l; sleep 0.3", limits=limits))
    assert (ended.exit_code, ended.stderr) == (0, b"")


async def test_what_a_sandbox_needs_itself_does_not_count(
    launcher: ProcessLauncher, place: Place
) -> None:
    limits = ProcessLimits(processes=1, seconds=30)
    ended = await launcher.run(place.python("import time; time.sleep(0.3)", limits=limits))
    assert (ended.exit_code, ended.stderr) == (0, b"")


async def test_a_mount_that_is_not_there_is_named(
    mechanism: Mechanism, launcher: ProcessLauncher, place: Place
) -> None:
    if mechanism.name != BUBBLEWRAP:
        pytest.skip("nothing is mounted there")
    missing = str(place.outside / "missing")
    confinement = place.confinement(mounts=(Mount(source=missing, target=missing),))
    with pytest.raises(NotPossibleNow, match=r"cannot be confined: bwrap: .*missing"):
        await launcher.run(place.sh("true", confinement=confinement))


@pytest.mark.sample(1)
async def test_starts_leave_no_descriptor_and_no_folder_behind(
    launcher: ProcessLauncher, place: Place
) -> None:
    await launcher.run(place.sh("true"))
    before = sorted(os.listdir("/proc/self/fd"))
    await launcher.run(place.sh("true"))
    with pytest.raises(NotPossibleNow):
        await launcher.run(place.sh("true", cwd="/nowhere"))
    await asyncio.sleep(0)
    assert sorted(os.listdir("/proc/self/fd")) == before

"""The launcher that starts nothing."""

from __future__ import annotations

import asyncio
import signal

import pytest

from podium.core.errors import ToolMissing
from podium.core.processes import ProcessExit, ProcessLimits, ProcessSpec
from podium.ports import Launcher
from podium.testing import FakeLauncher, retry_until

CLEAN = ProcessExit(exit_code=0, stdout=b"clean")


def a_spawn(*argv: str, seconds: float | None = None) -> ProcessSpec:
    return ProcessSpec(argv=argv, cwd="w", limits=ProcessLimits(seconds=seconds))


async def test_process_ends_as_the_longest_matching_table_entry_states() -> None:
    other = ProcessExit(exit_code=1)
    launcher: Launcher = FakeLauncher({("git",): other, ("git", "status"): CLEAN})
    assert await launcher.run(a_spawn("git", "status", "-s")) == CLEAN
    assert await launcher.run(a_spawn("git", "push")) == other


async def test_an_end_may_be_a_function_of_the_spawn() -> None:
    launcher = FakeLauncher({("echo",): lambda spawn: ProcessExit(exit_code=0, stdout=spawn.stdin)})
    spawn = a_spawn("echo").model_copy(update={"stdin": b"said"})
    assert (await launcher.run(spawn)).stdout == b"said"
    assert launcher.spawns == [spawn]


async def test_a_program_that_is_not_in_the_table_is_missing() -> None:
    launcher = FakeLauncher()
    with pytest.raises(ToolMissing, match="'cargo'"):
        await launcher.start(a_spawn("cargo", "test"))
    assert launcher.spawns == []


async def test_a_process_without_an_end_lives_until_it_is_ended() -> None:
    process = await FakeLauncher({("serve",): None}).start(a_spawn("serve"))
    assert process.alive
    ended = await process.end()
    assert (ended.exit_code, ended.signal, ended.cancelled) == (None, signal.SIGTERM, True)
    assert await process.wait() == ended
    assert not process.alive


async def test_a_process_that_would_never_end_meets_its_limit() -> None:
    launcher = FakeLauncher({("serve",): None})
    ended = await launcher.run(a_spawn("serve", seconds=30))
    assert (ended.timed_out, ended.seconds) == (True, 30)


async def test_cancelling_a_run_ends_its_process() -> None:
    launcher = FakeLauncher({("serve",): None})
    running = asyncio.create_task(launcher.run(a_spawn("serve")))
    await retry_until(lambda: launcher.processes)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert not launcher.processes[0].alive


async def test_two_processes_never_share_a_pid() -> None:
    launcher = FakeLauncher({("a",): CLEAN})
    pids = {(await launcher.start(a_spawn("a"))).pid for _ in range(3)}
    assert len(pids) == 3

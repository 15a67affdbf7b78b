"""Contract of every launcher, whether it starts real processes or none."""

from __future__ import annotations

import asyncio
import signal
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest

from podium.core.errors import ToolMissing
from podium.core.processes import Confinement, ProcessExit, ProcessLimits, ProcessSpec
from podium.ports import Launcher, Process
from podium.sandbox import LauncherSettings, ProcessLauncher
from podium.testing import FakeLauncher
from tests.integration.sandbox.confined import launcher_by, mechanisms

QUICK = ProcessSpec(argv=("sh", "-c", "cat; echo oops >&2; exit 3"), cwd="/", stdin=b"hello")
TALKING = ProcessSpec(
    argv=("sh", "-c", 'read a; echo one; echo "$a"; echo; printf last'),
    cwd="/",
    interactive=True,
)
ENDLESS = ProcessSpec(argv=("sh", "-c", "while :; do sleep 1000; done"), cwd="/")


def real() -> Launcher:
    return ProcessLauncher(LauncherSettings(grace_seconds=0.5, linger_seconds=0.01))


def fake() -> Launcher:
    ended = ProcessExit(exit_code=3, stdout=b"hello", stderr=b"oops\n", seconds=0.01)
    talk = ProcessExit(exit_code=0, stdout=b"one\ntwo\n\nlast", seconds=0.01)
    return FakeLauncher({QUICK.argv: ended, TALKING.argv: talk, ENDLESS.argv: None})


class Confined:
    """The real one, with walls around everything it starts."""

    def __init__(self, mechanism: str) -> None:
        found = mechanisms().get(mechanism)
        if found is None:
            pytest.skip(f"no {mechanism} on this machine")
        self._inner = launcher_by(found)

    async def start(self, spawn: ProcessSpec) -> Process:
        return await self._inner.start(_walled(spawn))

    async def run(self, spawn: ProcessSpec) -> ProcessExit:
        return await self._inner.run(_walled(spawn))

    async def on_terminal(self, spawn: ProcessSpec) -> tuple[str, ...]:
        return await self._inner.on_terminal(_walled(spawn))


def _walled(spawn: ProcessSpec) -> ProcessSpec:
    walls = Confinement(kind="kernel", network="none")
    return spawn.model_copy(update={"confinement": walls})


LAUNCHERS: dict[str, Callable[[], Launcher]] = {
    "ProcessLauncher": real,
    "FakeLauncher": fake,
    "bubblewrap": lambda: Confined("bubblewrap"),
    "landlock": lambda: Confined("landlock"),
}


@pytest.fixture(params=list(LAUNCHERS.values()), ids=list(LAUNCHERS))
def launcher(request: pytest.FixtureRequest) -> Launcher:
    made: Launcher = request.param()
    return made


async def test_a_run_gives_exit_code_and_output(launcher: Launcher) -> None:
    ended = await launcher.run(QUICK)
    assert (ended.exit_code, ended.signal) == (3, None)
    assert (ended.stdout, ended.stderr) == (b"hello", b"oops\n")
    assert not ended.timed_out
    assert not ended.cancelled


async def test_a_started_process_has_a_pid_and_can_be_waited_for_more_than_once(
    launcher: Launcher,
) -> None:
    process = await launcher.start(QUICK)
    assert process.pid > 0
    first, second = await asyncio.gather(process.wait(), process.wait())
    assert first == second == await process.wait()


@pytest.mark.sample(2)
async def test_an_ended_process_says_that_it_was_cancelled(launcher: Launcher) -> None:
    process = await launcher.start(ENDLESS)
    ended = await process.end()
    assert (ended.exit_code, ended.signal) == (None, signal.SIGTERM)
    assert ended.cancelled
    assert await process.wait() == ended


async def test_ending_what_has_ended_changes_nothing(launcher: Launcher) -> None:
    process = await launcher.start(QUICK)
    ended = await process.wait()
    assert await process.end() == ended
    assert not ended.cancelled


async def test_a_process_out_of_time_is_ended(launcher: Launcher) -> None:
    spawn = ENDLESS.model_copy(update={"limits": ProcessLimits(seconds=0.05)})
    ended = await launcher.run(spawn)
    assert ended.timed_out
    assert ended.exit_code is None


async def test_a_cancelled_run_hands_the_cancellation_on(launcher: Launcher) -> None:
    task = asyncio.create_task(launcher.run(ENDLESS))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_a_program_that_is_not_there_is_named(launcher: Launcher) -> None:
    with pytest.raises(ToolMissing, match="no-such-program"):
        await launcher.start(ProcessSpec(argv=("no-such-program",), cwd="/"))
    with pytest.raises(ToolMissing, match="no-such-program"):
        await launcher.run(ProcessSpec(argv=("no-such-program",), cwd="/"))


async def test_an_interactive_process_is_spoken_with_line_by_line(launcher: Launcher) -> None:
    process = await launcher.start(TALKING)
    await process.send(b"two\n")
    messages = [line async for line in process.lines()]
    assert messages == [b"one", b"two", b"", b"last"]
    assert (await process.wait()).exit_code == 0


async def test_the_lines_of_a_process_that_is_ended_come_to_their_end(launcher: Launcher) -> None:
    process = await launcher.start(ENDLESS.model_copy(update={"interactive": True}))
    reading = asyncio.create_task(_all_lines(process))
    await process.end()
    assert await reading == []
    await process.send(b"to nobody\n")
    process.close_input()


async def _all_lines(process: Process) -> list[bytes]:
    return [line async for line in process.lines()]


async def test_a_command_for_a_terminal_is_given_for_programs_that_are_there(
    launcher: Launcher, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Nobody will come for what is written for the command.
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    assert await launcher.on_terminal(QUICK)
    with pytest.raises(ToolMissing):
        await launcher.on_terminal(ProcessSpec(argv=("no-such-program",), cwd="/"))

"""A tree on a terminal ends with its program, with the terminal, and with whoever looks after it."""

from __future__ import annotations

import os
import signal
import sys
import tempfile
from pathlib import Path

import pytest

from podium.core.errors import NotPossibleNow, ToolMissing, UserMustAct
from podium.core.processes import ExecRules, ProcessLimits, ProcessSpec
from podium.sandbox import ProcessLauncher
from podium.sandbox.confining.canary import BUBBLEWRAP, LANDLOCK, Mechanism
from podium.sandbox.terminal.launch_spec import remove_stale_launch_folders
from podium.testing import retry_until
from tests.integration.sandbox.confined import Place, launcher_by, mechanism_here, mechanisms
from tests.integration.sandbox.terminals import guard_of, is_gone, on_terminal
from tests.soaking import in_soak
from tests.unit.sandbox.trees import ESCAPES, alive, new_token


@pytest.fixture(params=[BUBBLEWRAP, in_soak(LANDLOCK)])
def mechanism(request: pytest.FixtureRequest) -> Mechanism:
    """Both are tried in test_on_terminal.py, and attacked on a terminal in tests/attacks."""
    return mechanism_here(request.param)


STAYS = ESCAPES + "escape(); print('up', flush=True); forever()"


@pytest.fixture
def launch_spec(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder of launch specs in this test."""
    folder = tmp_path / "papers"
    folder.mkdir()
    # The one way to look at a place that others use meanwhile.
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


async def test_nothing_outlives_the_program(
    launcher: ProcessLauncher, place: Place, launch_spec: Path
) -> None:
    token = new_token()
    spawn = place.python(ESCAPES + "escape(); print('left')", token)
    with on_terminal(await launcher.on_terminal(spawn)) as terminal:
        assert await terminal.exit_code() == 0, terminal.text
        assert "left" in terminal.text
    assert alive(token) == []
    assert list(launch_spec.iterdir()) == []


async def test_without_a_fence_nothing_outlives_it_either() -> None:
    token = new_token()
    argv = (sys.executable, "-IS", "-c", ESCAPES + "escape(); print('left')", token)
    command = await ProcessLauncher().on_terminal(ProcessSpec(argv=argv, cwd="/"))
    with on_terminal(command) as terminal:
        assert await terminal.exit_code() == 0, terminal.text
    assert alive(token) == []


async def test_a_tree_goes_with_its_terminal(
    launcher: ProcessLauncher, place: Place, launch_spec: Path
) -> None:
    token = new_token()
    with on_terminal(await launcher.on_terminal(place.python(STAYS, token))) as terminal:
        await terminal.shows("up")
        terminal.go_away()
        assert await terminal.exit_code() == 128 + signal.SIGKILL
    assert alive(token) == []
    assert list(launch_spec.iterdir()) == []


@pytest.mark.soak
async def test_a_program_whose_terminal_goes_has_time_for_last_words(
    launcher: ProcessLauncher, place: Place
) -> None:
    script = "trap 'sleep 0.3; echo bye > last; exit 0' HUP; echo up; while :; do sleep 0.02; done"
    with on_terminal(await launcher.on_terminal(place.sh(script))) as terminal:
        await terminal.shows("up")
        terminal.go_away()
        await terminal.exit_code()
    assert (place.given / "last").read_text() == "bye\n"


@pytest.mark.parametrize("who", ["attendant", "guard"])
async def test_a_tree_dies_with_who_looks_after_it(
    launcher: ProcessLauncher, place: Place, who: str
) -> None:
    token = new_token()
    with on_terminal(await launcher.on_terminal(place.python(STAYS, token))) as terminal:
        await terminal.shows("up")
        guard = guard_of(terminal)
        os.kill(terminal.pid if who == "attendant" else guard, signal.SIGKILL)
        assert await terminal.exit_code() in (-signal.SIGKILL, 128 + signal.SIGKILL)
        await retry_until(lambda: is_gone(guard) and not alive(token))


async def test_launch_spec_is_taken_once_and_then_gone(
    place: Place, launcher: ProcessLauncher
) -> None:
    command = await launcher.on_terminal(place.sh("echo done"))
    assert (Path(command[-1]) / "order").stat().st_mode & 0o777 == 0o600
    with on_terminal(command) as terminal:
        assert await terminal.exit_code() == 0
    assert not Path(command[-1]).exists()
    with on_terminal(command) as again:
        assert await again.exit_code() == 126
        assert "start it again" in again.text


async def test_abandoned_launch_specs_are_removed_and_those_in_use_stay(
    launcher: ProcessLauncher, place: Place, launch_spec: Path
) -> None:
    forgotten = Path((await launcher.on_terminal(place.sh("echo done")))[-1])
    waiting = Path((await launcher.on_terminal(place.sh("echo done")))[-1])
    token = new_token()
    with on_terminal(await launcher.on_terminal(place.python(STAYS, token))) as terminal:
        await terminal.shows("up")
        for folder in launch_spec.iterdir():
            if folder != waiting:
                os.utime(folder, (0, 0))
        used = set(launch_spec.iterdir()) - {forgotten, waiting}
        remove_stale_launch_folders()
        assert set(launch_spec.iterdir()) == used | {waiting}


async def test_what_cannot_be_started_is_reported_before_and_leaves_nothing(
    launcher: ProcessLauncher, place: Place, launch_spec: Path
) -> None:
    with pytest.raises(ToolMissing):
        await launcher.on_terminal(place.spawn("no-such-program"))
    with pytest.raises(NotPossibleNow):
        await launcher.on_terminal(place.spawn("sh", cwd="/no/such/folder"))
    with pytest.raises(UserMustAct, match="not defined"):
        await launcher.on_terminal(place.spawn("sh", env={"KEY": "secret://UNKNOWN"}))
    assert list(launch_spec.iterdir()) == []


async def test_start_failure_is_reported_on_the_terminal(
    launcher: ProcessLauncher, place: Place
) -> None:
    tool = place.given / "tool"
    tool.write_text("#!/bin/sh\n")
    tool.chmod(0o700)
    command = await launcher.on_terminal(place.spawn("./tool"))
    tool.unlink()
    with on_terminal(command) as terminal:
        assert await terminal.exit_code() == 126
        assert "podium: './tool' cannot be executed: No such file" in terminal.text


async def test_a_program_that_may_not_be_started_is_not(
    launcher: ProcessLauncher, place: Place
) -> None:
    confinement = place.confinement(execs=ExecRules(refused={"env": "not here"}))
    command = await launcher.on_terminal(place.spawn("env", confinement=confinement))
    with on_terminal(command) as terminal:
        assert await terminal.exit_code() == 126
        assert "podium: refused: env: env: not here" in terminal.text


async def test_without_what_was_mounted_nothing_runs(place: Place) -> None:
    mechanism = mechanisms().get(BUBBLEWRAP)
    if mechanism is None:
        pytest.skip("no bubblewrap on this machine")
    command = await launcher_by(mechanism).on_terminal(place.sh("echo it runs"))
    place.seen.rename(place.outside / "elsewhere")
    with on_terminal(command) as terminal:
        assert await terminal.exit_code() == 126
        assert "podium: 'sh' cannot be confined" in terminal.text
        assert "it runs" not in terminal.text


async def test_limits_hold(launcher: ProcessLauncher, place: Place) -> None:
    limits = ProcessLimits(file_bytes=1000, processes=5, seconds=60)
    script = "trap '' XFSZ; head -c 5000 /dev/zero > big; wc -c < big; for i in 1 2 3 4 5 6 7 8; do sleep 100 & done; wait"
    with on_terminal(await launcher.on_terminal(place.sh(script, limits=limits))) as terminal:
        assert await terminal.exit_code() != 0
        assert "1000" in terminal.text


async def test_temporary_files_have_a_bound(place: Place) -> None:
    mechanism = mechanisms().get(BUBBLEWRAP)
    if mechanism is None:
        pytest.skip("no bubblewrap on this machine")
    limits = ProcessLimits(temporary_bytes=3_000_000, seconds=60)
    script = "for to in /tmp /var/tmp; do head -c 2000000 /dev/zero > $to/part; done; sleep 60"
    command = await launcher_by(mechanism).on_terminal(place.sh(script, limits=limits))
    with on_terminal(command) as terminal:
        assert await terminal.exit_code() == 137
        assert "stopped: more than 3 MB of temporary files" in terminal.text

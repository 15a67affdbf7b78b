"""The commands that make a workspace usable, run by the real launcher."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

import pytest

from podium.core.errors import BadInput, SetUpFailed, WorkspaceTampered
from podium.core.processes import Confinement, ProcessExit
from podium.core.workspaces import SetupSpec
from podium.git.set_up import TAIL_LINES, SetupCommands, check_set_up, run_commands
from podium.ports import Launcher
from podium.sandbox import ProcessLauncher
from podium.testing import FakeLauncher, retry_until


class Scene:
    """A workspace on paper, a launcher, and everything that was told."""

    def __init__(self, folder: Path, launcher: Launcher | None = None) -> None:
        self.worktree = folder / "worktree"
        self.private = folder / "private"
        self.worktree.mkdir()
        (self.private / "home").mkdir(parents=True)
        self.messages: list[str] = []
        self.confinement = Confinement()
        self.launcher = launcher or ProcessLauncher()

    async def set_up(self, set_up: SetupSpec) -> None:
        async def confinement() -> Confinement:
            return self.confinement

        env = {"WEB_PORT": "20001", "HOME": str(self.private / "home")}
        commands = SetupCommands(str(self.worktree), env, self.launcher, confinement)
        await run_commands(set_up, commands, self.messages.append)


def python(code: str) -> tuple[str, ...]:
    return (sys.executable, "-c", code)


async def test_commands_run_in_order_in_the_workspace_with_its_ports_and_home(
    tmp_path: Path,
) -> None:
    scene = Scene(tmp_path)
    write = "import os; open('made', 'a').write('{} ' + os.environ['WEB_PORT'] + ' ' + os.environ['HOME'] + '\\n')"
    await scene.set_up(
        SetupSpec(after_create=(python(write.format("one")), python(write.format("two"))))
    )
    home = scene.private / "home"
    made = (scene.worktree / "made").read_text()
    assert made == f"one 20001 {home}\ntwo 20001 {home}\n"


async def test_progress_names_every_command_and_passes_its_lines_on(tmp_path: Path) -> None:
    scene = Scene(tmp_path)
    await scene.set_up(SetupSpec(after_create=(("echo", "hello"), ("true",))))
    assert scene.messages == ["set-up 1/2: echo hello", "  hello", "set-up 2/2: true"]


async def test_every_command_starts_inside_the_current_confinement(
    tmp_path: Path,
) -> None:
    done = ProcessExit(exit_code=0)
    launcher = FakeLauncher({("npm",): done, ("check",): done})
    scene = Scene(tmp_path, launcher)
    scene.confinement = Confinement(kind="kernel", network="none", pinned=("x",))
    await scene.set_up(SetupSpec(after_create=(("npm", "ci"),), ready=("check",)))
    assert [spawn.argv for spawn in launcher.spawns] == [("npm", "ci"), ("check",)]
    assert all(spawn.confinement == scene.confinement for spawn in launcher.spawns)


async def test_tampering_found_before_a_command_keeps_it_from_starting(tmp_path: Path) -> None:
    launcher = FakeLauncher({("npm",): ProcessExit(exit_code=0)})
    scene = Scene(tmp_path, launcher)

    async def tampered() -> Confinement:
        raise WorkspaceTampered("a zone is a link now")

    commands = SetupCommands(str(scene.worktree), {}, launcher, tampered)
    with pytest.raises(WorkspaceTampered):
        await run_commands(SetupSpec(after_create=(("npm",),)), commands, scene.messages.append)
    assert launcher.spawns == []


async def test_failed_command_ends_the_setup_and_the_end_of_its_output_is_reported(
    tmp_path: Path,
) -> None:
    scene = Scene(tmp_path)
    fail = "import sys\nfor n in range(100): print('line', n)\nprint('oh no', file=sys.stderr)\nsys.exit(3)"
    with pytest.raises(SetUpFailed) as caught:
        await scene.set_up(SetupSpec(after_create=(python(fail), ("touch", "never"))))
    assert "exit code 3" in str(caught.value)
    assert caught.value.output[-1] == "oh no"
    assert f"line {100 - TAIL_LINES}" in caught.value.output
    assert f"line {100 - TAIL_LINES - 1}" not in caught.value.output
    assert not (scene.worktree / "never").exists()


async def test_a_command_that_reads_its_input_meets_the_end_of_it(tmp_path: Path) -> None:
    scene = Scene(tmp_path)
    await scene.set_up(SetupSpec(after_create=(("cat",),), seconds=60))
    assert scene.messages == ["set-up 1/1: cat"]


async def test_a_command_that_takes_too_long_is_ended_with_all_its_children(tmp_path: Path) -> None:
    scene = Scene(tmp_path)
    with pytest.raises(SetUpFailed, match="timed out"):
        await scene.set_up(SetupSpec(after_create=(("sleep", "600"),), seconds=0.3))


async def test_the_readiness_check_is_asked_until_it_succeeds(tmp_path: Path) -> None:
    scene = Scene(tmp_path)
    third_time = (
        "import sys, pathlib; f = pathlib.Path('tries'); f.write_text((f.read_text() if f.exists() "
        "else '') + '.'); sys.exit(len(f.read_text()) < 3)"
    )
    await scene.set_up(SetupSpec(ready=python(third_time), seconds=60))
    assert (scene.worktree / "tries").read_text() == "..."


async def test_readiness_check_that_never_succeeds_shows_its_last_output(tmp_path: Path) -> None:
    scene = Scene(tmp_path)
    with pytest.raises(SetUpFailed, match="never succeeded") as caught:
        await scene.set_up(SetupSpec(ready=("sh", "-c", "echo 'no db'; exit 1"), seconds=2))
    assert caught.value.output == ("no db",)


async def test_a_set_up_that_is_called_off_leaves_no_process(tmp_path: Path) -> None:
    scene = Scene(tmp_path)
    stay = "import os, time; open('pid', 'w').write(str(os.getpid())); print('up', flush=True); time.sleep(600)"
    task = asyncio.ensure_future(scene.set_up(SetupSpec(after_create=(python(stay),))))
    await retry_until(lambda: "  up" in scene.messages)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    with pytest.raises(ProcessLookupError):
        os.kill(int((scene.worktree / "pid").read_text()), 0)


def test_what_cannot_succeed_is_known_before_anything_is_made(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="no such file"):
        check_set_up(SetupSpec(copy_files=(".env",)), tmp_path)
    with pytest.raises(BadInput, match="variable"):
        check_set_up(SetupSpec(ports=("web",)), tmp_path)

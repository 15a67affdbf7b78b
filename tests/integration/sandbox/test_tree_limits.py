"""Limits of whole process trees: a breach ends the tree and is named, and nothing else is."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from podium.core.processes import Confinement, Mount, ProcessExit, ProcessLimits, ProcessSpec
from podium.sandbox import ProcessLauncher
from podium.sandbox.guard.limits import ControlGroup, parents
from podium.tools.builtin.commands import failure
from tests.soaking import in_soak

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="trees are counted in /proc")

MEGABYTE = 1_000_000
FORKS = """
import os, time
for _ in range({count}):
    if os.fork() == 0:
        time.sleep({seconds})
        os._exit(0)
time.sleep({seconds})
"""
GROWS = f"""
import time
kept = []
for _ in range(60):
    kept.append(bytearray(b"1" * {5 * MEGABYTE}))
    time.sleep(0.05)
"""
SHARES = f"""
import mmap, time
kept = mmap.mmap(-1, {300 * MEGABYTE})
for _ in range(60):
    kept.write(b"1" * {5 * MEGABYTE})
    time.sleep(0.05)
"""


async def ran(work: Path, *argv: str, confined: bool = True, **limits: int) -> ProcessExit:
    mounts = (Mount(source=str(work), target=str(work), writable=True),)
    fence = Confinement(kind="kernel", network="none", mounts=mounts) if confined else Confinement()
    given = ProcessLimits(seconds=120, **limits)
    spawn = ProcessSpec(argv=argv, cwd=str(work), limits=given, confinement=fence)
    return await ProcessLauncher().run(spawn)


@pytest.mark.sample(1)
@pytest.mark.parametrize("confined", [True, False])
async def test_tree_of_too_many_processes_is_stopped_with_the_reason(
    tmp_path: Path, confined: bool
) -> None:
    forks = FORKS.format(count=100, seconds=60)
    ended = await ran(tmp_path, "python3", "-c", forks, confined=confined, processes=20)
    assert ended.signal == 9
    assert failure(ended, 120) == "stopped: more than 20 processes (`sandbox: processes:`)"
    assert b"podium: stopped: more than 20 processes" in ended.stderr


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    ("confined", "program"),
    [(True, GROWS), (False, SHARES), in_soak(True, SHARES), in_soak(False, GROWS)],
    ids=["private", "shared unconfined", "shared", "private unconfined"],
)
async def test_tree_that_takes_too_much_memory_is_stopped_with_the_reason(
    tmp_path: Path, confined: bool, program: str
) -> None:
    limit = 100 * MEGABYTE
    ended = await ran(
        tmp_path, "python3", "-c", program, confined=confined, tree_memory_bytes=limit
    )
    assert failure(ended, 120) == "stopped: more than 100 MB of memory (`sandbox: memory_mb:`)"


async def test_memory_that_forks_share_counts_once(tmp_path: Path) -> None:
    shared = "kept = [str(n) * 100 for n in range(50_000)]\n"
    forks = shared + FORKS.format(count=10, seconds=1)
    ended = await ran(tmp_path, "python3", "-c", forks, tree_memory_bytes=150 * MEGABYTE)
    assert (ended.exit_code, ended.breaches) == (0, ())


@pytest.mark.parametrize("line", ["{}", "{}; exit $?"], ids=["program", "shell"])
async def test_file_that_grows_too_large_is_named(tmp_path: Path, line: str) -> None:
    line = line.format("head -c 3000000 /dev/zero > large")
    ended = await ran(tmp_path, "sh", "-c", line, file_bytes=2 * MEGABYTE)
    assert ended.exit_code != 0
    assert ended.breaches == ("stopped: a file grew to more than 2 MB (`sandbox: file_mb:`)",)
    assert (tmp_path / "large").stat().st_size <= 2 * MEGABYTE


@pytest.mark.parametrize("words", ["413 File too large", "uploads: No space left on device"])
async def test_what_a_program_prints_is_no_breach(tmp_path: Path, words: str) -> None:
    line = f"echo {words} >&2; exit 1"
    ended = await ran(
        tmp_path, "sh", "-c", line, file_bytes=2 * MEGABYTE, temporary_bytes=3 * MEGABYTE
    )
    assert (ended.exit_code, ended.breaches) == (1, ())
    assert failure(ended, 120) == "exit code 1"


@pytest.mark.parametrize("folder", ["/tmp", "/var/tmp", "/dev/shm", "/run"])
async def test_temporary_files_have_a_bound(tmp_path: Path, folder: str) -> None:
    line = f"head -c 9000000 /dev/zero > {folder}/large"
    ended = await ran(tmp_path, "sh", "-c", line, temporary_bytes=3 * MEGABYTE)
    assert ended.exit_code != 0
    [breach] = ended.breaches
    assert breach == "temporary files filled the 3 MB allowed (`sandbox: temporary_mb:`)"


async def test_temporary_files_of_all_folders_have_one_bound(tmp_path: Path) -> None:
    folders = ("/tmp", "/var/tmp", "/dev/shm", "/run")
    lines = [f"head -c 2000000 /dev/zero > {folder}/part" for folder in folders]
    line = "; ".join([*lines, "sleep 60"])
    ended = await ran(tmp_path, "sh", "-c", line, temporary_bytes=3 * MEGABYTE)
    assert ended.signal == 9
    assert failure(ended, 120) == (
        "stopped: more than 3 MB of temporary files (`sandbox: temporary_mb:`)"
    )


async def test_memory_without_a_bound_cannot_be_written_as_files(tmp_path: Path) -> None:
    """Bubblewrap's `/dev`, and what it puts over folders that root shall not see, are in memory too."""
    line = (
        """awk '$3 == "tmpfs" { print $2 }' /proc/mounts | while read -r mount; do """
        """find "$mount" -xdev -type d -writable -fstype tmpfs 2>/dev/null; done"""
    )
    ended = await ran(tmp_path, "sh", "-c", line, temporary_bytes=3 * MEGABYTE)
    sized = ("/tmp", "/var/tmp", "/run", "/dev/shm", str(Path.home()))
    assert [path for path in ended.stdout.decode().split() if not path.startswith(sized)] == []
    assert b"/dev/shm" in ended.stdout


async def test_tree_within_its_limits_is_left_alone(tmp_path: Path) -> None:
    line = "for n in 1 2 3; do sleep 0.5 & done; wait; head -c 100000 /dev/zero > /tmp/a"
    ended = await ran(
        tmp_path, "sh", "-c", line, processes=50, tree_memory_bytes=500 * MEGABYTE,
        file_bytes=MEGABYTE, temporary_bytes=MEGABYTE,
    )  # fmt: skip
    assert (ended.exit_code, ended.breaches, ended.stderr) == (0, (), b"")


def test_group_is_made_beside_ours_where_controllers_are_handed_on(tmp_path: Path) -> None:
    """On files: a writable cgroup v2 is not to be had on every machine."""
    own = tmp_path / "own"
    own.write_text("0::/user/podium.scope\n")
    (tmp_path / "cgroup.controllers").write_text("pids memory\n")
    user = tmp_path / "user"
    (user / "podium.scope").mkdir(parents=True)
    (user / "podium.scope" / "cgroup.subtree_control").write_text("\n")
    (user / "cgroup.subtree_control").write_text("cpu pids\n")
    assert parents(str(tmp_path), str(own)) == []
    (user / "cgroup.subtree_control").write_text("cpu memory pids\n")
    assert parents(str(tmp_path), str(own)) == [str(user)]


def test_group_keeps_its_limits_and_reports_what_the_kernel_counted(tmp_path: Path) -> None:
    made = tmp_path / "podium-1"
    made.mkdir()
    (made / "cgroup.procs").touch()
    group = ControlGroup(str(made))
    group.hold(processes=100, memory_bytes=5 * MEGABYTE)
    assert (made / "pids.max").read_text() == "400"
    assert (made / "memory.max").read_text() == "5000000"
    group.enter()
    assert (made / "cgroup.procs").read_text() == "0"
    assert (group.was_crowded(), group.ran_out_of_memory()) == (False, False)
    (made / "pids.events").write_text("max 3\n")
    (made / "memory.events").write_text("low 0\nhigh 0\nmax 9\noom 1\noom_kill 1\n")
    assert (group.was_crowded(), group.ran_out_of_memory()) == (True, True)

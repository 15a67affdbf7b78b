"""A kill at any moment of making, delivering, snapshotting and removing loses nothing."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import random
import time
from pathlib import Path

import pytest

from podium.app.workspaces import collect_workspaces
from podium.core.workspaces import WorkLocation
from podium.git.creation import undo_creation
from podium.platform.system_clock import SystemClock
from podium.sandbox import end_orphans
from podium.testing import retry_until_blocking
from tests.integration.workspaces.git_project import GitProject, agent_commits
from tests.integration.workspaces.killed_story import live, noted

PROCESSES = multiprocessing.get_context("forkserver")


@pytest.mark.soak
@pytest.mark.timeout(400)
def test_kills_at_some_points_lose_no_commit_and_leave_nothing_unexplained(
    tmp_path: Path,
) -> None:
    see_it_through(tmp_path, kills=2, seed=4)


@pytest.mark.soak
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("repository", range(4))
def test_kills_at_a_hundred_points_lose_no_commit_and_leave_nothing_unexplained(
    tmp_path: Path, repository: int
) -> None:
    see_it_through(tmp_path, kills=100, seed=int(time.time()) + repository)


async def test_a_lock_that_a_killed_git_left_on_the_branch_is_in_nobodys_way(
    tmp_path: Path,
) -> None:
    git_project = GitProject(tmp_path / "yard").build()
    workspace = await git_project.made()
    lock = git_project.repository / ".git" / f"{workspace.record.branch}.lock"
    lock.touch()
    agent_commits(workspace.record, "work.txt")
    assert (await workspace.deliver()).commits
    assert not lock.exists()


async def test_a_lock_that_a_killed_git_left_goes_with_the_workspace(tmp_path: Path) -> None:
    git_project = GitProject(tmp_path / "yard").build()
    workspace = await git_project.made()
    lock = git_project.repository / ".git" / f"{workspace.record.branch}.lock"
    lock.touch()
    assert (await git_project.workspaces.remove(workspace.record.id)).removed
    assert not lock.exists()
    assert workspace.record.branch not in git_project.refs()


async def test_what_a_killed_git_had_begun_for_a_worktree_goes_and_others_stay(
    tmp_path: Path,
) -> None:
    git_project = GitProject(tmp_path / "yard").build()
    record = (await git_project.made()).record
    entries = Path(record.git_dir, "worktrees")
    for name in ("task1", "task2", "tasks"):
        (entries / name).mkdir()
    (entries / "task1" / "HEAD").write_text("ref: refs/heads/task\n")
    (entries / "task2" / "gitdir").write_text("/elsewhere/.git\n")
    records = git_project.workspaces.records
    await undo_creation(git_project.workspaces.git, records, record)
    assert sorted(os.listdir(entries)) == ["task2", "tasks"]


def see_it_through(folder: Path, kills: int, seed: int) -> None:
    PROCESSES.set_forkserver_preload(["tests.integration.workspaces.killed_story"])
    chance = random.Random(seed)
    git_project = GitProject(folder / "yard").build()
    main = git_project.git("rev-parse", "main")
    whole = min(seconds_of_a_whole_life(git_project, number) for number in range(3))
    killed = 0
    for number in range(2 * kills):
        # Kills that come too late, after the end, do not count.
        killed += kill_after(git_project, f"task-{number}", chance.uniform(0.0, whole))
        asyncio.run(nothing_is_lost_or_unexplained(git_project))
        asyncio.run(what_is_left_can_go(git_project))
        assert git_project.git("rev-parse", "main") == main, f"kill {number} of seed {seed}"
        if killed == kills:
            break
    assert killed > kills / 2


def seconds_of_a_whole_life(git_project: GitProject, number: int) -> float:
    """Measured, so that the kills fall over all of it on any machine."""
    began = time.monotonic()
    assert not kill_after(git_project, f"whole-{number}", None)
    return time.monotonic() - began


def kill_after(git_project: GitProject, task: str, seconds: float | None) -> bool:
    """Return whether it was killed, and did not end by itself."""
    began, ended = noted(git_project).count("began"), noted(git_project).count("ended")
    child = PROCESSES.Process(target=live, args=(str(git_project.folder), task))
    child.start()
    if seconds is not None:
        retry_until_blocking(lambda: noted(git_project).count("began") > began)
        child.join(seconds)
        child.kill()
    child.join()
    # Its git processes end with it, but a moment later.
    end_orphans()
    return noted(git_project).count("ended") == ended


async def nothing_is_lost_or_unexplained(git_project: GitProject) -> None:
    listings = await git_project.workspaces.listed()
    leftovers = await git_project.workspaces.leftovers()
    explained = {listing.record.id for listing in listings} | {
        leftover.id for leftover in leftovers
    }
    folders = git_project.state / "workspaces"
    found = {entry.name for entry in folders.iterdir() if entry.name.startswith("ws_")}
    assert found <= explained
    assert not [item for item in listings if "cannot be checked" in item.because]
    done = await collect_workspaces(git_project.workspaces, SystemClock())
    assert not [removal for removal in done.removals if removal.failed], done
    assert await git_project.workspaces.leftovers() == []
    left = await git_project.workspaces.listed()
    assert {item.kept for item in left} <= {WorkLocation.UNKNOWN}
    only_what_is_listed_is_there(git_project, {Path(item.record.path).name for item in left})
    git_project.git("fsck", "--full", "--strict", "--no-dangling")
    await every_commit_is_somewhere(git_project)


def only_what_is_listed_is_there(git_project: GitProject, tasks: set[str]) -> None:
    worktrees = git_project.folder / ".worktrees"
    assert (set(os.listdir(worktrees)) if worktrees.exists() else set()) == tasks
    entries = git_project.repository / ".git" / "worktrees"
    assert len(os.listdir(entries) if entries.exists() else []) == len(tasks)
    assert not list((git_project.repository / ".git").glob("podium-removed-*"))
    assert not list((git_project.repository / ".git").rglob("*.lock"))


async def every_commit_is_somewhere(git_project: GitProject) -> None:
    """In the user's repository under a ref, or in a workspace that is still there."""
    reachable = set(git_project.git("rev-list", "--all").split())
    commits = {line for line in noted(git_project) if line not in ("began", "ended")}
    homes = [Path(row.record.private) for row in await git_project.workspaces.listed()]
    for commit in commits - reachable:
        place = Path("git", "objects", commit[:2], commit[2:])
        assert any((home / place).exists() for home in homes), f"{commit} is nowhere"


async def what_is_left_can_go(git_project: GitProject) -> None:
    """It is snapshotted and removed, and every commit can still be had back."""
    for listing in await git_project.workspaces.listed():
        workspace = await git_project.workspaces.open(listing.record.id)
        await workspace.snapshot("before it goes")
    done = await collect_workspaces(git_project.workspaces, SystemClock())
    assert all(removal.removed for removal in done.removals), done
    only_what_is_listed_is_there(git_project, set())
    commits = {line for line in noted(git_project) if line not in ("began", "ended")}
    assert commits <= set(git_project.git("rev-list", "--all").split())

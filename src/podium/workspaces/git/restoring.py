"""Putting a workspace back to a snapshot: its files, and the private git directory made anew."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path

from podium.domain.workspaces import Snapshot, WorkspaceRecord
from podium.workspaces.git.clearing import clear_away
from podium.workspaces.git.git import Git
from podium.workspaces.git.keeper import Keeper
from podium.workspaces.git.layout import DRAFT, NEXT, finish_swap
from podium.workspaces.git.private_dir import build_private_dir, note_given
from podium.workspaces.git.repository import find_repository
from podium.workspaces.git.snapshots import Snapshots, check_own


async def restore(
    git: Git, snapshots: Snapshots, record: WorkspaceRecord, snapshot: Snapshot
) -> None:
    """What is there now becomes another snapshot first. Hold the workspace's lock, with all processes dead.

    Killed in between, it can be asked again: the files are put back before the git directory is.
    """
    await check_own(git, record, snapshot)
    now = await snapshots.take(record, f"before going back to {snapshot.ref}")
    keeper = Keeper(git, record)
    await keeper.put_back(snapshot.commit)
    head = await git.resolve(f"{snapshot.commit}^1", record.git_dir)
    await renew_private_dir(git, keeper, record, head)
    if now.complete:
        await asyncio.to_thread(clear_away, Path(record.private, "git.old"))


async def renew_private_dir(git: Git, keeper: Keeper, record: WorkspaceRecord, head: str) -> None:
    """Whatever an agent wrote in the old one is gone with it; all its commits are in the snapshot."""
    private = Path(record.private)
    repository = await find_repository(git, record.repository, record.base)
    await asyncio.to_thread(shutil.rmtree, private / DRAFT, True)
    await asyncio.to_thread(note_given, private, repository)
    await asyncio.to_thread(
        build_private_dir,
        private / DRAFT,
        repository,
        branch=record.branch,
        tip=head,
        worktree=record.path,
        admin=record.admin,
    )
    index = private / DRAFT / "worktrees" / record.admin / "index"
    await keeper.write_index(head, index)
    await asyncio.to_thread(_swap, private)


def _swap(private: Path) -> None:
    (private / DRAFT).rename(private / NEXT)
    if (private / "git.old").exists():
        clear_away(private / "git.old")
    (private / "git").rename(private / "git.old")
    finish_swap(private)

"""Undoing a creation that failed or was killed. Asked again, it goes on where it was."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

from podium.domain.workspaces import WorkspaceRecord
from podium.workspaces.git.admin import admin_folders, begun_folders, forget_parent, points_at
from podium.workspaces.git.clearing import clear_away, remove_if_empty
from podium.workspaces.git.git import Git
from podium.workspaces.git.records import Records
from podium.workspaces.git.stale_locks import clear_stale_lock


async def undo_creation(
    git: Git, records: Records, record: WorkspaceRecord, *, keep_branch: bool = False
) -> None:
    """Take away what was made of it: worktree, its folder in the git directory, branch, private folder.

    Each is what tells that the one before is ours, so they go in this order. Hold the repository's lock.
    """
    await asyncio.to_thread(_clear_worktree, record)
    if not keep_branch:
        await _drop_branch(git, record)
    await asyncio.to_thread(clear_away, records.private(record.id))


def _clear_worktree(record: WorkspaceRecord) -> None:
    worktree = Path(record.path)
    admins = admin_folders(record)
    if admins or _points_into(record):
        if worktree.is_dir() and not worktree.is_symlink():
            clear_away(worktree)
    else:
        # Somebody else's, unless git was killed before it wrote anything.
        remove_if_empty(worktree)
    for admin in (*admins, *begun_folders(record)):
        clear_away(admin)
    remove_if_empty(Path(record.git_dir, "worktrees"))
    forget_parent(worktree)


def _points_into(record: WorkspaceRecord) -> bool:
    try:
        return any(points_at(record, each) for each in Path(record.git_dir, "worktrees").iterdir())
    except FileNotFoundError:
        return False


async def _drop_branch(git: Git, record: WorkspaceRecord) -> None:
    """It was not there before, and nothing was ever delivered: where it stands, no work is lost."""
    if not os.path.isdir(record.git_dir):  # noqa: PTH112, ASYNC240 — one look at a local folder
        return
    await clear_stale_lock(record.git_dir, record.branch)
    if await git.resolve(record.branch, record.git_dir) == record.base:
        await git.run("update-ref", "-d", record.branch, record.base, git_dir=record.git_dir)

"""Moving planted repositories out of a worktree, but for those that are part of the project."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

from podium.domain.workspaces import WorkspaceRecord
from podium.workspaces.git.git import Git
from podium.workspaces.git.hygiene import (
    Planted,
    find_planted,
    move_away,
    same_as_blob,
    take_borrowed_rights,
)
from podium.workspaces.git.pointer import put_pointer_back


async def tidy(git: Git, record: WorkspaceRecord) -> tuple[str, ...]:
    """The paths that were moved into the private folder. Only while no process of the agent lives."""
    worktree = Path(record.path)
    pointer = await asyncio.to_thread(put_pointer_back, record)
    planted = await asyncio.to_thread(find_planted, worktree)
    # Behind that, which opened every folder.
    await asyncio.to_thread(take_borrowed_rights, worktree)
    if not planted:
        return pointer
    tracked = await _tracked(git, record, [each.path for each in planted if each.may_be_tracked])
    away = [each.path for each in planted if not _is_the_projects(worktree, each, tracked)]
    moved = await asyncio.to_thread(move_away, worktree, Path(record.private), away)
    return (*pointer, *moved)


async def _tracked(git: Git, record: WorkspaceRecord, paths: Sequence[str]) -> dict[str, str]:
    """Objects by path, of those paths that the base has."""
    if not paths:
        return {}
    text = await git.text(
        "--literal-pathspecs", "ls-tree", "-z", record.base, "--", *paths, git_dir=record.git_dir
    )
    rows = [row.split("\t", 1) for row in text.split("\0") if row]
    return {path: facts.split(" ")[2] for facts, path in rows}


def _is_the_projects(worktree: Path, planted: Planted, tracked: dict[str, str]) -> bool:
    blob = tracked.get(planted.path)
    return blob is not None and same_as_blob(worktree / planted.path, blob)

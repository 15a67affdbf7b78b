"""Moving planted repositories and state folders out of a worktree, but for those that are part of the project."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from podium.domain.errors import WorkspaceTampered
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
from podium.workspaces.git.walking import files_within

_COMMAND_LINE_BYTES = 500_000
"""Linux gives 2 MB with its usual stack, for the environment too."""
_POINTER_BYTES = 9
"""What each word takes beside its text: the zero at its end, and where it is."""


async def tidy(git: Git, record: WorkspaceRecord) -> tuple[str, ...]:
    """The paths that were moved into the private folder. Only while no process of the agent lives."""
    worktree = Path(record.path)
    pointer = await asyncio.to_thread(put_pointer_back, record)
    planted, unread = await asyncio.to_thread(find_planted, worktree)
    private = Path(record.private)
    # What is nobody's goes first, so that nothing about the rest keeps it here.
    nobodys = [each.path for each in planted if not each.may_be_tracked]
    moved = await asyncio.to_thread(move_away, worktree, private, nobodys)
    # Behind that, which opened every folder.
    await asyncio.to_thread(take_borrowed_rights, worktree)
    doubtful = [each for each in planted if each.may_be_tracked]
    tracked = await _tracked(git, record, [each.path for each in doubtful])
    inner = await asyncio.to_thread(_files_of_folders, worktree, doubtful, tracked)
    if inner:
        tracked |= await _tracked(git, record, [each.path for each in inner])
        doubtful = [each for each in doubtful if not _is_folder(worktree, each, tracked)] + inner
    added = await asyncio.to_thread(_not_the_projects, worktree, doubtful, tracked)
    moved += await asyncio.to_thread(move_away, worktree, private, added)
    if unread:
        raise WorkspaceTampered(
            f"a folder of the worktree cannot be looked into ({unread[0]}); remove it"
        )
    return (*pointer, *moved)


async def _tracked(git: Git, record: WorkspaceRecord, paths: Sequence[str]) -> dict[str, str]:
    """Objects by path, of those paths that the base has."""
    found: dict[str, str] = {}
    for some in _fitting(paths):
        text = await git.text(
            "--literal-pathspecs", "ls-tree", "-z", record.base, "--", *some, git_dir=record.git_dir
        )
        rows = [row.split("\t", 1) for row in text.split("\0") if row]
        found |= {path: facts.split(" ")[2] for facts, path in rows}
    return found


def _fitting(paths: Sequence[str]) -> Iterator[list[str]]:
    """All of them, in lists that fit on a command line."""
    some: list[str] = []
    size = 0
    for path in paths:
        length = len(os.fsencode(path)) + _POINTER_BYTES
        if some and size + length > _COMMAND_LINE_BYTES:
            yield some
            some, size = [], 0
        some.append(path)
        size += length
    if some:
        yield some


def _files_of_folders(
    worktree: Path, planted: Sequence[Planted], tracked: dict[str, str]
) -> list[Planted]:
    """The files of folders that the base has: each is judged by itself."""
    top = len(os.fspath(worktree)) + 1
    folders = [each.path for each in planted if _is_folder(worktree, each, tracked)]
    return [
        Planted(entry.path[top:], may_be_tracked=True)
        for folder in folders
        for entry in files_within(worktree / folder)
    ]


def _is_folder(worktree: Path, planted: Planted, tracked: dict[str, str]) -> bool:
    path = worktree / planted.path
    return planted.path in tracked and not path.is_symlink() and path.is_dir()


def _not_the_projects(
    worktree: Path, planted: Sequence[Planted], tracked: dict[str, str]
) -> list[str]:
    return [each.path for each in planted if not _is_the_projects(worktree, each, tracked)]


def _is_the_projects(worktree: Path, planted: Planted, tracked: dict[str, str]) -> bool:
    blob = tracked.get(planted.path)
    return blob is not None and same_as_blob(worktree / planted.path, blob)

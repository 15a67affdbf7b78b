"""Seeing the user's repository before and after a turn, and what differs."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from pathlib import Path

from podium.domain.workspaces import RefsSeen, WorkspaceRecord
from podium.workspaces.git.git import Git
from podium.workspaces.git.private_refs import read_plain

OWN_REFS = "refs/podium/"
BASE_REFS = f"{OWN_REFS}bases/"
"""Where fetched commits of the remote's base branch are kept from being collected."""
_LARGEST_BYTES = 20_000_000
_FILES = ("config", "config.worktree", "shallow", "objects/info/alternates")
_FOLDERS = ("hooks", "info")
_OF_WORKTREE = ("gitdir", "commondir", "config.worktree", "locked")


async def look(git: Git, record: WorkspaceRecord) -> RefsSeen:
    """All refs and HEADs, and digests of what decides how the user's git behaves."""
    heads, files = heads_of(record), files_of(record)
    return RefsSeen(refs={**await refs_of(git, record), **heads}, files=files)


async def refs_of(git: Git, record: WorkspaceRecord) -> dict[str, str]:
    """Every ref's object, or the other ref it stands for."""
    form = "--format=%(refname) %(if)%(symref)%(then)ref: %(symref)%(else)%(objectname)%(end)"
    text = await git.text("for-each-ref", form, git_dir=record.git_dir)
    return dict(line.split(" ", 1) for line in text.splitlines())


def files_of(record: WorkspaceRecord) -> dict[str, str]:
    git_dir = Path(record.git_dir)
    return {str(path.relative_to(git_dir)): _digest(path) for path in watched_files(git_dir)}


def heads_of(record: WorkspaceRecord) -> dict[str, str]:
    """HEAD of every worktree by its place in the git directory."""
    git_dir = Path(record.git_dir)
    places = [git_dir, *_entries(git_dir / "worktrees")]
    heads = {str((place / "HEAD").relative_to(git_dir)): _head(place) for place in places}
    return {name: head for name, head in heads.items() if head}


def watched_files(git_dir: Path) -> Iterator[Path]:
    """Files that are there of those an agent must leave alone."""
    yield from (git_dir / name for name in _FILES if os.path.lexists(git_dir / name))
    for folder in _FOLDERS:
        yield from _entries(git_dir / folder)
    for worktree in _entries(git_dir / "worktrees"):
        yield from (worktree / name for name in _OF_WORKTREE if os.path.lexists(worktree / name))


def _head(place: Path) -> str:
    return read_plain(place / "HEAD", 5000).decode(errors="replace").strip()


def _entries(folder: Path) -> list[Path]:
    try:
        return sorted(folder.iterdir())
    except (FileNotFoundError, NotADirectoryError):
        return []


def _digest(path: Path) -> str:
    if path.is_symlink():
        return f"link to {path.readlink()}"
    if path.is_dir():
        return "folder"
    mode = "x" if os.access(path, os.X_OK) else "-"
    return f"{mode}{hashlib.sha256(read_plain(path, _LARGEST_BYTES)).hexdigest()}"


def differences(before: dict[str, str], after: dict[str, str]) -> list[str]:
    """Names whose value is not what it was, in order."""
    return sorted(name for name in {*before, *after} if before.get(name, "") != after.get(name, ""))


def is_podiums_own(name: str, before: RefsSeen) -> bool:
    """Refs that Podium adds for itself: snapshots of any workspace."""
    return name.startswith(OWN_REFS) and name not in before.refs

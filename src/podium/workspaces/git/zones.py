"""Forbidden paths of a worktree, checked so that what is mounted over them is what it seems to be; and Podium's state."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable
from pathlib import Path

from podium.domain.errors import WorkspaceTampered
from podium.domain.launching import Mount
from podium.domain.protected_paths import STATE_DIR, protected_name
from podium.domain.workspaces import WorkspaceRecord
from podium.workspaces.git.git import Git
from podium.workspaces.git.hygiene import move_away


def pin_zones(worktree: str, forbidden: Iterable[str]) -> tuple[str, ...]:
    """The paths to pin. Missing ones become empty folders, which git does not see.

    Raises `WorkspaceTampered` when a link or anything else odd stands in the way: what mounts a path follows
    links in it. Only while no process of the agent lives.
    """
    return tuple(str(_pinned(Path(worktree), path)) for path in forbidden)


def closed_state(record: WorkspaceRecord) -> tuple[Mount, ...]:
    """Mounts that keep a worktree's top free of a state folder: read-only, and made as an empty folder when missing.

    What stands in its way is moved into the private folder. One that the base has is among the forbidden paths. Where
    nothing can be mounted it is put back after the turn, so that files can be made beside it.
    """
    if STATE_DIR in record.forbidden:
        return ()
    folder = Path(record.path, STATE_DIR)
    if os.path.lexists(folder) and (folder.is_symlink() or not folder.is_dir()):
        move_away(Path(record.path), Path(record.private), [STATE_DIR])
    folder.mkdir(mode=0o700, exist_ok=True)
    return (Mount(source=str(folder), target=str(folder), put_back=True),)


async def tracked_states(git: Git, git_dir: str, commit: str) -> list[str]:
    """State folders that a commit has, at any depth: they are the user's, and stay as they are."""
    text = await git.text("ls-tree", "-r", "-d", "-z", "--name-only", commit, git_dir=git_dir)
    folders = (path for path in text.split("\0") if path)
    return [path for path in folders if protected_name(path.rpartition("/")[2]) == STATE_DIR]


def _pinned(worktree: Path, path: str) -> Path:
    place = worktree
    parts = path.split("/")
    for number, part in enumerate(parts, 1):
        place = place / part
        try:
            mode = place.lstat().st_mode
        except FileNotFoundError:
            place.mkdir(mode=0o755)
            continue
        last = number == len(parts)
        if not (stat.S_ISDIR(mode) or (last and stat.S_ISREG(mode))):
            raise WorkspaceTampered(
                f"{str(place)!r} is {_kind(mode)}, and {path!r} is forbidden to change; put a plain "
                "folder there, or take the path out of the forbidden ones"
            )
    return place


def _kind(mode: int) -> str:
    if stat.S_ISLNK(mode):
        return "a link"
    return "a file" if stat.S_ISREG(mode) else "no folder"


def check_plain(path: Path, kind: str) -> None:
    """Raise `WorkspaceTampered` unless a real folder (or file) is there and no link."""
    is_kind = stat.S_ISDIR if kind == "folder" else stat.S_ISREG
    try:
        fine = is_kind(os.lstat(path).st_mode)
    except OSError:
        fine = False
    if not fine:
        raise WorkspaceTampered(
            f"{str(path)!r} is not the plain {kind} that the workspace was made with; save what you need "
            "from the worktree and make a new workspace"
        )

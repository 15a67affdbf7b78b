"""A worktree and its folder under `worktrees` in the user's git directory, which name each other."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from podium.domain.errors import NotPossibleNow
from podium.domain.workspaces import WorkspaceRecord
from podium.platform import make_private_folder, tighten

_LARGEST_POINTER_BYTES = 5000


def admin_of(record: WorkspaceRecord) -> str:
    """The name that git gave to the folder of the record's worktree."""
    named = admin_folders(record)
    if len(named) != 1 or not points_at(record, named[0]):
        raise NotPossibleNow(
            f"git made no worktree in {record.path!r} that belongs to {record.git_dir!r}; "
            "look at `git worktree list`"
        )
    return named[0].name


def admin_folders(record: WorkspaceRecord) -> list[Path]:
    """Folders in the user's git directory that name the record's worktree: one, or none after a crash."""
    wanted = f"{record.path}/.git"
    return [each for each in _entries(record) if _read(each / "gitdir") == wanted]


def begun_folders(record: WorkspaceRecord) -> list[Path]:
    """Folders that a killed git had begun for the record's worktree, or half taken away again.

    They name no worktree, so they are of no use to anybody. git calls them as the worktree, with a
    number behind it where that is taken.
    """
    name = Path(record.path).name
    return [
        each
        for each in _entries(record)
        if each.name.startswith(name)
        and each.name.removeprefix(name).strip("0123456789") == ""
        and not _read(each / "gitdir")
    ]


def _entries(record: WorkspaceRecord) -> list[Path]:
    with suppress(FileNotFoundError):
        found = os.scandir(Path(record.git_dir, "worktrees"))
        return [Path(entry.path) for entry in found if entry.is_dir()]
    return []


def points_at(record: WorkspaceRecord, admin: Path) -> bool:
    """Whether the worktree names that folder."""
    return _read(Path(record.path, ".git")) == f"gitdir: {admin}"


def _read(path: Path) -> str:
    with suppress(OSError), path.open("rb") as file:
        return os.fsdecode(file.read(_LARGEST_POINTER_BYTES)).strip()
    return ""


def prepare_parent(folder: Path) -> None:
    """Make the folder for worktrees; where it lies in a repository, that one does not see them."""
    parent = folder.parent
    make_private_folder(parent)
    if parent.name == ".worktrees" and _inside_repository(parent):
        ignore = parent / ".gitignore"
        if not os.path.lexists(ignore):
            ignore.write_text("*\n")


def tighten_worktree(folder: Path) -> None:
    """Take the worktree from all others, and the folder for worktrees that it lies in. No link is followed."""
    own = [folder.parent] if folder.parent.name == ".worktrees" else []
    for place in (*own, folder):
        if not place.is_symlink():
            tighten(place)


def forget_parent(folder: Path) -> None:
    """Remove the folder for worktrees when the last one is gone."""
    parent = folder.parent
    if parent.name != ".worktrees":
        return
    with suppress(OSError):
        ignore = parent / ".gitignore"
        if list(parent.iterdir()) == [ignore] and ignore.read_text() == "*\n":
            ignore.unlink()
        parent.rmdir()


def _inside_repository(folder: Path) -> bool:
    return any(os.path.lexists(above / ".git") for above in folder.parents)

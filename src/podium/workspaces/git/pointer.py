"""The worktree's `.git`: a file that names the user's git directory, and is always made that again.

Where nothing can be mounted a confined agent can put anything in its place: inside, git is told by variables
which directory is its own. So it is looked at after every turn and before anything is done with a workspace,
and no git that would find its way by it runs before.
"""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from pathlib import Path

from podium.domain.errors import WorkspaceTampered
from podium.domain.workspaces import WorkspaceRecord
from podium.workspaces.git.clearing import open_up
from podium.workspaces.git.hygiene import move_away
from podium.workspaces.git.private_refs import read_plain
from podium.workspaces.git.zones import check_plain

POINTER = ".git"
_ATTEMPTS = 10
_LARGEST_BYTES = 5000
_NOT_FOR_OTHERS = 0o022


def put_pointer_back(record: WorkspaceRecord) -> tuple[str, ...]:
    """Make it what the worktree was made with, and give what was moved into the private folder.

    An agent may live meanwhile. Raises `WorkspaceTampered` when the worktree or the user's git directory is
    not there, or when somebody changes the pointer as quickly as it is made.
    """
    worktree, admin = Path(record.path), Path(record.git_dir, "worktrees", record.admin)
    check_plain(worktree, "folder")
    check_plain(admin, "folder")
    content = os.fsencode(f"gitdir: {admin}\n")
    away: tuple[str, ...] = ()
    for _ in range(_ATTEMPTS):
        if _is_right(worktree / POINTER, content):
            return away
        away = _taken_away(record) or away
        _write(worktree / POINTER, content)
    raise WorkspaceTampered(
        f"{str(worktree / POINTER)!r} is changed again and again; end what runs in the worktree, then try again"
    )


def _is_right(pointer: Path, content: bytes) -> bool:
    try:
        about = pointer.lstat()
    except FileNotFoundError:
        return False
    if not stat.S_ISREG(about.st_mode) or about.st_mode & _NOT_FOR_OTHERS:
        return False
    # Under a second name it could be changed where the first is protected.
    return about.st_nlink == 1 and _says(pointer, content)


def _says(pointer: Path, content: bytes) -> bool:
    return read_plain(pointer, _LARGEST_BYTES).strip() == content.strip()


def _taken_away(record: WorkspaceRecord) -> tuple[str, ...]:
    """Whatever stands there instead. What only has another name or mode is no loss."""
    pointer = Path(record.path, POINTER)
    expected = os.fsencode(f"gitdir: {record.git_dir}/worktrees/{record.admin}\n")
    with suppress(FileNotFoundError, IsADirectoryError):
        if _says(pointer, expected):
            pointer.unlink()
            return ()
    return move_away(Path(record.path), Path(record.private), [POINTER])


def _write(pointer: Path, content: bytes) -> None:
    """Not written in one step: one that a kill cuts off is found wrong the next time."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        handle = os.open(pointer, flags, 0o644)
    except PermissionError:
        open_up(pointer.parent)
        handle = os.open(pointer, flags, 0o644)
    except FileExistsError:
        return
    try:
        os.write(handle, content)
    finally:
        os.close(handle)

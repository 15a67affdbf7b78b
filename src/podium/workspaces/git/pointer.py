"""The worktree's `.git`: a file that names the user's git directory, and is always made that again.

Where nothing can be mounted a confined agent can put anything in its place: inside, git is told by variables
which directory is its own. So it is looked at after every turn and before anything is done with a workspace,
and no git that would find its way by it runs before.
"""

from __future__ import annotations

import os
import stat
import threading
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
_ONE_AT_A_TIME = threading.Lock()
"""Several starts in one worktree may be prepared at once, and each relies on what it has just seen."""
_FOR_ITS_OWNER, _FOR_OTHERS = 0o600, 0o044


def put_pointer_back(record: WorkspaceRecord) -> tuple[str, ...]:
    """Make it what the worktree was made with, and give what was moved into the private folder.

    An agent may live meanwhile. Raises `WorkspaceTampered` when the worktree or the user's git directory is
    not there, or when somebody changes the pointer as quickly as it is made.
    """
    admin = Path(record.git_dir, "worktrees", record.admin)
    check_plain(Path(record.path), "folder")
    check_plain(admin, "folder")
    with _ONE_AT_A_TIME:
        return _put_back(record, os.fsencode(f"gitdir: {admin}\n"))


def _put_back(record: WorkspaceRecord, content: bytes) -> tuple[str, ...]:
    worktree = Path(record.path)
    away: tuple[str, ...] = ()
    for _ in range(_ATTEMPTS):
        if _is_right(worktree / POINTER, content):
            return away
        open_up(worktree)
        away = _taken_away(record, content) or away
        _write(worktree / POINTER, content)
    raise WorkspaceTampered(
        f"{str(worktree / POINTER)!r} is changed again and again; end what runs in the worktree, then try again"
    )


def _is_right(pointer: Path, content: bytes) -> bool:
    try:
        about = pointer.lstat()
    except OSError:
        return False  # not there, or in a folder that nobody may enter
    rights = stat.S_IMODE(about.st_mode) & ~_FOR_OTHERS
    if not stat.S_ISREG(about.st_mode) or rights != _FOR_ITS_OWNER:
        return False
    # Under a second name it could be changed where the first is protected.
    return about.st_nlink == 1 and _says(pointer, content)


def _says(pointer: Path, content: bytes) -> bool:
    return read_plain(pointer, len(content) + 1) == content


def _taken_away(record: WorkspaceRecord, content: bytes) -> tuple[str, ...]:
    """Whatever stands there instead. What only has another name or mode is no loss."""
    pointer = Path(record.path, POINTER)
    with suppress(FileNotFoundError, IsADirectoryError):
        if _says(pointer, content):
            pointer.unlink()
            return ()
    return move_away(Path(record.path), Path(record.private), [POINTER])


def _write(pointer: Path, content: bytes) -> None:
    """Not written in one step: one that a kill cuts off is found wrong the next time."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    with suppress(FileExistsError), os.fdopen(os.open(pointer, flags, 0o644), "wb") as file:
        file.write(content)

"""Files that git does not carry, such as `.env`, copied from the user's checkout by an explicit list.

Every folder on the way is opened by the handle of the one before it, on both sides: the base commit
may hold a link where the checkout has a folder, and a listed name may be a link that leads away.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePosixPath

from podium.core.errors import BadInput
from podium.platform.safe_open import UnusableFile, create_new, open_folder, open_plain

MAX_FILE_BYTES = 16_000_000
MAX_IN_ALL_BYTES = 64_000_000

_PATTERN_SIGNS = re.compile(r"[\\*?\[\]! #]")


def check_files(checkout: Path, names: Sequence[str]) -> None:
    """Raise `BadInput` for the first name that cannot be copied. Nothing is changed."""
    total = 0
    for name in names:
        with _opened(checkout, name) as handle:
            total += os.fstat(handle).st_size
    if total > MAX_IN_ALL_BYTES:
        raise BadInput(
            f"the files to copy have {total} bytes in all, and {MAX_IN_ALL_BYTES} may be copied; "
            "fetch or build what is large by an `after_create` command"
        )


def copy_files(checkout: Path, worktree: Path, names: Sequence[str]) -> tuple[str, ...]:
    """Copy each file to the same place in the worktree, with its permission bits; gives what was copied.

    A file that is there already with the same content is left alone. Raises `BadInput` for what
    cannot be copied; what was copied before it stays.
    """
    copied = []
    for name in names:
        with _opened(checkout, name) as handle:
            mode = stat.S_IMODE(os.fstat(handle).st_mode) & 0o777
            content = _content(handle, name)
        if _put(worktree, name, content, mode):
            copied.append("/".join(_parts(name)))
    return tuple(copied)


def ignoring(names: Sequence[str]) -> str:
    """Lines for a file of patterns that make git ignore just these paths."""
    return "".join(f"/{_PATTERN_SIGNS.sub(_escaped, name)}\n" for name in names)


def _escaped(sign: re.Match[str]) -> str:
    return f"\\{sign[0]}"


@contextlib.contextmanager
def _opened(checkout: Path, name: str) -> Iterator[int]:
    """The handle of a plain file of the checkout that is not too large."""
    parts = _parts(name)
    try:
        with open_folder(checkout, "/".join(parts[:-1])) as folder:
            handle = open_plain(parts[-1], folder)
    except OSError as error:
        raise BadInput(f"cannot copy {name!r} from {str(checkout)!r}: {_why(error)}") from error
    try:
        _must_be_small(os.fstat(handle), name)
        yield handle
    finally:
        os.close(handle)


def _parts(name: str) -> tuple[str, ...]:
    path = PurePosixPath(name)
    odd = path.is_absolute() or ".." in path.parts or "\0" in name or "\n" in name
    inside = path.parts and not odd
    if not inside:
        raise BadInput(
            f"cannot copy {name!r}: name a file by its path from the checkout's root on, as in '.env'"
        )
    if any(part.lower() == ".git" for part in path.parts):
        raise BadInput(f"cannot copy {name!r}: what belongs to git itself stays where it is")
    return path.parts


def _must_be_small(status: os.stat_result, name: str) -> None:
    if status.st_size > MAX_FILE_BYTES:
        raise BadInput(
            f"cannot copy {name!r}: it has {status.st_size} bytes, and {MAX_FILE_BYTES} may be "
            "copied; fetch or build it by an `after_create` command"
        )


def _content(handle: int, name: str) -> bytes:
    """All of it, at most a byte more than may be: it can grow while it is read."""
    with open(handle, "rb", closefd=False) as file:
        content = file.read(MAX_FILE_BYTES + 1)
    if len(content) > MAX_FILE_BYTES:
        raise BadInput(f"cannot copy {name!r}: it grew while it was read; try again")
    return content


def _put(worktree: Path, name: str, content: bytes, mode: int) -> bool:
    """Write the file. Return False when it was there with the same content."""
    parts = _parts(name)
    try:
        with open_folder(worktree, "/".join(parts[:-1]), make=True) as folder:
            # A forbidden path that was not there is an empty folder by now.
            with contextlib.suppress(OSError):
                os.rmdir(parts[-1], dir_fd=folder)
            _create(folder, parts[-1], content, mode)
    except FileExistsError:
        _must_be_the_same(worktree, name, content)
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise
        raise BadInput(f"cannot copy {name!r} into the workspace: {_why(error)}") from error
    else:
        return True
    return False


def _create(folder: int, leaf: str, content: bytes, mode: int) -> None:
    # Private until it is whole: it may hold secrets.
    handle = create_new(leaf, folder)
    with open(handle, "wb") as file:  # noqa: PTH123 - a handle, not a path
        file.write(content)
        file.flush()
        os.fchmod(handle, mode)


def _must_be_the_same(worktree: Path, name: str, content: bytes) -> None:
    with _opened(worktree, name) as handle:
        same = _content(handle, name) == content
    if not same:
        raise BadInput(
            f"cannot copy {name!r}: the base commit has one with other content; commit yours, or "
            "take it off the list"
        )


def _why(error: OSError) -> str:
    if error.errno == errno.ENOENT:
        return "there is no such file; make it, or take it off the list"
    if error.errno == errno.EISDIR:
        return "it is a folder; list the files in it one by one"
    return f"it {error.strerror}" if isinstance(error, UnusableFile) else f"{error.strerror}"

"""Files below a root: read, written, moved and removed by folder handles, so that no swapped symlink leads out.

The paths handed in are the real ones that were judged, so a symlink met here is always one that appeared later.
Everything raises `UnusableFile` and other errors of the system, which name the path as it was asked for.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from podium.platform.atomic_write import atomic_write_at, sync
from podium.platform.safe_open import (
    UnusableFile,
    check_plain,
    enter_folder,
    named,
    open_folder,
    parts_below,
    read_file,
    status_at,
)


def read_below(root: Path, relative: str, limit_bytes: int, *, single_name: bool = False) -> bytes:
    """The whole content of a plain file. Raises `NotPlainFile`, `FileTooLarge`, `FileNotFoundError`.

    `single_name`: also when it has a second name, by which it may belong to a place that is closed.
    """
    with open_parent(root, relative) as (folder, name), named(relative):
        return read_file(name, limit_bytes, folder, single_name=single_name)


def find_below(
    root: Path, relative: str, limit_bytes: int, *, single_name: bool = False
) -> bytes | None:
    """As `read_below`; None when there is no such file."""
    try:
        return read_below(root, relative, limit_bytes, single_name=single_name)
    except FileNotFoundError:
        return None


def write_below(
    root: Path, relative: str, content: bytes, call_key: str, *, mode: int | None = None
) -> None:
    """Replace or create a file in one step, with the folders above it. Durable on return.

    Permission bits of a file that was there are kept; a new one has those of `mode`, if given. A second try after a crash, under the same
    call key, also clears away what the first left behind.
    """
    draft = draft_name(call_key)
    with open_parent(root, relative, make=True) as (folder, name), named(relative):
        present = status_at(folder, name)
        if present is not None:
            check_plain(present, relative)
            mode = stat.S_IMODE(present.st_mode) & 0o777
        atomic_write_at(folder, name, content, mode=0o666, bits=mode, draft=draft)


def draft_name(call_key: str) -> str:
    """The name of a file until it is complete. The same at every try of one call."""
    digest = hashlib.sha256(call_key.encode(errors="surrogateescape")).hexdigest()
    return f".podium-{digest[:16]}.tmp"


def remove_below(root: Path, relative: str) -> None:
    """Remove a plain file. Raises `FileNotFoundError` when it is not there. Durable on return."""
    with open_parent(root, relative) as (folder, name), named(relative):
        check_plain(os.stat(name, dir_fd=folder, follow_symlinks=False), relative)
        os.unlink(name, dir_fd=folder)
        sync(folder)


def status_below(root: Path, relative: str) -> os.stat_result | None:
    """Status of a path below the folder, a symlink's own. None when there is none."""
    try:
        with open_parent(root, relative) as (folder, name), named(relative):
            return status_at(folder, name)
    except FileNotFoundError:
        return None


def make_folder_below(root: Path, relative: str, mode: int = 0o777) -> None:
    """Make a folder with those above it. Done before, it is done. Durable on return."""
    with open_parent(root, relative, make=True) as (folder, name), named(relative):
        os.close(enter_folder(folder, name, make=True, mode=mode))
        sync(folder)


def rename_below(root: Path, relative: str, to: str) -> None:
    """Give a file or folder another place, in one step. Durable on return.

    A file that stands at the new place is replaced: look before.
    """
    with (
        open_parent(root, relative) as (source, name),
        open_parent(root, to, make=True) as (target, new_name),
        named(relative),
    ):
        os.rename(name, new_name, src_dir_fd=source, dst_dir_fd=target)
        sync(target)
        sync(source)


def move_below(root: Path, relative: str, to: str) -> None:
    """Give a plain file another place, where nothing stands. Durable on return.

    Raises `FileExistsError` when something does. After a crash in between the file has both
    names; the same again ends it.
    """
    with (
        open_parent(root, relative) as (source, name),
        open_parent(root, to, make=True) as (target, new_name),
        named(to),
    ):
        if not _same_file(source, name, target, new_name):
            # A rename would replace what somebody puts there in this moment; a link does not.
            os.link(name, new_name, src_dir_fd=source, dst_dir_fd=target, follow_symlinks=False)
            sync(target)
        os.unlink(name, dir_fd=source)
        sync(source)


def _same_file(source: int, name: str, target: int, new_name: str) -> bool:
    here = os.stat(name, dir_fd=source, follow_symlinks=False)
    there = status_at(target, new_name)
    # With a single name it is one place spelt in two ways, and unlinking would lose the file.
    return there is not None and os.path.samestat(here, there) and here.st_nlink > 1


@contextmanager
def open_parent(root: Path, relative: str, *, make: bool = False) -> Iterator[tuple[int, str]]:
    """The handle of the folder that holds this path, and the name there. Raises as `open_folder` does."""
    with named(relative):
        parts = parts_below(relative)
        if not parts:
            raise UnusableFile(relative, "is the root itself; name a path below it")
    with open_folder(root, "/".join(parts[:-1]), make=make, asked=relative) as folder:
        yield folder, parts[-1]

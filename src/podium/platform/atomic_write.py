"""Files written in one step: readers, and whoever comes after a crash, find the old content or the new one."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from podium.platform.safe_open import create_new


def atomic_write(
    path: Path,
    content: bytes,
    *,
    mode: int = 0o600,
    bits: int | None = None,
    draft: str = "",
    durable: bool = True,
) -> None:
    """Put the content in the file, in a folder that is there. A link in its place is replaced.

    On return it survives a crash, unless it need not be `durable`; on an error the old content stands. `mode` is that
    of the file, less the umask; `bits` are exact, whatever the umask. `draft` is what it is called until it is whole; without one the name is new each time,
    so a fixed one is for who writes alone and wants a killed try cleared away by the next.
    """
    with _opened(path.parent) as folder:
        atomic_write_at(
            folder, path.name, content, mode=mode, bits=bits, draft=draft, durable=durable
        )


def atomic_write_at(
    folder: int,
    name: str,
    content: bytes,
    *,
    mode: int = 0o600,
    bits: int | None = None,
    draft: str = "",
    durable: bool = True,
) -> None:
    """The same in a folder by its handle, whatever has its path by now."""
    new = write_draft(folder, content, mode=mode, bits=bits, draft=draft, durable=durable)
    try:
        os.rename(new, name, src_dir_fd=folder, dst_dir_fd=folder)
    except BaseException:
        _remove(new, folder)
        raise
    if durable:
        sync(folder)


def atomic_create(
    path: Path, content: bytes, *, mode: int = 0o600, bits: int | None = None
) -> None:
    """Make the file, whole from the start, in a folder that is there. Raises `FileExistsError`. Durable on return."""
    with _opened(path.parent) as folder:
        atomic_create_at(folder, path.name, content, mode=mode, bits=bits)


def atomic_create_at(
    folder: int, name: str, content: bytes, *, mode: int = 0o600, bits: int | None = None
) -> None:
    """The same in a folder by its handle."""
    new = write_draft(folder, content, mode=mode, bits=bits)
    try:
        # A rename would replace what somebody puts there in this moment; a link does not.
        os.link(new, name, src_dir_fd=folder, dst_dir_fd=folder, follow_symlinks=False)
    finally:
        _remove(new, folder)
    sync(folder)


def write_draft(
    folder: int,
    content: bytes,
    *,
    mode: int = 0o600,
    bits: int | None = None,
    draft: str = "",
    durable: bool = True,
) -> str:
    """Write a file that is to be put in its place later, and give its name. An error leaves none."""
    name = draft or f".podium-{secrets.token_hex(8)}.tmp"
    if draft:
        _remove(draft, folder)  # a killed try's
    # Private until it is whole where its bits may be narrower than the umask leaves them.
    handle = create_new(name, folder, mode=mode if bits is None else 0o600)
    try:
        with open(handle, "wb") as file:  # noqa: PTH123 - a handle, not a path
            file.write(content)
            file.flush()
            if bits is not None:
                os.fchmod(handle, bits)
            if durable:
                os.fsync(handle)
    except BaseException:
        _remove(name, folder)
        raise
    return name


def _remove(name: str, folder: int) -> None:
    with suppress(FileNotFoundError):
        os.unlink(name, dir_fd=folder)


def sync(target: Path | int) -> None:
    """Make the content of a file, or the names in a folder, survive a crash. A handle or a path."""
    if isinstance(target, int):
        os.fsync(target)
        return
    with _opened(target) as handle:
        os.fsync(handle)


@contextmanager
def _opened(folder: Path) -> Iterator[int]:
    # Not blocking: a named pipe in the place of a folder is refused, not waited for.
    handle = os.open(folder, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    try:
        yield handle
    finally:
        os.close(handle)

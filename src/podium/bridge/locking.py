"""Locks on files that die with their process, whatever it died of."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime

from podium.bridge.folders import saying, why_not_plain
from podium.domain.errors import LockHeld, NotPossibleNow

_OPEN = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_NOTE_BYTES = 200


@contextmanager
def held_alone(folder: int, name: str, *, what: str, since: datetime) -> Iterator[None]:
    """Hold the lock while open. Raises `LockHeld`, with pid and time, when another process has it.

    `what` says what is held, as in "the sense loop of '/srv/x'".
    """
    with _opened(folder, name) as handle:
        if not _taken(handle):
            raise LockHeld(f"{what} is held by {_holder(handle)}; wait for it to end, or end it")
        os.ftruncate(handle, 0)
        os.pwrite(handle, json.dumps({"pid": os.getpid(), "since": _short(since)}).encode(), 0)
        yield


@contextmanager
def opened_with_lock(
    folder: int, name: str, *, mode: int = 0o600, patience_seconds: float = 10.0
) -> Iterator[int]:
    """The file, open to be read and added to, made where it is not there, and held by this process alone.

    Raises `NotPossibleNow` when somebody keeps it for longer than `patience_seconds`.
    """
    give_up_at = time.monotonic() + patience_seconds
    while True:
        with _opened(folder, name, mode, os.O_APPEND) as handle:
            while not _taken(handle):
                if time.monotonic() > give_up_at:
                    raise NotPossibleNow(
                        f"{name!r} is kept locked by another process; end that one"
                    )
                time.sleep(0.005)
            if _goes_by(handle, folder, name):  # else it was turned over while we waited
                yield handle
                return


@contextmanager
def _opened(folder: int, name: str, mode: int = 0o600, flags: int = 0) -> Iterator[int]:
    with saying(name):
        handle = os.open(name, _OPEN | flags, mode, dir_fd=folder)
    try:
        if fault := why_not_plain(os.fstat(handle)):
            raise NotPossibleNow(f"{name!r} {fault}")
        yield handle
    finally:
        os.close(handle)


def _taken(handle: int) -> bool:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _goes_by(handle: int, folder: int, name: str) -> bool:
    try:
        found = os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return os.path.samestat(os.fstat(handle), found)


def _holder(handle: int) -> str:
    """Who has it, as far as the file tells: its holder may be writing just now."""
    try:
        note = json.loads(os.pread(handle, _NOTE_BYTES, 0))
        return f"process {int(note['pid'])} since {datetime.fromisoformat(note['since']):%Y-%m-%dT%H:%M:%SZ}"
    except (ValueError, KeyError, TypeError):
        return "another process"


def append_whole(handle: int, data: bytes) -> None:
    """Add to a locked file in one write: all of it or, where the disk is full, nothing.

    A line that a crash cut off before it is ended first, so that none is glued to it.
    """
    size = os.fstat(handle).st_size
    torn = size > 0 and os.pread(handle, 1, size - 1) != b"\n"
    data = b"\n" + data if torn else data
    try:
        if os.write(handle, data) != len(data):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    except OSError:
        os.ftruncate(handle, size)
        raise


def _short(moment: datetime) -> str:
    return moment.replace(microsecond=0).isoformat()

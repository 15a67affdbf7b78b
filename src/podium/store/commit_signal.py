"""Signal to other processes on this machine that something was committed.

A writer touches one small file after each commit; a listener is woken by the kernel (inotify) and
uses no time while nothing happens. A bell that was not rung, because the writer was killed between
commit and touch, is made up for by a look at SQLite's change counter once a second. Where there
is no inotify that look is all there is, and comes more often.
"""

from __future__ import annotations

import asyncio
import ctypes
import errno
import os
import sqlite3
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

BURST_SECONDS = 0.005
"""Within so long one ring stands for all."""

LOOK_SECONDS = 1.0
LOOK_SECONDS_WITHOUT_KERNEL = 0.04

_IN_MODIFY = 0x00000002
_IN_NONBLOCK = os.O_NONBLOCK
_IN_CLOEXEC = os.O_CLOEXEC


class CommitSignal:
    """One bell for all processes on a store."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file = _opened(path)
        self._signalled_at = 0.0
        self._owed = False

    def ring(self) -> None:
        """Wake the listeners of all processes, soon: in a burst of commits not for each of them.

        Whoever rings calls `ring_last` when the burst is over. Never fails: the look once a second
        makes up for it.
        """
        if time.monotonic() - self._signalled_at >= BURST_SECONDS:
            self._touch()
        else:
            self._owed = True

    @property
    def owes(self) -> bool:
        """Tell whether commits were made that nobody was told of yet."""
        return self._owed

    def ring_last(self) -> None:
        """Ring if the last commits of a burst were not told yet."""
        if self._owed:
            self._touch()

    def _touch(self) -> None:
        self._owed = False
        self._signalled_at = time.monotonic()
        if self._file is not None:
            with suppress(OSError):
                os.pwrite(self._file, b"\0", 0)

    def close(self) -> None:
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def listen(
        self, connection: sqlite3.Connection, callback: Callable[[], None]
    ) -> SignalListener:
        """Call `heard` in this event loop after commits of any process, until stopped."""
        return SignalListener(self._path, connection, callback)


def _opened(path: Path) -> int | None:
    """The bell; None where nothing may be written: whoever only reads commits nothing to ring for."""
    try:
        return os.open(path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
    except OSError as error:
        if error.errno in (errno.EROFS, errno.EACCES, errno.EPERM):
            return None
        raise


class SignalListener:
    """One process's ear at the bell."""

    def __init__(
        self, path: Path, connection: sqlite3.Connection, callback: Callable[[], None]
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._connection = connection
        self._callback = callback
        self._last_counter = self._counter()
        self._inotify = _watch(path)
        if self._inotify is not None:
            self._loop.add_reader(self._inotify, self._on_kernel)
        self._pause = LOOK_SECONDS if self._inotify is not None else LOOK_SECONDS_WITHOUT_KERNEL
        self._timer = self._loop.call_later(self._pause, self._look)

    def stop(self) -> None:
        """Stop listening. Harmless when called twice."""
        self._timer.cancel()
        if self._inotify is not None:
            self._loop.remove_reader(self._inotify)
            os.close(self._inotify)
            self._inotify = None

    def _on_kernel(self) -> None:
        if self._inotify is not None:
            os.read(self._inotify, 65536)
        self._callback()

    def _look(self) -> None:
        counter = self._counter()
        if counter != self._last_counter:
            self._last_counter = counter
            self._callback()
        self._timer = self._loop.call_later(self._pause, self._look)

    def _counter(self) -> int:
        try:
            return int(self._connection.execute("PRAGMA data_version").fetchone()[0])
        except sqlite3.Error:
            # A busy or broken file shows itself at the next read or write, with its reason.
            return -1


def _watch(path: Path) -> int | None:
    """A file descriptor that becomes readable when the file is touched; None without inotify."""
    if not sys.platform.startswith("linux"):
        return None
    libc = ctypes.CDLL(None, use_errno=True)
    descriptor = int(libc.inotify_init1(_IN_NONBLOCK | _IN_CLOEXEC))
    if descriptor < 0:
        return None
    if libc.inotify_add_watch(descriptor, os.fsencode(path), _IN_MODIFY) < 0:
        os.close(descriptor)
        return None
    return descriptor

"""Kernel notifications of written files and ended programs. No polling, no thread, no process."""

from __future__ import annotations

import asyncio
import ctypes
import errno
import os
import select
import struct
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from podium.core.errors import NotPossibleNow

OnChange = Callable[[str], None]
"""Is given the name of a file that was written to or made; an empty one when any may have been."""

_WRITTEN, _CLOSED, _MADE = 0x2, 0x8, 0x100
_EVENT = struct.Struct("iIII")
_READ_BYTES = 1 << 16
_FLOOD_SECONDS = 0.004
_BREATH_SECONDS = 0.25
"""Changes that come so fast on average are reported so often: of fifty programs that move, an answer a little later for a
fraction of the work."""
_NEW_PART = 0.01
"""Some hundred events in quick succession make it so; a program that writes a long answer makes fewer."""


class Watch(Protocol):
    """An ear at a folder."""

    def stop(self) -> None:
        """Hear no more. Harmless when called twice."""
        ...


def watch_folder(folder: Path, on_change: OnChange) -> Watch:
    """Call `heard` in this event loop for what happens to the folder's files, until stopped."""
    if sys.platform != "linux":
        return _Kqueue(folder, on_change)
    return _Inotify(folder, on_change)


class _Inotify:
    """Linux: one watch for the folder tells of every file in it."""

    def __init__(self, folder: Path, on_change: OnChange) -> None:
        libc = ctypes.CDLL(None, use_errno=True)
        self._on_change = on_change
        self._file = int(libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC))
        mask = _WRITTEN | _CLOSED | _MADE
        if self._file < 0 or libc.inotify_add_watch(self._file, os.fsencode(folder), mask) < 0:
            why = os.strerror(ctypes.get_errno())
            self._close()
            raise NotPossibleNow(
                f"{str(folder)!r} cannot be watched: {why}; raise fs.inotify.max_user_instances and "
                "max_user_watches, or end what watches too much"
            )
        self._loop = asyncio.get_running_loop()
        self._notified_at = self._loop.time()
        self._usual_seconds = 1.0
        """Between two events, by and large."""
        self._loop.add_reader(self._file, self._on_kernel)

    def stop(self) -> None:
        if self._file >= 0:
            self._loop.remove_reader(self._file)
            self._close()

    def _close(self) -> None:
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def _on_kernel(self) -> None:
        self._hear()
        if self._usual_seconds < _FLOOD_SECONDS:
            # Where many programs redraw their screens all the time, hear of several at once.
            self._loop.remove_reader(self._file)
            self._loop.call_later(_BREATH_SECONDS, self._after_breath)

    def _after_breath(self) -> None:
        if self._file < 0:
            return
        if self._hear() and self._usual_seconds < _FLOOD_SECONDS:
            self._loop.call_later(_BREATH_SECONDS, self._after_breath)
        else:
            self._loop.add_reader(self._file, self._on_kernel)

    def _hear(self) -> bool:
        """Tell of all that has happened. False: nothing has."""
        events = 0
        names: dict[bytes, None] = {}
        while data := self._read():
            at = 0
            while at < len(data):
                *_, length = _EVENT.unpack_from(data, at)
                names[data[at + _EVENT.size : at + _EVENT.size + length]] = None
                at += _EVENT.size + length
                events += 1
            if len(data) < _READ_BYTES // 2:
                break  # that was all
        if events:
            self._note_pace(events)
        for name in names:
            self._on_change(os.fsdecode(name.rstrip(b"\0")))
        return events > 0

    def _read(self) -> bytes:
        try:
            return os.read(self._file, _READ_BYTES)
        except BlockingIOError:
            return b""

    def _note_pace(self, events: int) -> None:
        now = self._loop.time()
        passed, self._notified_at = min((now - self._notified_at) / events, 1.0), now
        self._usual_seconds += (passed - self._usual_seconds) * min(_NEW_PART * events, 1.0)


if sys.platform != "linux":

    class _Kqueue:
        """macOS: the folder tells of new names only, so each file is watched as well."""

        def __init__(self, folder: Path, on_change: OnChange) -> None:
            self._folder = folder
            self._on_change = on_change
            self._queue = select.kqueue()
            self._names: dict[int, str] = {}
            self._add(folder, "")
            self._add_new()
            self._loop = asyncio.get_running_loop()
            self._loop.add_reader(self._queue.fileno(), self._on_kernel)

        def stop(self) -> None:
            if not self._queue.closed:
                self._loop.remove_reader(self._queue.fileno())
                self._queue.close()
                for file in self._names:
                    os.close(file)

        def _add(self, path: Path, name: str) -> None:
            file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
            self._names[file] = name
            flags = select.KQ_NOTE_WRITE | select.KQ_NOTE_EXTEND | select.KQ_NOTE_ATTRIB
            gone = select.KQ_NOTE_RENAME | select.KQ_NOTE_DELETE
            how = select.KQ_EV_ADD | select.KQ_EV_CLEAR
            event = select.kevent(file, select.KQ_FILTER_VNODE, how, flags | gone)
            self._queue.control([event], 0)

        def _add_new(self) -> list[str]:
            names = set(self._names.values())
            new = [path for path in self._folder.iterdir() if path.name not in names]
            for path in new:
                self._add(path, path.name)
            return [path.name for path in new]

        def _on_kernel(self) -> None:
            for event in self._queue.control(None, 64, 0):
                name = self._names[event.ident]
                if event.fflags & (select.KQ_NOTE_RENAME | select.KQ_NOTE_DELETE):
                    os.close(event.ident)
                    del self._names[event.ident]
                for changed in self._add_new() if not name else [name]:
                    self._on_change(changed)


class EndWatch:
    """Tells once that a process has ended. Stopped by whoever made it."""

    def __init__(self, pid: int, ended: Callable[[], None]) -> None:
        """Tells at once of one that is not there any more. Raises `OSError` where the kernel does not tell of ends."""
        self._ended = ended
        self._loop = asyncio.get_running_loop()
        self._handle = -1
        self._notification: asyncio.Handle | None = None
        try:
            self._handle = _handle_of(pid)
        except ProcessLookupError:
            self._notification = self._loop.call_soon(ended)
        else:
            self._loop.add_reader(self._handle, self._on_kernel)

    def stop(self) -> None:
        """Tell nothing more. Harmless when called twice."""
        if self._notification is not None:
            self._notification.cancel()
        if self._handle >= 0:
            self._loop.remove_reader(self._handle)
            os.close(self._handle)
            self._handle = -1

    def _on_kernel(self) -> None:
        self.stop()
        self._ended()


if sys.platform == "linux":

    def _handle_of(pid: int) -> int:
        """A file that can be read from once the process has ended."""
        if not hasattr(os, "pidfd_open"):  # Python was built for older kernels
            raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))
        return os.pidfd_open(pid)

else:

    def _handle_of(pid: int) -> int:
        """macOS: a queue of which the process's end is the only event."""
        queue = select.kqueue()
        try:
            how, what = select.KQ_EV_ADD | select.KQ_EV_ONESHOT, select.KQ_NOTE_EXIT
            queue.control([select.kevent(pid, select.KQ_FILTER_PROC, how, what)], 0)
            return os.dup(queue.fileno())
        finally:
            queue.close()

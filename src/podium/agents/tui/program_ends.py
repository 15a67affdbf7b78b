"""Being woken by the kernel when a program ends that somebody else started. No polling, no thread, no process."""

from __future__ import annotations

import asyncio
import errno
import os
import select
import sys
from collections.abc import Callable


class EndWatch:
    """Tells once that a process has ended. Stopped by whoever made it."""

    def __init__(self, pid: int, ended: Callable[[], None]) -> None:
        """Tells at once of one that is not there any more. Raises `OSError` where the kernel does not tell of ends."""
        self._ended = ended
        self._loop = asyncio.get_running_loop()
        self._handle = -1
        self._telling: asyncio.Handle | None = None
        try:
            self._handle = _handle_of(pid)
        except ProcessLookupError:
            self._telling = self._loop.call_soon(ended)
        else:
            self._loop.add_reader(self._handle, self._on_kernel)

    def stop(self) -> None:
        """Tell nothing more. Harmless when called twice."""
        if self._telling is not None:
            self._telling.cancel()
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

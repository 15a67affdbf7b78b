"""The lock of a project's state folder: shared by every process that opens the record, taken alone by `podium uninstall`."""

from __future__ import annotations

import os
from pathlib import Path

from podium.core.errors import LockHeld
from podium.platform.file_lock import take_folder_lock

_UNINSTALL_SECONDS = 5.0
"""Time to wait for `podium uninstall`, which may only be looking."""


class StateLock:
    """A process's share of that lock."""

    def __init__(self, state: Path) -> None:
        self._state = state
        self._handle: int | None = None

    def hold(self) -> None:
        """Keep the folder from being removed until `release`. It must be there; asking twice is once.

        Raises `LockHeld` where `podium uninstall` is at work in it.
        """
        if self._handle is not None:
            return
        try:
            self._handle = take_folder_lock(self._state, shared=True, seconds=_UNINSTALL_SECONDS)
            removed = not os.path.samestat(os.fstat(self._handle), self._state.lstat())
        except (BlockingIOError, FileNotFoundError):
            removed = True
        except OSError:
            return  # a file system without locks, where nothing can be held
        if removed:
            self.release()
            raise LockHeld(
                f"`podium uninstall` is running in {str(self._state)!r}; run the command again when it has ended"
            )

    def release(self) -> None:
        if self._handle is not None:
            os.close(self._handle)
            self._handle = None

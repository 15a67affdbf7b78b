"""Whether a closing tag went by in what a pane wrote: a reason to look at its screen at once."""

from __future__ import annotations

import os
from pathlib import Path

from podium.domain.messages import TAG

_CLOSING = f"/{TAG}".encode()
_BLOCK_BYTES = 1 << 14
"""Small, for what is written at once is, and a large buffer costs more than the reading."""


class StreamGate:
    """Follows the file that a pane's output is kept in. Only a hint: programs may draw a tag in pieces.

    Closed by whoever made it.
    """

    def __init__(self, file: Path) -> None:
        self._file = file
        self._handle = -1
        self._inode = 0
        self._at = 0
        self._end = b""
        self._find()
        if self._handle >= 0:
            self._at = os.fstat(self._handle).st_size

    def has_opened(self) -> bool:
        """Whether a closing tag was written since the last time."""
        opened = any_read = False
        while self._handle >= 0 and (read := os.pread(self._handle, _BLOCK_BYTES, self._at)):
            any_read = True
            new = self._end + read
            self._at, self._end = self._at + len(read), new[1 - len(_CLOSING) :]
            opened = opened or _CLOSING in new
            if len(read) < _BLOCK_BYTES:
                break
        # Nothing is added to a file that was put aside. What the new one has may hold the tag.
        return opened if any_read else self._find()

    def close(self) -> None:
        if self._handle >= 0:
            os.close(self._handle)
            self._handle = -1

    def _find(self) -> bool:
        """Have the file open that is there now. True: it is another one than before."""
        try:
            inode = self._file.lstat().st_ino
            if inode == self._inode:
                return False
            self.close()
            self._handle = os.open(self._file, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
        except OSError:
            return False  # it is just being put aside
        self._inode, self._at, self._end = inode, 0, b""
        return True

"""The two directions of a child's pipes, driven by the event loop without tasks.

Tasks would be cancelled together with the one that waits for the child; callbacks go on until
the tree is gone.
"""

from __future__ import annotations

import asyncio
import os
from typing import IO

_CHUNK_BYTES = 1 << 18
_LAST_CHUNKS = 64
"""More than any pipe holds. Bounds the last look when something outside the tree still writes."""


class OutputPipe:
    """Keeps the head of what comes out of a pipe and counts the rest, so that writers never block."""

    def __init__(self, loop: asyncio.AbstractEventLoop, pipe: IO[bytes], keep_bytes: int) -> None:
        self._loop = loop
        self._pipe = pipe
        self._fd = pipe.fileno()
        self._room_bytes = keep_bytes
        self._kept: list[bytes] = []
        self._open = True
        self.dropped_bytes = 0
        os.set_blocking(self._fd, False)
        loop.add_reader(self._fd, self._read_some)

    @property
    def kept(self) -> bytes:
        return b"".join(self._kept)

    def finish(self) -> None:
        """Take what is still in the pipe and close it. For when every writer is dead."""
        for _ in range(_LAST_CHUNKS):
            if not self._read_some():
                break
        self._close()

    def _read_some(self) -> bool:
        """Read once. False when there is nothing to read now, or nothing any more."""
        if not self._open:
            return False
        try:
            chunk = os.read(self._fd, _CHUNK_BYTES)
        except BlockingIOError:
            return False
        if not chunk:
            self._close()
            return False
        head = chunk[: self._room_bytes]
        if head:
            self._kept.append(head)
        self._room_bytes -= len(head)
        self.dropped_bytes += len(chunk) - len(head)
        return True

    def _close(self) -> None:
        if self._open:
            self._open = False
            self._loop.remove_reader(self._fd)
            self._pipe.close()


class InputPipe:
    """Writes as fast as the other side reads. A reader that went away is no error."""

    def __init__(
        self, loop: asyncio.AbstractEventLoop, pipe: IO[bytes], data: bytes, last: bool
    ) -> None:
        """`last`: close the pipe once all is written, so that the reader sees the end."""
        self._loop = loop
        self._pipe = pipe
        self._fd = pipe.fileno()
        self._left = memoryview(data)
        self._last = last
        self._open = True
        os.set_blocking(self._fd, False)
        self._write_some()

    def write(self, data: bytes) -> None:
        """Write this too, after what is still to be written."""
        self._left = memoryview(bytes(self._left) + data)
        self._write_some()

    def close(self) -> None:
        """Drop what is not written and close."""
        if self._open:
            self._open = False
            self._loop.remove_writer(self._fd)
            self._pipe.close()

    def _write_some(self) -> None:
        if not self._open:
            return
        try:
            while self._left:
                self._left = self._left[os.write(self._fd, self._left) :]
        except BlockingIOError:
            self._loop.add_writer(self._fd, self._write_some)
            return
        except (BrokenPipeError, ConnectionResetError):
            self.close()
            return
        self._loop.remove_writer(self._fd)
        if self._last:
            self.close()

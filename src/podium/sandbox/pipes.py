"""The two directions of a child's pipes, driven by the event loop without tasks.

Tasks would be cancelled together with the one that waits for the child; callbacks go on until
the tree is gone.
"""

from __future__ import annotations

import asyncio
import os
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import AsyncIterator
from itertools import count
from typing import IO

_CHUNK_BYTES = 1 << 18
_LAST_CHUNKS = 64
"""More than any pipe holds. Bounds the last look when something outside the tree still writes."""

_LINES_AT_ONCE = 500
_LINE_COST_BYTES = 64
"""Cost of a line beside its bytes: a flood of empty ones is a flood, too."""
_MAX_WAITING_BYTES = 1 << 22
"""So much may lie unread before a child that writes lines has to wait for its reader."""


class OutputPipe(ABC):
    """Takes what comes out of a pipe as it comes, so that writers do not block."""

    def __init__(self, loop: asyncio.AbstractEventLoop, pipe: IO[bytes]) -> None:
        self._loop = loop
        self._pipe = pipe
        self._fd = pipe.fileno()
        self._open = True
        os.set_blocking(self._fd, False)
        loop.add_reader(self._fd, self._read_some)

    @property
    def content(self) -> bytes:
        """The bytes that are handed over at the end."""
        return b""

    @property
    def dropped_bytes(self) -> int:
        return 0

    @abstractmethod
    def take(self, chunk: bytes) -> None:
        """Do with a chunk what this pipe is for."""

    def finish(self) -> None:
        """Take what is still in the pipe and close it. For when every writer is dead."""
        for _ in range(_LAST_CHUNKS):
            if not self._read_some():
                break
        self.close()

    def close(self) -> None:
        if self._open:
            self._open = False
            self._loop.remove_reader(self._fd)
            self._pipe.close()

    def _read_some(self) -> bool:
        """Read once. False when there is nothing to read now, or nothing any more."""
        if not self._open:
            return False
        try:
            chunk = os.read(self._fd, _CHUNK_BYTES)
        except BlockingIOError:
            return False
        if not chunk:
            self.close()
            return False
        self.take(chunk)
        return True


class HeadPipe(OutputPipe):
    """Keeps the head of what came and counts the rest."""

    def __init__(self, loop: asyncio.AbstractEventLoop, pipe: IO[bytes], keep_bytes: int) -> None:
        self._bytes_left = keep_bytes
        self._head: list[bytes] = []
        self._dropped = 0
        super().__init__(loop, pipe)

    @property
    def content(self) -> bytes:
        return b"".join(self._head)

    @property
    def dropped_bytes(self) -> int:
        return self._dropped

    def take(self, chunk: bytes) -> None:
        head = chunk[: self._bytes_left]
        if head:
            self._head.append(head)
        self._bytes_left -= len(head)
        self._dropped += len(chunk) - len(head)


class TailPipe(OutputPipe):
    """Keeps the last lines of what came: how a long-lived program ended stands there."""

    def __init__(self, loop: asyncio.AbstractEventLoop, pipe: IO[bytes], keep_bytes: int) -> None:
        self._keep_bytes = keep_bytes
        self._chunks: deque[bytes] = deque()
        self._held = 0
        self._dropped = 0
        super().__init__(loop, pipe)

    @property
    def content(self) -> bytes:
        tail = b"".join(self._chunks)[-self._keep_bytes :]
        # From a whole line on: half a secret at the cut would not be known for one.
        return tail if self._held == len(tail) and not self._dropped else tail.partition(b"\n")[2]

    @property
    def dropped_bytes(self) -> int:
        return self._dropped + self._held - len(self.content)

    def take(self, chunk: bytes) -> None:
        self._chunks.append(chunk)
        self._held += len(chunk)
        while self._held - len(self._chunks[0]) >= self._keep_bytes:
            first = len(self._chunks.popleft())
            self._held -= first
            self._dropped += first


class LinePipe(OutputPipe):
    """Hands lines to one reader as they come. Who reads slowly makes the child wait."""

    def __init__(self, loop: asyncio.AbstractEventLoop, pipe: IO[bytes], line_bytes: int) -> None:
        self._line_bytes = line_bytes
        self._lines: deque[bytes] = deque()
        self._waiting_bytes = 0
        self._part: list[bytes] = []
        self._part_bytes = 0
        self._cut = 0
        self._paused = False
        self._ended = False
        self._last_is_open = False
        self._arrived = asyncio.Event()
        super().__init__(loop, pipe)

    @property
    def dropped_bytes(self) -> int:
        """Bytes that were cut from lines that were too long."""
        return self._cut

    def take(self, chunk: bytes) -> None:
        *ends, part = chunk.split(b"\n")
        for end in ends:
            self._add(end)
            self._push()
        self._add(part)
        if self._waiting_bytes > _MAX_WAITING_BYTES and not self._ended:
            self._paused = True
            self._loop.remove_reader(self._fd)

    def finish(self) -> None:
        """The tree is dead: take the rest, and let the reader see the end."""
        self._ended = True
        super().finish()
        if self._part:
            self._last_is_open = True
            self._push()
        self._arrived.set()

    async def read(self, *, ends: bool = False) -> AsyncIterator[bytes]:
        """The lines, until the tree is dead and all of them are read; with `ends` as they were written."""
        while True:
            for number in count(1):
                if not self._lines:
                    break
                line = self._lines.popleft()
                self._waiting_bytes -= len(line) + _LINE_COST_BYTES
                self._go_on()
                is_open = self._last_is_open and not self._lines
                yield line if is_open or not ends else line + b"\n"
                if number % _LINES_AT_ONCE == 0:
                    # A flood of short lines must not keep everybody else waiting.
                    await asyncio.sleep(0)
            if self._ended:
                return
            self._arrived.clear()
            await self._arrived.wait()

    def _go_on(self) -> None:
        if self._paused and self._open and self._waiting_bytes < _MAX_WAITING_BYTES // 2:
            self._paused = False
            self._loop.add_reader(self._fd, self._read_some)

    def _add(self, piece: bytes) -> None:
        capacity = self._line_bytes - self._part_bytes
        fitting = piece[:capacity]
        self._cut += len(piece) - len(fitting)
        if fitting:
            self._part.append(fitting)
            self._part_bytes += len(fitting)

    def _push(self) -> None:
        line = b"".join(self._part)
        self._part.clear()
        self._part_bytes = 0
        self._lines.append(line)
        self._waiting_bytes += len(line) + _LINE_COST_BYTES
        self._arrived.set()


class InputPipe:
    """Writes as fast as the other side reads. A reader that went away is no error."""

    def __init__(
        self, loop: asyncio.AbstractEventLoop, pipe: IO[bytes], data: bytes, last: bool
    ) -> None:
        """`last`: close the pipe once all is written, so that the reader sees the end."""
        self._loop = loop
        self._pipe = pipe
        self._fd = pipe.fileno()
        self._left: deque[memoryview] = deque([memoryview(data)] if data else [])
        self._last = last
        self._open = True
        self._idle = asyncio.Event()
        os.set_blocking(self._fd, False)
        self._write_some()

    def write(self, data: bytes) -> None:
        """Write this too, after what is still to be written."""
        if self._open and data:
            self._idle.clear()
            self._left.append(memoryview(data))
            self._write_some()

    async def drained(self) -> None:
        """Wait until all is written, or nobody is left to read it."""
        await self._idle.wait()

    def end(self) -> None:
        """Close once all is written."""
        self._last = True
        if not self._left:
            self.close()

    def close(self) -> None:
        """Drop what is not written and close."""
        if self._open:
            self._open = False
            self._left.clear()
            self._loop.remove_writer(self._fd)
            self._pipe.close()
            self._idle.set()

    def _write_some(self) -> None:
        if not self._open:
            return
        try:
            while self._left:
                written = os.write(self._fd, self._left[0])
                rest = self._left.popleft()[written:]
                if rest:
                    self._left.appendleft(rest)
        except BlockingIOError:
            self._loop.add_writer(self._fd, self._write_some)
            return
        except (BrokenPipeError, ConnectionResetError):
            self.close()
            return
        self._loop.remove_writer(self._fd)
        self._idle.set()
        if self._last:
            self.close()

"""A program in a workspace, joined to the streams that this process was given."""

from __future__ import annotations

import asyncio
import io
import os
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress

from podium.domain.launching import Ended
from podium.ports import Process

_CHUNK_BYTES = 1 << 16


class Heard:
    """The beginning of an output, up to a number of bytes."""

    def __init__(self, most_bytes: int) -> None:
        self._room_bytes = most_bytes
        self._pieces: list[bytes] = []
        self.dropped_bytes = 0

    def add(self, output: bytes) -> None:
        kept = output[: self._room_bytes]
        self._pieces.append(kept)
        self._room_bytes -= len(kept)
        self.dropped_bytes += len(output) - len(kept)

    @property
    def text(self) -> str:
        return b"".join(self._pieces).decode(errors="replace")


def redacted(output: bytes, redact: Callable[[str], str]) -> bytes:
    """The output without secrets; every other byte is as it was."""
    return redact(output.decode(errors="surrogateescape")).encode(errors="surrogateescape")


async def joined(
    process: Process, pass_on: Callable[[bytes], None], is_heard: Callable[[], bool]
) -> Ended:
    """Feed it what comes in here, pass on what it writes, and wait for its end.

    It is ended when nobody hears it any more, and when this is cancelled.
    """
    try:
        async with _fed(process):
            async for line in process.lines(ends=True):
                pass_on(line)
                if not is_heard():
                    return await process.end()
            return await process.wait()
    except BaseException:
        await process.end()
        raise


@asynccontextmanager
async def _fed(process: Process) -> AsyncIterator[None]:
    feeding = asyncio.create_task(_feed(process, _piped_input()))
    try:
        yield
    finally:
        feeding.cancel()
        with suppress(asyncio.CancelledError, OSError):
            await feeding


async def _feed(process: Process, source: int | None) -> None:
    try:
        while source is not None and (chunk := await _next_chunk(source)):
            await process.send(chunk)
    finally:
        process.close_input()


def _piped_input() -> int | None:
    """Where input comes from. Not from a terminal: there is none inside."""
    try:
        return None if sys.stdin is None or sys.stdin.isatty() else sys.stdin.fileno()
    except (io.UnsupportedOperation, ValueError):
        return None


async def _next_chunk(source: int) -> bytes:
    loop, ready = asyncio.get_running_loop(), asyncio.Event()
    try:
        loop.add_reader(source, ready.set)
    except PermissionError:
        # A plain file: the kernel does not watch it, for it never lets anybody wait.
        return await asyncio.to_thread(os.read, source, _CHUNK_BYTES)
    try:
        await ready.wait()
    finally:
        loop.remove_reader(source)
    return os.read(source, _CHUNK_BYTES)

"""The door on stdin and stdout, for the one client that started this process."""

from __future__ import annotations

import asyncio
import io
import os
import stat
import sys
from collections.abc import AsyncIterator
from typing import Any, cast

import anyio
from mcp.server import Server
from mcp.server.stdio import stdio_server

LONGEST_LINE_BYTES = 4_000_000
_CHUNK_BYTES = 1 << 16
_TOO_LONG = "the line is too long\n"
"""No JSON, so that the client is told that it cannot be read."""


async def serve_stdio(server: Server[Any]) -> None:
    """Answer until the client closes the line, or is gone. Stdout carries the protocol alone."""
    stdin = _Lines(sys.stdin.fileno()) if _can_be_waited_for() else None
    heard = cast("anyio.AsyncFile[str] | None", stdin)
    async with stdio_server(stdin=heard) as (read, write):
        await server.run(read, write, server.create_initialization_options())


def _can_be_waited_for() -> bool:
    """Pipes, sockets and terminals. Files, `/dev/null` and what is no file at all are left to the SDK."""
    try:
        source = sys.stdin.fileno()
        mode = os.fstat(source).st_mode
        return not stat.S_ISREG(mode) and (not stat.S_ISCHR(mode) or os.isatty(source))
    except (OSError, ValueError, io.UnsupportedOperation):
        return False


class _Lines:
    """Lines of a pipe. Waiting for one can be cut short, which reading in a thread cannot."""

    def __init__(self, source: int) -> None:
        self._source = os.dup(source)
        # What we start must not take words that are meant for us.
        nothing = os.open(os.devnull, os.O_RDONLY)
        os.dup2(nothing, source)
        os.close(nothing)

    async def __aiter__(self) -> AsyncIterator[str]:
        reader = asyncio.StreamReader()
        pipe = os.fdopen(self._source, "rb", buffering=0)
        transport, _ = await asyncio.get_running_loop().connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(reader), pipe
        )
        try:
            async for line in _bounded(reader):
                yield line
        finally:
            transport.close()


async def _bounded(reader: asyncio.StreamReader) -> AsyncIterator[str]:
    rest, skipping = b"", False
    while chunk := await reader.read(_CHUNK_BYTES):
        *lines, rest = (rest + chunk).split(b"\n")
        for line in lines:
            yield _TOO_LONG if skipping else line.decode(errors="replace")
            skipping = False
        if len(rest) > LONGEST_LINE_BYTES:
            rest, skipping = b"", True

"""A PostgreSQL for measuring: durable, on loopback, with its processor time and a wire that can be slow."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from urllib.parse import urlsplit

from tests.postgres import TO_INSTALL, Lifeline, PostgresServer, server_programs

CHUNK_BYTES = 65536


@contextmanager
def durable_server() -> Iterator[PostgresServer]:
    """A server of our own that waits for the disk at each commit, as people's do. Ended with the block."""
    programs = server_programs()
    if programs is None:
        raise SystemExit(TO_INSTALL)
    lifeline = Lifeline()
    try:
        server = PostgresServer(lifeline.folder, programs)
        server.ensure_started()
        for setting in ("fsync", "full_page_writes"):
            server.administer(f"ALTER SYSTEM SET {setting} = on")
        server.restart()
        yield server
    finally:
        lifeline.cut(programs)


def processor_seconds(server: PostgresServer) -> float:
    """Return the processor time that the server's processes that live now have used."""
    children = Path(f"/proc/{server.pid}/task/{server.pid}/children").read_text().split()
    return sum(_nanoseconds(pid) for pid in (str(server.pid), *children)) / 1e9


def _nanoseconds(pid: str) -> int:
    try:
        return int(Path(f"/proc/{pid}/schedstat").read_text().split()[0])
    except (FileNotFoundError, ProcessLookupError):
        # It has ended since it was listed.
        return 0


@asynccontextmanager
async def slow_wire(url: str, seconds: float) -> AsyncIterator[str]:
    """The address of the same database behind a wire that keeps everything for so long, each way."""
    target = urlsplit(url)
    tasks: set[asyncio.Task[None]] = set()

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there = await asyncio.open_connection(target.hostname, target.port)
        ways = ((reader, there[1]), (there[0], writer))
        tasks.update(asyncio.create_task(_pass_on(*way, seconds)) for way in ways)

    server = await asyncio.start_server(connected, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    try:
        yield target._replace(netloc=target.netloc.replace(f":{target.port}", f":{port}")).geturl()
    finally:
        server.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _pass_on(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, seconds: float
) -> None:
    loop = asyncio.get_running_loop()
    try:
        while chunk := await reader.read(CHUNK_BYTES):
            loop.call_later(seconds, writer.write, chunk)
        await asyncio.sleep(seconds)
    finally:
        writer.close()

"""A `podium worker` as people start it, that serves two queues in which nothing is."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

from benchmarks.server import processor_seconds
from tests.postgres import PostgresServer

SETTLED_SECONDS = 3.0
"""A worker that has just begun still imports and looks around."""
START_SECONDS = 60.0
END_SECONDS = 20.0
QUEUES = "queues:\n  first: {}\n  second: {}\n"


async def idle_shares(server: PostgresServer, folder: Path, seconds: float) -> tuple[float, float]:
    """Return the shares of one core that the worker, with whatever it started, and the server use."""
    url = server.url(server.create_database())
    async with _worker(url, folder) as pid:
        await asyncio.sleep(SETTLED_SECONDS)
        worker, database = _spent(pid), processor_seconds(server)
        await asyncio.sleep(seconds)
        worker, database = _spent(pid) - worker, processor_seconds(server) - database
    return worker / seconds, database / seconds


@asynccontextmanager
async def _worker(url: str, folder: Path) -> AsyncIterator[int]:
    home, project = folder / "home", folder / "project"
    for item in (home, project):
        item.mkdir()
    (project / "podium.yaml").write_text(QUEUES)
    environ = {
        "PATH": os.environ.get("PATH", ""),
        "HOME": str(home),
        "PODIUM_HOME": str(home),
        "PODIUM_PROJECT": str(project),
        "PODIUM_DATABASE_URL": url,
    }
    migrating = await _podium(environ, "db", "migrate")
    if await migrating.wait():
        raise SystemExit(f"`podium db migrate` ended with {migrating.returncode}")
    worker = await _podium(environ, "worker")
    try:
        await _serving(worker, url)
        yield worker.pid
        _check(worker)
    finally:
        await _end(worker)


async def _podium(environ: Mapping[str, str], *words: str) -> asyncio.subprocess.Process:
    command = [sys.executable, "-m", "podium", *words]
    return await asyncio.create_subprocess_exec(
        *command,
        cwd=environ["PODIUM_PROJECT"],
        env=dict(environ),
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.DEVNULL,
    )


async def _serving(worker: asyncio.subprocess.Process, url: str) -> None:
    """Until the database knows it."""
    import psycopg

    connection = await psycopg.AsyncConnection.connect(url, autocommit=True)
    try:
        async with asyncio.timeout(START_SECONDS), connection:
            while not await (await connection.execute("SELECT 1 FROM podium.workers")).fetchone():
                _check(worker)
                await asyncio.sleep(0.2)
    except TimeoutError:
        raise SystemExit(f"`podium worker` served nothing within {START_SECONDS:g} s") from None


def _check(worker: asyncio.subprocess.Process) -> None:
    if worker.returncode is not None:
        raise SystemExit(f"`podium worker` ended with {worker.returncode}")


async def _end(worker: asyncio.subprocess.Process) -> None:
    if worker.returncode is None:
        worker.send_signal(signal.SIGINT)
    try:
        async with asyncio.timeout(END_SECONDS):
            await worker.wait()
    except TimeoutError:
        worker.kill()
        await worker.wait()


def _spent(pid: int) -> float:
    """Processor seconds of a process and of those it started."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    own = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return own + sum(_spent(int(child)) for child in children)

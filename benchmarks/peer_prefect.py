"""Prefect beside Podium: its server on the same PostgreSQL, its flows in as many processes.

Its packages do not fit beside ours, so it lives with a Python of its own:
`python -m venv X && X/bin/pip install prefect==3.8.8 'fastapi==0.139.*'`.
"""

from __future__ import annotations

import asyncio
import os
import socket
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from urllib.request import urlopen

START_SECONDS = 120.0
END_SECONDS = 15.0

# Prefect writes down that tasks are done when it finds the time, flows at once: so these are counted.
COUNTING = "SELECT 10 * count(*), count(*) FROM flow_run WHERE state_type = 'COMPLETED'"


def command(python: Path, runs: int, room: int) -> list[str]:
    """A process that runs so many flows, at most `room` of them at once."""
    worker = Path(__file__).with_name("prefect_worker.py")
    return [str(python), str(worker), str(runs), str(room)]


@asynccontextmanager
async def server(python: Path, url: str) -> AsyncIterator[dict[str, str]]:
    """Prefect's server while the block lasts; gives the environment in which its flows find it."""
    with tempfile.TemporaryDirectory() as folder:
        port = _free_port()
        environ = _environ(folder, url, port)
        served = [str(python), "-m", "prefect", "server", "start", "--no-ui"]
        process = await asyncio.create_subprocess_exec(
            *served,
            *("--host", "127.0.0.1", "--port", str(port)),
            env=environ,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.DEVNULL,
        )
        try:
            await _answering(process, f"http://127.0.0.1:{port}/api/health")
            yield environ
        finally:
            await _end(process)


def _environ(folder: str, url: str, port: int) -> dict[str, str]:
    return {
        "PATH": os.environ.get("PATH", ""),
        "HOME": folder,
        "PREFECT_HOME": folder,
        "PREFECT_API_URL": f"http://127.0.0.1:{port}/api",
        "PREFECT_API_DATABASE_CONNECTION_URL": "postgresql+asyncpg://" + url.partition("://")[2],
        "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
        "PREFECT_LOGGING_LEVEL": "ERROR",
        "DO_NOT_TRACK": "1",
    }


async def _answering(process: asyncio.subprocess.Process, address: str) -> None:
    try:
        async with asyncio.timeout(START_SECONDS):
            while not await asyncio.to_thread(_answers, address):
                if process.returncode is not None:
                    raise SystemExit(f"Prefect's server ended with {process.returncode}")
                await asyncio.sleep(0.5)
    except TimeoutError:
        raise SystemExit(f"Prefect's server did not answer within {START_SECONDS:g} s") from None


def _answers(address: str) -> bool:
    with suppress(OSError), urlopen(address, timeout=5) as answer:
        return bool(answer.status == 200)
    return False


async def _end(process: asyncio.subprocess.Process) -> None:
    with suppress(ProcessLookupError):
        process.terminate()
    try:
        async with asyncio.timeout(END_SECONDS):
            await process.wait()
    except TimeoutError:
        with suppress(ProcessLookupError):
            process.kill()
        await process.wait()


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        return port

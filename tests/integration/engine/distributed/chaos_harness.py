"""Environment of the chaos: a server at the hub, and a worker on each machine."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.integration.engine.distributed.chaos_worker import Duty
from tests.integration.engine.distributed.namespaces import Machine
from tests.postgres import Lifeline, PostgresServer, server_programs

ENDS_WITHIN_SECONDS = 120.0
"""What a worker is given to end when it is told to."""


class Place:
    """A machine and the worker on it."""

    def __init__(self, machine: Machine, duty: Duty) -> None:
        self.machine = machine
        self.in_trouble = False
        self.broken: list[int] = []
        """Processes that ended by themselves, or not as they were told to."""
        self._duty = duty
        self._log = Path(duty.folder, f"{machine.name}.log")
        self.start()

    def start(self) -> None:
        program = [sys.executable, "-m", "tests.integration.engine.distributed.chaos_worker"]
        with self._log.open("ab") as log:
            self.process = subprocess.Popen(
                self.machine.command([*program, self._duty.model_dump_json()]),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    async def end(self) -> None:
        """Tell it to end; kill it when it does not."""
        self.process.terminate()
        try:
            code = await asyncio.to_thread(self.process.wait, ENDS_WITHIN_SECONDS)
        except subprocess.TimeoutExpired:
            self.kill()
            code = self.process.returncode
        if code:
            self.broken.append(self.process.pid)

    def look_after(self) -> None:
        """Do what a service manager does: one that started while the server was away has given up."""
        if not self.in_trouble and self.process.poll() is not None:
            self.broken.append(self.process.pid)
            self.start()


@contextmanager
def server_on_cables(machines: list[Machine]) -> Iterator[PostgresServer]:
    """A server that the machines reach over their cables."""
    programs = server_programs()
    assert programs is not None, "whoever starts this has looked"
    lifeline = Lifeline()
    try:
        server = PostgresServer(lifeline.folder, programs)
        server.ensure_started()
        data = server.folder / "cluster" / "data"
        addresses = ",".join(["127.0.0.1", *(machine.hub_address for machine in machines)])
        with (data / "postgresql.conf").open("a") as settings:
            settings.write(f"listen_addresses = '{addresses}'\n")
        with (data / "pg_hba.conf").open("a") as rules:
            rules.write("host all all 10.219.0.0/16 scram-sha-256\n")
        server.restart()
        yield server
    finally:
        lifeline.cut(programs)

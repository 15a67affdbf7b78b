"""Time by who spent it: Python in this process, PostgreSQL's processes, or neither of them."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks.figures import median, percentile
from benchmarks.loads import Cost
from benchmarks.server import processor_seconds
from tests.postgres import PostgresServer

PARTS = ("client", "server", "wait")


class Meter:
    """Counts from when it was made. Whatever else this process does meanwhile is counted too."""

    def __init__(self, server: PostgresServer) -> None:
        self._server = server
        # Looking at the server's processes takes time itself: it stands outside what is measured.
        self._served = processor_seconds(server)
        self._used = time.process_time()
        self._began = time.perf_counter()

    def read(self, times: int = 1) -> Cost:
        """Return the cost of one of so many."""
        wall = time.perf_counter() - self._began
        client = time.process_time() - self._used
        server = processor_seconds(self._server) - self._served
        return Cost(client, server, max(0.0, wall - client - server)).times(1 / times)


def typical(costs: Sequence[Cost]) -> Cost:
    """The medians of what processors spent, and the least that was waited for but for a tenth.

    Other programs on the machine make us wait for a processor, which is no cost of ours.
    """
    return Cost(
        client=median([cost.client for cost in costs]),
        server=median([cost.server for cost in costs]),
        wait=percentile([cost.wait for cost in costs], 0.1),
    )


def resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE")

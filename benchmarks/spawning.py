"""Costs that the launcher adds to a child process, against a bare one."""

from __future__ import annotations

import asyncio
import tempfile
import time

from benchmarks.figures import Figure, median
from podium.core.processes import ProcessSpec
from podium.sandbox import ProcessLauncher

ROUNDS = 40


async def measure() -> list[Figure]:
    launcher = ProcessLauncher()
    bare, ours = [], []
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(ROUNDS):
            began = time.perf_counter()
            process = await asyncio.create_subprocess_exec("true", cwd=folder)
            await process.wait()
            bare.append(time.perf_counter() - began)
            began = time.perf_counter()
            await launcher.run(ProcessSpec(argv=("true",), cwd=folder))
            ours.append(time.perf_counter() - began)
    extra = (median(ours) - median(bare)) * 1000
    return [
        Figure(
            "process tree started and ended",
            median(ours) * 1000,
            "ms",
            median(bare) * 1000,
            "bare subprocess",
        ),
        Figure("what the launcher adds", extra, "ms", most=30.0),
    ]

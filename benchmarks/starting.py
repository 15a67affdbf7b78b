"""How long a person waits for a command, against a bare interpreter."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.figures import Figure, median

ROUNDS = 15


async def measure() -> list[Figure]:
    return await asyncio.to_thread(_measure)


def _measure() -> list[Figure]:
    podium = str(Path(sys.executable).with_name("podium"))
    with tempfile.TemporaryDirectory() as folder:
        env = {**os.environ, "PODIUM_HOME": str(Path(folder) / "home")}
        subprocess.run(
            [podium, "init", "--project", folder], env=env, check=True, capture_output=True
        )
        commands = {
            "bare": [sys.executable, "-c", "pass"],
            "version": [podium, "--version"],
            "runs": [podium, "runs", "--project", folder],
            "approve": [podium, "approve", "appr_0000", "--project", folder],
        }
        seconds: dict[str, list[float]] = {name: [] for name in commands}
        for _ in range(ROUNDS):
            for name, command in commands.items():
                began = time.perf_counter()
                subprocess.run(command, env=env, capture_output=True, check=False)
                seconds[name].append(time.perf_counter() - began)
    took = {name: median(each) * 1000 for name, each in seconds.items()}
    return [
        Figure(
            "podium --version",
            took["version"],
            "ms",
            took["bare"],
            "python -c pass",
            most_ratio=3.0,
        ),
        Figure("podium runs", took["runs"], "ms", most=700.0),
        Figure("podium approve (unknown id)", took["approve"], "ms", most=700.0),
    ]

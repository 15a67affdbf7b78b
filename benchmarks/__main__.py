"""`python -m benchmarks [NAME …]`: measure and print. Exit 1 when a target was missed."""

from __future__ import annotations

import asyncio
import importlib
import os
import platform
import sqlite3
import sys

NAMES = (
    "durable",
    "deciding",
    "waking",
    "history",
    "starting",
    "spawning",
    "confining",
    "working",
    "asking",
    "piping",
    "contract",
)


def main() -> int:
    wanted = sys.argv[1:] or NAMES
    print(
        f"Python {platform.python_version()}, SQLite {sqlite3.sqlite_version}, "
        f"{os.cpu_count()} cores, {platform.system()} {platform.release()}"
    )
    missed = 0
    for name in wanted:
        figures = asyncio.run(importlib.import_module(f"benchmarks.{name}").measure())
        for figure in figures:
            print(figure.line(), flush=True)
            missed += figure.verdict == "MISSED"
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())

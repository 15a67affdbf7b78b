"""`python -m benchmarks [NAME …]`: measure and print. Exit 1 when a target was missed.

`many` stands for those that need a PostgreSQL and several processes; `--quick` makes these small.
"""

from __future__ import annotations

import argparse
import asyncio
import importlib
import os
import platform
import sqlite3
import sys
from collections.abc import Sequence

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
    "wrapping",
    "piping",
    "prompting",
    "contract",
    "operating",
    "sensing",
    "editing",
    "redaction",
    "tracing",
    "handoffs",
    "claude_pair",
    "watching_panes",
    "console",
)

MANY = ("scaling", "waking_many", "aging_many")


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks")
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join((*NAMES, *MANY, "many")))
    parser.add_argument(
        "--quick", action="store_true", help="small versions of the benchmarks with many runs"
    )
    chosen = parser.parse_args(arguments)
    wanted = [item for name in chosen.names for item in (MANY if name == "many" else (name,))]
    if unknown := set(wanted) - {*NAMES, *MANY}:
        parser.error(f"unknown benchmarks: {', '.join(sorted(unknown))}")
    print(
        f"Python {platform.python_version()}, SQLite {sqlite3.sqlite_version}, "
        f"{os.cpu_count()} cores, {platform.system()} {platform.release()}"
    )
    missed = 0
    for name in wanted or NAMES:
        measure = importlib.import_module(f"benchmarks.{name}").measure
        figures = asyncio.run(measure(quick=chosen.quick) if name in MANY else measure())
        for figure in figures:
            print(figure.line(), flush=True)
            missed += figure.verdict == "MISSED"
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())

"""Hand one task to the pair and print its report: `python3 poli_orchestrator.py ["TASK"]`. Ends with `DONE: True`."""

from __future__ import annotations

import os
import sys

TASK = (
    "Read the README of this folder, then write a script that does what it describes, and run it."
)


def main() -> None:
    program = os.environ.get("PODIUM", "podium")
    task, options = (sys.argv[1], sys.argv[2:]) if len(sys.argv) > 1 else (TASK, [])
    os.execvp(program, [program, "duet", "send", task, *options])  # noqa: S606 — it becomes that program


if __name__ == "__main__":
    main()

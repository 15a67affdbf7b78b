#!/usr/bin/env python3
"""Parse a plan and print what would come of it: `gmx_clc_parse_plan.py --input FILE`.

All the work is done by `podium plan parse`, which creates nothing, so `--dry-run` changes nothing here.
Runs with any Python from 3.7 on: Podium need not be installed in it.
"""

from __future__ import annotations

import importlib.util
import os
import runpy
import shutil
import sys
from pathlib import Path


def main() -> int:
    arguments = [
        "plan",
        "parse",
        *(arguments for arguments in sys.argv[1:] if arguments != "--dry-run"),
    ]
    if not os.environ.get("PODIUM") and importlib.util.find_spec("podium") is not None:
        sys.argv = ["podium", *arguments]
        runpy.run_module("podium", run_name="__main__", alter_sys=True)
        return 0
    program = find_program()
    if program is None:
        sys.stderr.write(
            "gmx_clc_parse_plan: podium not found; install it in this Python, in the root's .venv or on PATH, "
            "or set PODIUM to its path\n"
        )
        return 127
    return os.execv(program, [program, *arguments])  # noqa: S606 - this process becomes Podium


def find_program() -> str | None:
    """Podium as a program: the one that PODIUM names, the root's own, the first on PATH."""
    if os.environ.get("PODIUM"):
        return shutil.which(os.environ["PODIUM"])
    own = Path(__file__).resolve().parents[2] / ".venv" / "bin" / "podium"
    return shutil.which(str(own)) or shutil.which("podium")


if __name__ == "__main__":
    sys.exit(main())

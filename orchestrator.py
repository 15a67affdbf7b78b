"""`python orchestrator.py --task "…" [--mode {bugfix,research,direct}]`: the same as `podium run "…"`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence


def as_podium(arguments: Sequence[str]) -> list[str]:
    """The same call in Podium's words. Whatever else is said is handed on: `--agent`, `--base`, `--json`, …"""
    parser = argparse.ArgumentParser(
        prog="orchestrator.py",
        description="Turn a task into a reviewed, tested branch and a pull request.",
        epilog="All other options are those of `podium run`; `podium run --help` lists them.",
        allow_abbrev=False,
    )
    parser.add_argument("--task", required=True, help="what to build or fix; - reads it from stdin")
    parser.add_argument("--mode", default="direct", help="bugfix, research or direct")
    given, others = parser.parse_known_args(arguments)
    return ["run", f"--mode={given.mode}", *others, "--", given.task]


def main() -> None:
    words = as_podium(sys.argv[1:])
    try:
        from podium.cli.start import main as podium
    except ModuleNotFoundError as missing:
        sys.exit(f"podium: there is no {missing.name!r} for {sys.executable}; `pip install .` here")
    sys.argv[1:] = words
    podium()


if __name__ == "__main__":
    main()

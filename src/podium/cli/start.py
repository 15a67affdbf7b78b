"""The entry of `podium`: instant for `--version`, late with everything else."""

from __future__ import annotations

import os
import sys

from podium import __version__


def main() -> None:
    """Run the command line and leave with its exit code."""
    _open_what_is_closed()
    try:
        if sys.argv[1:] in (["--version"], ["-V"]) and _told_version():
            return
        # Typer, pydantic and the rest cost ten times what a bare interpreter start does.
        from podium.cli.edge import run

        code = run(sys.argv[1:])
    except KeyboardInterrupt:
        # Before or behind any work: there is nothing to say.
        code = 130
    sys.exit(code)


def _told_version() -> bool:
    """False: it could not be written, and the edge knows how to say so."""
    try:
        os.write(1, f"podium {__version__}\n".encode())
    except OSError:
        return False
    return True


def _open_what_is_closed() -> None:
    """Let a closed stream lead nowhere: else the next file to be opened, the database, takes its place."""
    if None not in (sys.stdin, sys.stdout, sys.stderr):
        return
    while (nowhere := os.open(os.devnull, os.O_RDWR)) < 3:
        pass
    os.close(nowhere)
    if sys.stdout is None:
        sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115 - for good
    if sys.stderr is None:
        sys.stderr = open(2, "w", encoding="utf-8", closefd=False)  # noqa: SIM115 - for good

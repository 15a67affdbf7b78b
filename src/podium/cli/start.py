"""The entry of `podium`: instant for `--version`, late with everything else."""

from __future__ import annotations

import sys

from podium import __version__


def main() -> None:
    """Run the command line and leave with its exit code."""
    if sys.argv[1:] in (["--version"], ["-V"]):
        sys.stdout.write(f"podium {__version__}\n")
        return
    # Typer, pydantic and the rest cost ten times what a bare interpreter start does.
    from podium.cli.edge import run

    sys.exit(run(sys.argv[1:]))

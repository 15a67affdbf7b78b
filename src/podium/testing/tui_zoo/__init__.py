"""Programs that behave on a terminal as the terminal AIs do, and misbehave as they do; for tests and figures.

Each is one small file that runs by itself; `zoo_command` gives the command.
"""

from __future__ import annotations

import sys
from pathlib import Path


def zoo_command(kind: str, record: Path) -> tuple[str, ...]:
    """The command that starts one of the zoo. It adds a JSON string to the record for each message it takes."""
    return (sys.executable, "-IS", str(Path(__file__).parent), kind, str(record))

"""Programs that behave on a terminal as the terminal AIs do, and misbehave as they do; for tests and figures.

Each is one small file that runs by itself; `zoo_command` gives the command. With `Answers` they talk: they answer
messages as a model would, by the blocks that a prompt asks for, and tell the truth about themselves in `happened`.
"""

from __future__ import annotations

import sys
from pathlib import Path

from podium.testing.tui_zoo.answers import Answers, Happened, happened

__all__ = ["Answers", "Happened", "happened", "zoo_command"]


def zoo_command(kind: str, record: Path, answers: Path | None = None) -> tuple[str, ...]:
    """The command that starts one of the zoo. It adds a JSON string to the record for each message it takes."""
    command = (sys.executable, "-IS", str(Path(__file__).parent), kind, str(record))
    return command if answers is None else (*command, str(answers))

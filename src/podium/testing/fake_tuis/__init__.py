"""Fake TUIs: programs that behave, and misbehave, on a terminal as the terminal agents do; for tests and benchmarks.

`tui_command` gives the command of each kind. With `ScriptedAnswers` they answer messages as a model would, by the blocks that
a prompt asks for, and record their true state, which `happened` reads.
"""

from __future__ import annotations

import sys
from pathlib import Path

from podium.testing.fake_tuis.answers import Happened, ScriptedAnswers, happened

__all__ = ["Happened", "ScriptedAnswers", "happened", "tui_command"]


def tui_command(kind: str, record: Path, answers: Path | None = None) -> tuple[str, ...]:
    """Return the command that starts a fake TUI. It adds a JSON string to the record for each message it takes."""
    command = (sys.executable, "-IS", str(Path(__file__).parent), kind, str(record))
    return command if answers is None else (*command, str(answers))

"""What programs on terminals need of the house."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from podium.agents.tui.adapting import Terms
from podium.agents.tui.server import EndLeft
from podium.domain.keyboards import KeyboardHold
from podium.ports import Clock, Enclosures, HookDoors, Launcher, Transcripts


async def _nobody_is_told(run_id: str, side: str, hold: KeyboardHold) -> None:
    """For pairs whose turns are put down nowhere."""


@dataclass(frozen=True)
class TuiKit:
    """The ports and places that a pair of programs is run with."""

    launcher: Launcher
    enclosures: Enclosures
    doors: HookDoors
    transcripts: Transcripts
    clock: Clock
    hook_command: tuple[str, ...]
    """What a CLI runs as its tool hook. It finds the door of whichever turn is on by `PODIUM_DOOR_FILE`."""
    user_home: Path
    """Whose logins are copied."""
    environ: Mapping[str, str]
    """The person's environment, for finding programs and configured homes. Never handed on."""
    end_left: EndLeft
    door_folder: Path | None = None
    """Where the doors of turns listen: programs are shown it from the start. None: they need not be."""
    terms: Terms = field(default_factory=Terms)
    keyboard_lapsed: Callable[[str, str, KeyboardHold], Awaitable[None]] = _nobody_is_told
    """Is told the run and the side whose turn ended a person's hold on the keyboard because its time was over."""

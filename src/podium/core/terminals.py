"""Programs on terminals as others see and steer them: what they are at, and what they show."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, field_validator

from podium.core.keyboards import (
    HOLD_SECONDS,
    MAX_HOLD_SECONDS,
    MAX_NAME_CHARACTERS,
    KeyboardHold,
    KeyboardState,
    PersonName,
)
from podium.core.model import FrozenModel, NonEmpty, UtcDatetime
from podium.core.turns import PairName, Side

TerminalStatus = Literal["gone", "starting", "ready", "busy", "asking", "unknown"]
"""`gone`: its program is not there, or is no more."""

Columns = Annotated[int, Field(ge=20, le=4000)]
Rows = Annotated[int, Field(ge=5, le=4000)]

MAX_KEYS = 1000
MAX_KEY_CHARACTERS = 10_000
MAX_PRESSED_CHARACTERS = 500_000
"""Of all keys together: they travel in one message of the typed API, which can have four megabytes."""
MAX_PASTED_CHARACTERS = 200_000


class Terminal(FrozenModel):
    """The program that is meant."""

    pair: PairName = "main"
    side: Side


class TerminalState(FrozenModel):
    """State of a program on a terminal."""

    terminal: Terminal
    agent: str
    """Kind of program: `claude`, `codex`, `gemini`, `generic`."""
    status: TerminalStatus
    question: str = ""
    """The question to a person, when it is `asking`."""
    pane: str = ""
    pid: int = 0
    session: str = ""
    """Its conversation. Empty: it has not begun."""
    sent: int = 0
    """Messages that it took."""
    active_at: UtcDatetime | None = None
    """Time of its last output."""
    keyboard: KeyboardHold | None = None
    """The person who has taken its keyboard."""


class TerminalPicture(FrozenModel):
    """Screen of a program."""

    lines: tuple[str, ...]
    left_out: int = 0
    """Lines before these that there was no room for."""
    columns: int
    rows: int
    cursor_column: int = 0
    cursor_row: int = 0
    """From 0, within what is visible."""


class KeyboardRequest(FrozenModel):
    """A person wants a keyboard, or more time with it."""

    terminal: Terminal
    who: PersonName
    seconds: float = Field(default=HOLD_SECONDS, gt=0, le=MAX_HOLD_SECONDS)


class PaneFrame(FrozenModel):
    """A pane as it is painted: exactly what a terminal of its size would show."""

    columns: int
    rows: int
    lines: tuple[str, ...]
    """Each whole by itself: printable characters and the escapes of their colours, and nothing else."""
    cursor_column: int = 0
    cursor_row: int = 0
    cursor_shown: bool = True
    dead: bool = False
    """Its program is no more."""


class PaneView(FrozenModel):
    """Screen of a program for onlookers."""

    frame: PaneFrame | None = None
    """None: there is nothing to be seen, and `trouble` says why."""
    trouble: str = ""
    keyboard: KeyboardState = KeyboardState()


class KeysPressed(FrozenModel):
    """Keys for a program, one after another."""

    terminal: Terminal
    who: str = Field(default="", max_length=MAX_NAME_CHARACTERS)
    """Pressed only while this person has the keyboard. Empty: only while nobody has taken it."""
    keys: tuple[Annotated[NonEmpty, Field(max_length=MAX_KEY_CHARACTERS)], ...] = Field(
        min_length=1, max_length=MAX_KEYS
    )
    """By tmux's names, as `Escape`, `C-c` and `Enter`; any other word is typed as it stands."""

    @field_validator("keys")
    @classmethod
    def _fit_one_call(cls, keys: tuple[str, ...]) -> tuple[str, ...]:
        count = sum(map(len, keys))
        if count > MAX_PRESSED_CHARACTERS:
            raise ValueError(
                f"they have {count:,} characters, and at most {MAX_PRESSED_CHARACTERS:,} can be pressed at once"
            )
        return keys


class TextPasted(FrozenModel):
    """Words that a person puts into a program's input as one piece."""

    terminal: Terminal
    who: PersonName
    text: Annotated[NonEmpty, Field(max_length=MAX_PASTED_CHARACTERS)]


class PairSize(FrozenModel):
    """Size of both panes of a pair."""

    pair: PairName = "main"
    columns: Columns
    rows: Rows


class TerminalUpdate(FrozenModel):
    """Something changed: what the program is at now, and shows."""

    state: TerminalState
    picture: TerminalPicture | None = None
    """None: there is nothing to be seen."""

"""Adapter of one kind of program on a terminal, the dependencies that all have, and the adapter of each kind."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, Protocol

from podium.agents.deps import AgentOptions
from podium.agents.program import Needs
from podium.agents.tui.screen import Eyes, Patience, TerminalScreen
from podium.agents.tui.server import EndLeft
from podium.core.keyboards import KeyboardHold
from podium.core.model import Json
from podium.ports import Clock, ConfinementProvider, HookServers, Launcher, Transcripts, Translate

Status = Literal["starting", "ready", "busy", "asking", "unknown"]
"""State of a living program: it comes up; it takes a message; it works on one; it shows a question that only a
person can answer; or that is not to be seen."""


@dataclass(frozen=True)
class ProgramContext:
    """Folders and settings of one program of a pair."""

    name: str
    """Of its pane: `planner`, `executer`."""
    cwd: Path
    home: Path
    """Private, for this program alone, as long as the pair is up."""
    temporary: Path
    """For `TMPDIR`. Neither above nor beneath the home."""
    options: AgentOptions
    hook_command: tuple[str, ...]
    """The command that the CLI runs as its tool hook: asks the door of whichever turn is on, and denies when none is."""
    user_home: Path
    """The home whose login is copied."""
    confined: bool
    """The kernel holds its processes: a sandbox of its own would only be in the way."""


@dataclass(frozen=True)
class Launch:
    """The command that starts a program, or starts it again in its conversation."""

    argv: tuple[str, ...]
    env: dict[str, str]
    """Secrets stand as `secret://NAME`."""
    session: str
    """The conversation. Empty: its name is known only when it has begun."""
    needs: Needs


@dataclass(frozen=True)
class TranscriptEntry:
    """One thing that a program wrote down of its conversation."""

    kind: Literal["prompt", "words", "used", "end"]
    """It took a message; it said something; a tool was used; its turn is over."""
    text: str = ""
    use: str = ""
    """`used`: the CLI's own name for this use of a tool."""
    ok: bool = True
    """`used`: it went well. `end`: the turn came to a good end."""


class Written(Protocol):
    """The program's own transcript of its conversation, to the byte, read from where one stopped."""

    def folders(self) -> Sequence[Path]:
        """Folders in which it writes: whatever changes there is a reason to read. They may not exist yet."""
        ...

    def end_position(self) -> Json:
        """Return its present end. Kept across Podiums; nothing that comes later stands before it."""
        ...

    def since(self, position: Json) -> tuple[list[TranscriptEntry], Json]:
        """Return the entries written since, whole records only, and where they ended. Damaged records are passed over."""
        ...

    @property
    def session(self) -> str:
        """Name of the conversation, empty while it has not begun."""
        ...


class Adapter(Eyes, Protocol):
    """Knows one kind of program: how it starts, looks, writes and stops. Does nothing itself but lay out its home."""

    @property
    def kind(self) -> str:
        """`claude`, `codex`, `gemini`, `generic`."""
        ...

    @property
    def patience(self) -> Patience: ...

    @property
    def interrupt_keys(self) -> tuple[str, ...]:
        """Keys, by their tmux names, that end what it is at and leave it ready."""
        ...

    @property
    def translate(self) -> Translate | None:
        """Its tools' names and arguments in Podium's words. None: it has no tools that are told of."""
        ...

    def launch(self, context: ProgramContext, session: str | None) -> Launch:
        """Lay out the home and say how it is started: in this conversation, or in a new one.

        Nothing of the person's own settings counts, no dialog is left to answer. Raises `BadInput` for options that
        it does not have. Blocks meanwhile.
        """
        ...

    def fitted(self, text: str, context: ProgramContext) -> str:
        """The words as it has to be given them, so that it takes none of them for a command of its own."""
        ...

    def status(self, screen: TerminalScreen) -> Status: ...

    def question(self, screen: TerminalScreen) -> str:
        """Return its question, in one line for a person, when its status is `asking`."""
        ...

    def written(self, context: ProgramContext, session: str) -> Written | None:
        """Return its transcript. None: it writes none, and its text is read on its screen."""
        ...


@dataclass(frozen=True)
class TuiTimings:
    """Timeouts of a program on a terminal."""

    start_seconds: float = 60.0
    """Seconds until it is ready for the first message."""
    nudge_at: float = 0.75
    """The part of a turn's time after which one that rests is reminded."""
    nudge_text: str = "If finished, emit the tagged block now."
    quiet_seconds: float = 1.0
    """Seconds a screen rests before its last block counts, when the program's status cannot be seen."""


async def _ignore_lapse(run_id: str, side: str, hold: KeyboardHold) -> None:
    """For pairs whose turns are put down nowhere."""


@dataclass(frozen=True)
class TuiDeps:
    """The ports and places that a pair of programs is run with."""

    launcher: Launcher
    confinement_provider: ConfinementProvider
    doors: HookServers
    transcripts: Transcripts
    clock: Clock
    hook_command: tuple[str, ...]
    """The command that a CLI runs as its tool hook. It finds the door of whichever turn is on by `PODIUM_DOOR_FILE`."""
    user_home: Path
    """The home whose logins are copied."""
    environ: Mapping[str, str]
    """The person's environment, for finding programs and configured homes. Never handed on."""
    end_left: EndLeft
    door_folder: Path | None = None
    """Folder where the doors of turns listen: programs are shown it from the start. None: they need not be."""
    timings: TuiTimings = field(default_factory=TuiTimings)
    keyboard_lapsed: Callable[[str, str, KeyboardHold], Awaitable[None]] = _ignore_lapse
    """Is told the run and the side whose turn ended a person's hold on the keyboard because its time was over."""

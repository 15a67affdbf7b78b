"""Panes of a tmux server: found by name, each with its program, text fit to be pasted, and the program's end."""

from __future__ import annotations

import asyncio
import os
import re
import secrets
import shlex
import signal
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from pydantic import Field

from podium.agents.contract.reply_text import without_escapes
from podium.agents.tui.control import Control, PaneGone, literally, quoted
from podium.agents.tui.ledger import forget_input
from podium.agents.tui.screen import Manner, look
from podium.agents.tui.server import FREE, PLACEHOLDER, TerminalSettings
from podium.core.errors import BadInput, NotPossibleNow
from podium.core.model import FrozenModel
from podium.platform import make_private_folder
from podium.platform.atomic_write import atomic_write

Reveal = Callable[[str], str]
"""Gives the value of a variable whose setting names a secret. Raises when it is not known."""

_NAME, _STARTED = "@podium_pane", "@podium_started"
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")
_FACTS = ("window_id", "pane_id", _NAME, _STARTED, FREE)


class Program(FrozenModel):
    """A program to run in a pane."""

    name: str = Field(pattern=r"^[A-Za-z0-9_-]{1,40}$")
    """Of the pane: `planner`, `executer`."""
    argv: tuple[str, ...] = Field(min_length=1)
    cwd: Path
    env: dict[str, str] = Field(default_factory=dict)
    """For this pane alone, beside the launcher's allow-list. Secrets stand as `secret://NAME`."""


def no_secrets(reference: str) -> str:
    """For panes that were handed no secrets: knows none."""
    raise BadInput(f"{reference!r} is not defined; set it in Podium's environment, or remove it")


@dataclass(frozen=True)
class _Pane:
    """One that is there. It has no name when it is a person's own, or is free."""

    window: str
    id: str
    name: str
    started: bool
    free: bool
    """Podium made it, and it waits for its program."""


class Panes:
    """Opens panes beside each other, left to right, and talks to them by their ids.

    A person who attaches may open windows and panes of his own, and move between them: those are left alone.
    """

    def __init__(
        self, control: Control, settings: TerminalSettings, reveal: Reveal = no_secrets
    ) -> None:
        self._control = control
        self._settings = settings
        self._reveal = reveal

    async def open(self, program: Program) -> str:
        """The id of the pane of this name, with its program started in it unless that was done before.

        A program that was started and has ended is left as it is: see `restart`.
        """
        _refuse_unusable(program)
        panes = await self._all()
        existing = next((candidate for candidate in panes if candidate.name == program.name), None)
        pane = existing.id if existing else await self._named(program.name, panes)
        if existing is None or not existing.started:
            await self._start(pane, program)
        return pane

    async def find(self, name: str) -> str:
        """The id of the pane of this name whose program was started. Raises `PaneGone` when there is none."""
        for pane in await self._all():
            if pane.name == name and pane.started:
                return pane.id
        raise PaneGone(f"no pane is called {name!r}; start its program again")

    async def restart(self, pane: str, program: Program) -> None:
        """End what runs in the pane and start the program in it. What the pane showed is gone."""
        _refuse_unusable(program)
        await self._start(pane, program)

    async def press(self, pane: str, *keys: str) -> None:
        """Press keys by their tmux names, such as `Escape` and `C-c`. Other words are typed.

        Raises `BadInput` for what is neither.
        """
        await self._control.run(pressing(pane, keys))

    async def resize(self, columns: int, rows: int) -> None:
        """Give every pane so many columns and rows."""
        panes = await self._all()
        for window in {pane.window: None for pane in panes if pane.name}:
            count = sum(pane.window == window for pane in panes)
            await self._resize_window(window, count, columns, rows)

    async def _all(self) -> list[_Pane]:
        """Those of every window: a person may have opened more of them."""
        form = "|".join(f"#{{{fact}}}" for fact in _FACTS)
        lines = await self._control.ask(f"list-panes -s -t ={self._settings.session}: -F '{form}'")
        parts = [line.split("|") for line in lines]
        return [
            _Pane(window, id_, name, bool(started), bool(free))
            for window, id_, name, started, free in parts
        ]

    async def _named(self, name: str, panes: list[_Pane]) -> str:
        """A pane for the program of this name: the free one, or a new one beside the last that has a name."""
        free = next((pane.id for pane in panes if pane.free and not pane.name), None)
        if free is not None:
            await self._control.run(f"set -p -t {free} {_NAME} {name}")
            return free
        beside = next((pane for pane in reversed(panes) if pane.name), None)
        if beside is None:
            return await self._in_new_window(name)
        count = sum(pane.window == beside.window for pane in panes)
        return await self._split(name, beside, count)

    async def _split(self, name: str, beside: _Pane, count: int) -> str:
        """One list, in which the new pane is known by being the active one, until the person's is again."""
        columns, rows, window = self._settings.columns, self._settings.rows, beside.window
        await self._resize_window(window, count + 1, columns, rows)
        (pane,) = await self._control.ask(
            f"split-window -h -t {beside.id} -c / -P -F '#{{pane_id}}' {PLACEHOLDER} ; "
            f"set -p -t {window} {_NAME} {name} ; last-pane -t {window}"
        )
        await self._resize_window(window, count + 1, columns, rows)
        return pane

    async def _in_new_window(self, name: str) -> str:
        """One list, in which the new window is known by a name that nobody else has."""
        session, called = f"={self._settings.session}:", f"podium-{secrets.token_hex(8)}"
        (answer,) = await self._control.ask(
            f"new-window -d -t {session} -n {called} -c / -P -F '#{{window_id}} #{{pane_id}}' {PLACEHOLDER} ; "
            f"set -p -t {session}={called} {_NAME} {name}"
        )
        window, pane = answer.split()
        await self._resize_window(window, 1, self._settings.columns, self._settings.rows)
        return pane

    async def _resize_window(self, window: str, count: int, columns: int, rows: int) -> None:
        """Resizing fixes the window's size too, so that no client that attaches shrinks it."""
        width = count * (columns + 1) - 1
        await self._control.run(
            f"resize-window -t {window} -x {width} -y {rows} ; "
            f"select-layout -t {window} even-horizontal"
        )

    async def _start(self, pane: str, program: Program) -> None:
        """One list inside the server: no Podium that dies in between leaves a program nobody knows of."""
        variables = " ".join(
            f"-e {quoted(f'{name}={self._value(value)}')}" for name, value in program.env.items()
        )
        folder = quoted(literally(str(program.cwd)))
        await self._control.run(
            f"respawn-pane -k -t {pane} -c {folder} {variables} -- {_command(program.argv)} ; "
            f"clear-history -t {pane} ; {forget_input(pane)} ; set -p -t {pane} {_STARTED} 1"
        )

    def _value(self, value: str) -> str:
        return self._reveal(value) if value.startswith("secret://") else value


def leave_mode(pane: str) -> str:
    """The command that ends a person's scrolling back, in which keys would be tmux's."""
    return f"if -F -t {pane} '#{{pane_in_mode}}' 'send-keys -t {pane} -X cancel'"


def pressing(pane: str, keys: Sequence[str]) -> str:
    """The command that presses keys. Raises `BadInput` for what is no key and cannot be typed."""
    if not keys or any(not key or _CONTROL.search(key) for key in keys):
        raise BadInput(
            f"{list(keys)!r} are not valid keys; name each as tmux does, such as Enter, Escape, C-c or x"
        )
    # After `--` none of them is an option, which could name another pane.
    named = " ".join(quoted(key) for key in keys)
    return f"{leave_mode(pane)} ; send-keys -t {pane} -- {named}"


def _command(argv: tuple[str, ...]) -> str:
    """tmux starts several words as they are, and gives a single one to a shell."""
    arguments = argv if len(argv) > 1 else (f"exec {shlex.quote(argv[0])}",)
    return " ".join(quoted(argument) for argument in arguments)


def _refuse_unusable(program: Program) -> None:
    """tmux itself would start in another folder without a word, and cut words at a NUL."""
    if not program.cwd.is_absolute() or not program.cwd.is_dir():
        raise NotPossibleNow(
            f"{program.argv[0]!r} cannot start in {str(program.cwd)!r}: the folder does not exist; create it first"
        )
    if any("\0" in text for text in (*program.argv, *program.env, *program.env.values())):
        raise BadInput(
            f"an argument or variable of {program.argv[0]!r} contains a NUL character; remove it"
        )
    for name in program.env:
        if not name or "=" in name:
            raise BadInput(f"{name!r} is not a valid name for a variable; rename it")


MAX_LINE_BYTES = 4000
"""A terminal that reads plain lines keeps 4095 bytes of one and drops the rest."""

_NO_TEXT = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def fit_for_terminal(text: str) -> str:
    """The text without anything a terminal would obey: an escape in a paste ends it, and what follows is typed.

    Line ends become newlines; tabs stay. Raises `BadInput` when no words are left.
    """
    lines = text.replace("\r\n", "\n").replace("\r", "\n")
    fit = _NO_TEXT.sub("", without_escapes(lines))
    if not fit.strip():
        raise BadInput("there is nothing to send: the message is empty")
    return fit


def fits(text: str, manner: Manner, longest_paste_bytes: int) -> bool:
    """Return whether the text itself can be put in, and need not be handed over as a file."""
    if manner == "reference":
        return "\n" not in text and len(text.encode(errors="replace")) <= MAX_LINE_BYTES
    if manner == "lines":
        lines = text.encode(errors="replace").split(b"\n")
        return max(map(len, lines)) <= MAX_LINE_BYTES
    return len(text.encode(errors="replace")) <= longest_paste_bytes


def referring_to(folder: Path, name: str, text: str) -> str:
    """Write the words to a private file and give one line that says where they are. Blocks meanwhile."""
    make_private_folder(folder)
    file = folder.absolute() / name
    atomic_write(file, text.encode(errors="replace"))
    return f"Your message is in the file {file} - read all of it, then do what it says."


def loading(buffer: str, text: str) -> str:
    """The command that puts the words into a buffer of the server. Doing it again changes nothing."""
    return f"set-buffer -b {buffer} -- {quoted(text)}"


def pasting(buffer: str, pane: str) -> str:
    """The command that pastes a buffer and forgets it: in brackets where the program asked for them.

    With `-r` newlines stay: as carriage returns they were lost or doubled in some programs.
    """
    return f"paste-buffer -p -r -d -b {buffer} -t {pane}"


def typing(buffer: str, pane: str) -> str:
    """The command that types a buffer line by line, and Enter after the last."""
    return f"paste-buffer -d -b {buffer} -t {pane} ; send-keys -t {pane} C-m"


_MAX_SECONDS = 15.0
"""Seconds until it must have ended: what started it gives it two to leave, and kills its whole tree then."""
_PAUSE_SECONDS = 0.02


async def end_program(control: Control, pane: str, seconds: float = _MAX_SECONDS) -> None:
    """End what runs in the pane. On return all that has its terminal has ended, and the pane still stands.

    It is asked to leave, after so many seconds killed. Harmless when it has ended. Raises `NotPossibleNow` when it does not end, and `PaneGone`.
    """
    for signum, patience in ((signal.SIGHUP, seconds), (signal.SIGKILL, _MAX_SECONDS)):
        if (await look(control, pane)).dead:
            return
        (answer,) = await control.ask(f"display-message -p -t {pane} '#{{pane_pid}}'")
        pid = int(answer)
        with suppress(ProcessLookupError):
            os.kill(pid, signum)
        if await _is_gone(control, pane, pid, patience):
            return
    raise NotPossibleNow(
        f"the program in pane {pane} does not end; end what holds its terminal, then retry"
    )


async def _is_gone(control: Control, pane: str, pid: int, seconds: float) -> bool:
    """Return whether pane and process end in time. tmux calls a pane dead once its terminal is closed, which is a moment earlier."""
    give_up_at = asyncio.get_running_loop().time() + seconds
    while asyncio.get_running_loop().time() < give_up_at:
        if (await look(control, pane)).dead and not _exists(pid):
            return True
        await asyncio.sleep(_PAUSE_SECONDS)
    return False


def _exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True

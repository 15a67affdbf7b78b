"""Panes of a server: found by name, told by id, each with a program in a folder and environment of its own."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from pathlib import Path

from pydantic import Field

from podium.agents.tui.control import Control
from podium.agents.tui.ledger import forget_input
from podium.agents.tui.quoting import literally, quoted
from podium.agents.tui.server import PLACEHOLDER, TerminalSettings
from podium.agents.tui.trouble import PaneGone
from podium.domain.errors import BadInput, NotPossibleNow
from podium.domain.model import Noun

Reveal = Callable[[str], str]
"""Gives the value of a variable whose setting names a secret. Raises when it is not known."""

_NAME, _STARTED = "@podium_pane", "@podium_started"


class Program(Noun):
    """What is to run in a pane."""

    name: str = Field(pattern=r"^[A-Za-z0-9_-]{1,40}$")
    """Of the pane: `planner`, `executer`."""
    argv: tuple[str, ...] = Field(min_length=1)
    cwd: Path
    env: dict[str, str] = Field(default_factory=dict)
    """For this pane alone, beside the launcher's allow-list. Secrets stand as `secret://NAME`."""


def no_secrets(reference: str) -> str:
    """For panes that were handed no secrets: knows none."""
    raise BadInput(
        f"{reference!r} is not known here; define it where Podium keeps its secrets, or take it out"
    )


class Panes:
    """Opens panes beside each other, left to right, and talks to them by their ids."""

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
        found = await self._all()
        pane = next((each for each, (name, _) in found.items() if name == program.name), None)
        if pane is None:
            pane = next((each for each, (name, _) in found.items() if not name), None)
            pane = pane or await self._split(list(found))
            await self._control.tell(f"set -p -t {pane} {_NAME} {program.name}")
        if found.get(pane) != (program.name, "1"):
            await self._start(pane, program)
        return pane

    async def find(self, name: str) -> str:
        """The id of the pane of this name whose program was started. Raises `PaneGone` when there is none."""
        for pane, facts in (await self._all()).items():
            if facts == (name, "1"):
                return pane
        raise PaneGone(f"no pane is called {name!r}; start its program again")

    async def restart(self, pane: str, program: Program) -> None:
        """End what runs in the pane and start the program in it. What the pane showed is gone."""
        _refuse_unusable(program)
        await self._start(pane, program)

    async def press(self, pane: str, *keys: str) -> None:
        """Press keys by their tmux names, such as `Escape` and `C-c`."""
        named = " ".join(quoted(key) for key in keys)
        await self._control.tell(f"{leave_mode(pane)} ; send-keys -t {pane} {named}")

    async def resize(self, columns: int, rows: int) -> None:
        """Give every pane so many columns and rows."""
        await self._make_room(list(await self._all()), columns, rows)

    async def _all(self) -> dict[str, tuple[str, str]]:
        form = f"#{{pane_id}}|#{{{_NAME}}}|#{{{_STARTED}}}"
        lines = await self._control.ask(f"list-panes -t ={self._settings.session}: -F '{form}'")
        parts = [line.split("|") for line in lines]
        return {pane: (name, started) for pane, name, started in parts}

    async def _split(self, panes: list[str]) -> str:
        columns, rows = self._settings.columns, self._settings.rows
        await self._make_room([*panes, ""], columns, rows)
        (pane,) = await self._control.ask(
            f"split-window -h -d -t {panes[-1]} -c / -P -F '#{{pane_id}}' {PLACEHOLDER}"
        )
        await self._make_room([*panes, pane], columns, rows)
        return pane

    async def _make_room(self, panes: list[str], columns: int, rows: int) -> None:
        """Resizing fixes the window's size too, so that no client that attaches shrinks it."""
        width = len(panes) * (columns + 1) - 1
        window = f"={self._settings.session}:"
        await self._control.tell(
            f"resize-window -t {window} -x {width} -y {rows} ; "
            f"select-layout -t {window} even-horizontal"
        )

    async def _start(self, pane: str, program: Program) -> None:
        """One list inside the server: no Podium that dies in between leaves a program nobody knows of."""
        variables = " ".join(
            f"-e {quoted(f'{name}={self._value(value)}')}" for name, value in program.env.items()
        )
        folder = quoted(literally(str(program.cwd)))
        await self._control.tell(
            f"respawn-pane -k -t {pane} -c {folder} {variables} -- {_command(program.argv)} ; "
            f"clear-history -t {pane} ; {forget_input(pane)} ; set -p -t {pane} {_STARTED} 1"
        )

    def _value(self, value: str) -> str:
        return self._reveal(value) if value.startswith("secret://") else value


def leave_mode(pane: str) -> str:
    """The command that ends a person's scrolling back, in which keys would be tmux's."""
    return f"if -F -t {pane} '#{{pane_in_mode}}' 'send-keys -t {pane} -X cancel'"


def _command(argv: tuple[str, ...]) -> str:
    """tmux starts several words as they are, and gives a single one to a shell."""
    words = argv if len(argv) > 1 else (f"exec {shlex.quote(argv[0])}",)
    return " ".join(quoted(word) for word in words)


def _refuse_unusable(program: Program) -> None:
    """tmux itself would start in another folder without a word, and cut words at a NUL."""
    if not program.cwd.is_absolute() or not program.cwd.is_dir():
        raise NotPossibleNow(
            f"{program.argv[0]!r} cannot start in {str(program.cwd)!r}: there is no such folder; create it first"
        )
    if any("\0" in text for text in (*program.argv, *program.env, *program.env.values())):
        raise BadInput(f"an argument or variable of {program.argv[0]!r} holds a NUL; take it out")
    for name in program.env:
        if not name or "=" in name:
            raise BadInput(f"{name!r} cannot be the name of a variable; rename it")

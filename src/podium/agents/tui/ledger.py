"""The ledger: which message each pane was given, kept where the panes are.

It lies in options of the pane, inside the tmux server. So it changes together with what it tells of:
"if message 7 was not pasted yet, paste it and note so" is one list of commands that the server runs
whole or not at all, whoever sent it and whatever became of him. A Podium that was killed in the middle
left either no trace or both; a command of it that arrives late finds its condition false.

    pasted  the words are in the program's input, or on their way
    shown   they were seen there; only then is Enter pressed
    sent    they were seen to leave

Messages of a pane are numbered from 1 without gaps. The numbers hold for one life of the server.
"""

from __future__ import annotations

from dataclasses import dataclass

from podium.agents.tui.control import Control
from podium.agents.tui.quoting import quoted
from podium.domain.errors import BadInput

_FIELDS = ("pasted", "shown", "sent", "enters")


@dataclass(frozen=True)
class Entry:
    """How far the messages of a pane have come: the numbers of the last that were pasted, shown and sent."""

    pasted: int
    shown: int
    sent: int
    enters: int
    """How often Enter was pressed for the one that is being sent."""


class Ledger:
    """One pane's entry, read and written inside the server."""

    def __init__(self, control: Control, pane: str) -> None:
        self._control = control
        self._pane = pane

    async def read(self) -> Entry:
        form = "|".join(f"#{{{_option(name)}}}" for name in _FIELDS)
        (line,) = await self._control.ask(f"display-message -p -t {self._pane} '{form}'")
        return Entry(*(int(number or 0) for number in line.split("|")))

    async def next_number(self) -> int:
        """What the next message of this pane is called."""
        return (await self.read()).sent + 1

    async def paste_once(self, number: int, commands: str) -> None:
        """Run the commands that paste message `number`, unless that was done before."""
        notes = f"{self._note('pasted', number)} ; {self._note('enters', 0)}"
        await self._if(_is("pasted", number - 1), f"{commands} ; {notes}")

    async def type_once(self, number: int, commands: str) -> None:
        """Run the commands that put in and submit message `number` in one go, unless that was done before."""
        notes = [self._note(name, number) for name in ("pasted", "shown", "sent")]
        await self._if(_is("sent", number - 1), " ; ".join((commands, *notes)))

    async def note_shown(self, number: int) -> None:
        await self._if(_is("pasted", number), self._note("shown", number))

    async def press_once(self, number: int, enters: int, commands: str) -> None:
        """Run the commands that press Enter, if message `number` waits for exactly this press."""
        waits = _both(_both(_is("shown", number), _is("sent", number - 1)), _is("enters", enters))
        await self._if(waits, f"{commands} ; {self._note('enters', enters + 1)}")

    async def note_sent(self, number: int) -> None:
        await self._if(_is("shown", number), self._note("sent", number))

    async def reopen(self, number: int) -> None:
        """Let message `number` be pasted again, after somebody made sure that it did not arrive.

        Raises `BadInput` when it was sent.
        """
        entry = await self.read()
        if entry.sent >= number:
            raise BadInput(f"message {number} was sent; give a new message the next number")
        notes = [self._note(name, number - 1) for name in ("pasted", "shown")]
        await self._if(_is("sent", number - 1), " ; ".join(notes))

    async def _if(self, condition: str, commands: str) -> None:
        await self._control.tell(f"if -F -t {self._pane} {quoted(condition)} {quoted(commands)}")

    def _note(self, name: str, number: int) -> str:
        return f"set -p -t {self._pane} {_option(name)} {number}"


def _option(name: str) -> str:
    return f"@podium_{name}"


def _is(name: str, number: int) -> str:
    """True for an option of this value; one that was never set is 0."""
    value = f"#{{?{_option(name)},#{{{_option(name)}}},0}}"
    return f"#{{==:{value},{number}}}"


def _both(one: str, other: str) -> str:
    return f"#{{&&:{one},{other}}}"

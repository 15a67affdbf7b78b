"""The ledger: which message each pane was given, kept where the panes are.

It lies in options of the pane, inside the tmux server. So it changes together with what it tells of:
"if message 7 was not pasted yet, paste it and note so" is one list of commands that the server runs
whole or not at all, whoever sent it and whatever became of him. A Podium that was killed in the middle
left either no trace or both; a command of it that arrives late finds its condition false.

    pasted  the words are in the program's input, or on their way
    shown   they were seen there; only then is Enter pressed
    sent    they were seen to leave
    owners  whose words the last messages were
    held    a person has the keyboard: nothing is pasted, and no Enter pressed

Messages of a pane are numbered from 1 without gaps. The numbers hold for one life of the server. Two Podiums may want the
same number: the words that were put in first have it, and the other sees by the owner that it was not his.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field

from podium.agents.tui.control import Control, quoted
from podium.core.errors import BadInput

_FIELDS = ("pasted", "shown", "sent", "enters")
_OWNERS_LENGTH = 2000
"""Some sixty of the last owners are known."""


@dataclass(frozen=True)
class LedgerEntry:
    """Progress of the messages of a pane: the numbers of the last that were pasted, shown and sent."""

    pasted: int
    visible: int
    sent: int
    enters: int
    """Times Enter was pressed for the one that is being sent."""
    owners: dict[int, str] = field(default_factory=dict)
    """Of the last messages. An empty one is of somebody who gave no name."""

    @property
    def is_settled(self) -> bool:
        """No message is on its way."""
        return self.pasted == self.sent


class Ledger:
    """One pane's entry, read and written inside the server."""

    def __init__(self, control: Control, pane: str) -> None:
        self._control = control
        self._pane = pane

    async def read(self) -> LedgerEntry:
        form = "|".join(f"#{{{_option(name)}}}" for name in (*_FIELDS, "owners"))
        (line,) = await self._control.ask(f"display-message -p -t {self._pane} '{form}'")
        *numbers, owners = line.split("|")
        pasted, visible, sent, enters = (int(number or 0) for number in numbers)
        return LedgerEntry(pasted, visible, sent, enters, _owners(owners))

    async def next_number(self) -> int:
        """Return the number of the pane's next message."""
        return (await self.read()).sent + 1

    async def paste_once(self, number: int, commands: str, owner: str = "") -> None:
        """Run the commands that paste message `number`, unless that was done before, by whomever."""
        notes = (self._note("pasted", number), self._note("enters", 0), self._own(number, owner))
        await self._if(_both(_is("pasted", number - 1), FREE_KEYS), " ; ".join((commands, *notes)))

    async def type_once(self, number: int, commands: str, owner: str = "") -> None:
        """Run the commands that put in and submit message `number` in one go, unless that was done before."""
        notes = [self._note(name, number) for name in ("pasted", "shown", "sent")]
        done = " ; ".join((commands, *notes, self._own(number, owner)))
        await self._if(_both(_is("sent", number - 1), FREE_KEYS), done)

    async def note_visible(self, number: int) -> None:
        await self._if(_is("pasted", number), self._note("shown", number))

    async def press_once(self, number: int, enters: int, commands: str) -> None:
        """Run the commands that press Enter, if message `number` waits for exactly this press."""
        waits = _both(_both(_is("shown", number), _is("sent", number - 1)), _is("enters", enters))
        await self._if(_both(waits, FREE_KEYS), f"{commands} ; {self._note('enters', enters + 1)}")

    async def note_sent(self, number: int) -> None:
        """They left after an Enter of ours: without one, somebody else did something with them."""
        pressed = f"#{{!=:{_value('enters')},0}}"
        await self._if(_both(_is("shown", number), pressed), self._note("sent", number))

    async def reopen(self, number: int) -> None:
        """Let message `number` be pasted again, or another in its place, after somebody made sure that it did not arrive.

        Does nothing once Enter was pressed for it. Raises `BadInput` when it was sent.
        """
        entry = await self.read()
        if entry.sent >= number:
            raise BadInput(f"message {number} was already sent; give a new message the next number")
        notes = [self._note(name, number - 1) for name in ("pasted", "shown")]
        await self._if(_both(self._is_next(number), _is("enters", 0)), " ; ".join(notes))

    async def take_as_sent(self, number: int) -> None:
        """Note message `number` as sent, which was pasted and is in the input no more."""
        notes = [self._note(name, number) for name in ("shown", "sent")]
        await self._if(self._is_next(number), " ; ".join(notes))

    def _is_next(self, number: int) -> str:
        return _both(_is("pasted", number), _is("sent", number - 1))

    async def _if(self, condition: str, commands: str) -> None:
        await self._control.run(f"if -F -t {self._pane} {quoted(condition)} {quoted(commands)}")

    async def press_between(self, commands: str) -> bool:
        """Run the commands unless a message is on its way, or a person has the keyboard. False: nothing was done."""
        return await self.run_if(_both(SETTLED, FREE_KEYS), commands)

    async def run_if(self, condition: str, commands: str) -> bool:
        """Run the commands if the condition holds, in one go. False: it did not."""
        # A mark of its own: others run theirs at the same time.
        done = _option(f"done_{secrets.token_hex(8)}")
        await self._if(condition, f"{commands} ; set -p -t {self._pane} {done} 1")
        (value,), _ = await self._control.ask_together(
            f"display-message -p -t {self._pane} '#{{{done}}}'", f"set -pqu -t {self._pane} {done}"
        )
        return value == "1"

    def _note(self, name: str, number: int) -> str:
        return f"set -p -t {self._pane} {_option(name)} {number}"

    def _own(self, number: int, owner: str) -> str:
        """The newest first, so that the oldest are cut off."""
        owners = _option("owners")
        entries = f"{number}={owner},#{{={_OWNERS_LENGTH}:{owners}}}"
        return f"set -p -F -t {self._pane} {owners} '{entries}'"


def _option(name: str) -> str:
    return f"@podium_{name}"


def _owners(value: str) -> dict[int, str]:
    """Read the owner of each message: of a number that was given again, the last. A name that was cut is none."""
    whole = value.split(",")[:-1]
    pairs = [pair.split("=", 1) for pair in whole if "=" in pair]
    return {int(number): owner for number, owner in reversed(pairs) if number.isdecimal()}


def forget_input(pane: str) -> str:
    """The commands for a pane whose program is started anew: what stood in its input went with it."""
    sent = _value("sent")
    return " ; ".join(
        f"set -p -F -t {pane} {_option(name)} '{sent}'" for name in ("pasted", "shown")
    )


def _is(name: str, number: int) -> str:
    return f"#{{==:{_value(name)},{number}}}"


def _value(name: str) -> str:
    """An option that was never set is 0."""
    return f"#{{?{_option(name)},#{{{_option(name)}}},0}}"


def _both(one: str, other: str) -> str:
    return f"#{{&&:{one},{other}}}"


HELD = _option("held")
"""1 while a person has the pane's keyboard."""
FREE_KEYS = _is("held", 0)
"""Without this nothing of Podium's own goes into a pane."""
SETTLED = f"#{{==:{_value('pasted')},{_value('sent')}}}"
"""No message is on its way."""

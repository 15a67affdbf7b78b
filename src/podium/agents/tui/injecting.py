"""Handing a message to a program on a terminal, once, and seeing that it took it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from podium.agents.tui.activity import Activity
from podium.agents.tui.capturing import Screen, look, refuse_dead
from podium.agents.tui.control import Control
from podium.agents.tui.ledger import Entry, Ledger
from podium.agents.tui.panes import leave_mode
from podium.agents.tui.pasting import (
    fit_for_terminal,
    fits,
    loading,
    pasting,
    referring_to,
    typing,
)
from podium.agents.tui.seeing import Composer, Eyes, Patience
from podium.agents.tui.trouble import (
    DeliveryInDoubt,
    KeyboardElsewhere,
    LineLost,
    NotListening,
    NumberTaken,
    TmuxRefused,
)
from podium.domain.errors import BadInput

_MOST_LINES = 5
"""So many connections may be lost over one message before that is told."""


_EMPTY_SECONDS = 1.0
"""An input that has been empty for so long is: one that was just sent to would show that it works."""

_GLANCE_SECONDS = 0.5
"""Between two looks at the ledger, while words are waited for that may have gone on by another's hand."""

_REST_SECONDS = 0.005
"""Between two looks: a program that floods its screen would keep us looking all the time."""


@dataclass(frozen=True)
class Delivered:
    """A message that the program took."""

    number: int
    before: bool = False
    """It had been taken already, and nothing was done now."""
    enters: int = 0
    """How often Enter was pressed until it left."""
    as_file: bool = False
    """It was handed over as a file."""


class Injector:
    """Delivers messages to one pane: paste, see it in the composer, Enter, see it leave.

    Enter is pressed again when it was swallowed; nothing is ever pasted twice. All that must survive
    is in the ledger, so whoever comes after a killed Podium calls `deliver` with the same number.
    """

    def __init__(
        self,
        control: Control,
        activity: Activity,
        pane: str,
        eyes: Eyes,
        messages: Path,
        patience: Patience | None = None,
    ) -> None:
        """`messages` is a private folder for what is handed over as files; the program must be able to read it."""
        self._control = control
        self._activity = activity
        self._pane = pane
        self._eyes = eyes
        self._messages = messages
        self._patience = patience or Patience()
        self.ledger = Ledger(control, pane)

    async def deliver(self, number: int, text: str, owner: str = "") -> Delivered:
        """Hand over message `number`. On return the program has taken it, and the ledger says so.

        `owner` is a word by which whoever sends it is known; the same one goes on with it after a crash. Raises
        `NumberTaken` when the number went to another's words, `KeyboardElsewhere` while a person has the keyboard,
        `NotListening` while the composer is not free or
        does not let go: call again with the same number. `DeliveryInDoubt` when it was pasted and never seen,
        `ProgramEnded`, `PaneGone` or `ServerGone` when the program is no more.
        """
        fit = fit_for_terminal(text)
        for _ in range(_MOST_LINES - 1):
            try:
                return await self._deliver(number, fit, owner)
            except LineLost:
                continue  # the ledger knows how far it came
        return await self._deliver(number, fit, owner)

    async def stays_empty(self, words: str) -> bool:
        """Whether the composer is empty, and stays so for a while."""
        return await self._until(lambda it: it != "empty", words, _EMPTY_SECONDS) == "empty"

    async def _deliver(self, number: int, fit: str, owner: str) -> Delivered:
        await self._activity.follow(self._pane)
        entry = await self._owned(number, owner)
        if entry.sent >= number:
            return Delivered(number, before=True)
        if number != entry.sent + 1:
            raise BadInput(
                f"message {number} cannot follow {entry.sent}; they are numbered without gaps"
            )
        words = await self._words(number, fit, owner)
        if self._eyes.manner == "lines":
            await self._type(number, words.rstrip("\n"), owner)
            return Delivered(number, as_file=words != fit)
        enters = await self._hand_over(entry, number, words, owner)
        return Delivered(number, enters=enters, as_file=words != fit)

    async def _owned(self, number: int, owner: str) -> Entry:
        entry = await self.ledger.read()
        if entry.pasted >= number and entry.owners.get(number, owner) != owner:
            raise NumberTaken(
                f"message {number} of pane {self._pane} is somebody else's; send this one by the next number"
            )
        return entry

    async def _refuse_late(self, number: int, owner: str) -> Entry:
        """Of two who put in the same number the second finds that he was late, and leaves nothing behind.

        So does whoever comes after a person took the keyboard.
        """
        try:
            entry = await self._owned(number, owner)
            if entry.pasted < number:
                raise KeyboardElsewhere(
                    f"a person has the keyboard of pane {self._pane}; wait until it is returned"
                )
        except (NumberTaken, KeyboardElsewhere):
            with suppress(TmuxRefused):
                await self._control.tell(f"delete-buffer -b {self._buffer(number, owner)}")
            raise
        return entry

    async def _words(self, number: int, fit: str, owner: str) -> str:
        """What is put in: the message, or a line that says where it is."""
        patience = self._patience
        whole = not any(sign in fit for sign in patience.spoilt)
        if whole and fits(fit, self._eyes.manner, patience.longest_paste_bytes):
            return fit
        # By its owner's name too: of two who want the number, neither writes over the other's words.
        name = f"{self._pane.removeprefix('%')}-{number}{owner and f'-{owner}'}.txt"
        return await asyncio.to_thread(referring_to, self._messages, name, fit)

    async def _type(self, number: int, words: str, owner: str) -> None:
        buffer = self._buffer(number, owner)
        await refuse_dead(self._control, self._pane, await look(self._control, self._pane))
        await self._control.tell(loading(buffer, words))
        put_in = f"{leave_mode(self._pane)} ; {typing(buffer, self._pane)}"
        await self.ledger.type_once(number, put_in, owner)
        await self._refuse_late(number, owner)

    async def _hand_over(self, entry: Entry, number: int, words: str, owner: str) -> int:
        if entry.pasted < number:
            await self._paste(number, words, owner)
            entry = await self._refuse_late(number, owner)
        if entry.shown < number:
            await self._see_it(number, words)
        return await self._submit(number, words)

    async def _paste(self, number: int, words: str, owner: str) -> None:
        found = await self._until(lambda it: it == "empty", words, self._patience.ready_seconds)
        if found != "empty":
            raise NotListening(f"pane {self._pane}: {_WHY[found]}")
        buffer = self._buffer(number, owner)
        await self._control.tell(loading(buffer, words))
        put_in = f"{leave_mode(self._pane)} ; {pasting(buffer, self._pane)}"
        await self.ledger.paste_once(number, put_in, owner)

    async def _see_it(self, number: int, words: str) -> None:
        if not await self._is_seen(words, lambda entry: entry.shown >= number):
            raise DeliveryInDoubt(
                f"message {number} was pasted into pane {self._pane} and did not show in its input; {_LOOK}"
            )
        await asyncio.sleep(self._patience.settle_seconds)
        await self.ledger.note_shown(number)

    async def _submit(self, number: int, words: str) -> int:
        """Press Enter until the words have left. Gives how often that was, in this life and earlier ones."""
        waited_for = 0
        for _ in range(self._patience.most_enters):
            entry = await self.ledger.read()
            # Another hand may be at the same message: its Enter is given as much time as ours.
            patience = 0.0 if entry.enters == waited_for else self._patience.enter_seconds
            if entry.sent >= number:
                return entry.enters
            if entry.enters == 0:
                await self._refuse_vanished(number, words)
            elif await self._has_left(words, patience):
                return await self._note_sent(number, entry)
            press = f"{leave_mode(self._pane)} ; send-keys -t {self._pane} C-m"
            before = self._eyes.composer(await self._look(), words)
            await self.ledger.press_once(number, entry.enters, press)
            if await self._has_left(words, self._patience.enter_seconds, before):
                return await self._note_sent(number, await self.ledger.read())
            waited_for = entry.enters + 1
        raise NotListening(
            f"message {number} stands in the input of pane {self._pane}, which does not take Enter; look at the pane"
        )

    async def _refuse_vanished(self, number: int, words: str) -> None:
        """Words that went without Enter were removed, or sent by a person."""
        if not await self._is_seen(words, lambda entry: entry.enters > 0 or entry.sent >= number):
            raise DeliveryInDoubt(
                f"message {number} left the input of pane {self._pane} before Enter was pressed; {_LOOK}"
            )

    async def _is_seen(self, words: str, is_past: Callable[[Entry], bool]) -> bool:
        """Whether the words show in the composer, or another hand has gone on with them meanwhile."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self._patience.paint_seconds
        while True:
            left = deadline - loop.time()
            found = await self._until(lambda it: it == "ours", words, min(left, _GLANCE_SECONDS))
            if found == "ours" or is_past(await self.ledger.read()):
                return True
            if left <= 0:
                return False

    async def _note_sent(self, number: int, entry: Entry) -> int:
        await self.ledger.note_sent(number)
        return entry.enters

    async def _has_left(self, words: str, seconds: float, before: Composer = "ours") -> bool:
        """Wait until they have left, or something else is seen than what was `before`."""
        if await self._until(lambda it: it != before, words, seconds) in _STILL_THERE:
            return False
        await asyncio.sleep(self._patience.settle_seconds)
        return self._eyes.composer(await self._look(), words) not in _STILL_THERE

    async def _until(
        self, enough: Callable[[Composer], bool], words: str, seconds: float
    ) -> Composer:
        """Look at the composer whenever the pane wrote something, until it fits or the time is over."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + seconds
        while True:
            beats = self._activity.beats(self._pane)
            found = self._eyes.composer(await self._look(), words)
            left = deadline - loop.time()
            if enough(found) or left <= 0:
                return found
            await asyncio.sleep(min(_REST_SECONDS, left))
            await self._activity.beyond(self._pane, beats, deadline - loop.time())

    async def _look(self) -> Screen:
        screen = await look(self._control, self._pane)
        await refuse_dead(self._control, self._pane, screen)
        return screen

    def _buffer(self, number: int, owner: str) -> str:
        return f"podium-{self._pane.removeprefix('%')}-{number}{owner and f'-{owner}'}"


_LOOK = (
    "look at it by `podium duet attach` and leave its input empty, then `podium duet retry`, which sends it again "
    "only if it was not taken"
)

_STILL_THERE: tuple[Composer, ...] = ("ours", "unsent")

_WHY: dict[Composer, str] = {
    "other": "something else stands in its input; send or remove it first",
    "ours": "the message stands in its input already, and not by this hand; send or remove it first",
    "unsent": "the message stands in its input already, and was not sent; send or remove it first",
    "unseen": "its input is not to be seen: it starts, works or asks something; look at the pane",
}

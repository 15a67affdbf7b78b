"""Handing a message to a program on a terminal, once, and seeing that it took it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
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
from podium.agents.tui.trouble import DeliveryInDoubt, LineLost, NotListening
from podium.domain.errors import BadInput

_MOST_LINES = 5
"""So many connections may be lost over one message before that is told."""


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

    async def deliver(self, number: int, text: str) -> Delivered:
        """Hand over message `number`. On return the program has taken it, and the ledger says so.

        Raises `NotListening` while the composer is not free or does not let go: call again with the same number.
        `DeliveryInDoubt` when it was pasted and never seen, `ProgramEnded`, `PaneGone` or `ServerGone` when the
        program is no more.
        """
        fit = fit_for_terminal(text)
        for _ in range(_MOST_LINES - 1):
            try:
                return await self._deliver(number, fit)
            except LineLost:
                continue  # the ledger knows how far it came
        return await self._deliver(number, fit)

    async def _deliver(self, number: int, fit: str) -> Delivered:
        await self._activity.follow(self._pane)
        entry = await self.ledger.read()
        if entry.sent >= number:
            return Delivered(number, before=True)
        if number != entry.sent + 1:
            raise BadInput(
                f"message {number} cannot follow {entry.sent}; they are numbered without gaps"
            )
        words = await self._words(number, fit)
        if self._eyes.manner == "lines":
            await self._type(number, words.rstrip("\n"))
            return Delivered(number, as_file=words != fit)
        enters = await self._hand_over(entry, number, words)
        return Delivered(number, enters=enters, as_file=words != fit)

    async def _words(self, number: int, fit: str) -> str:
        """What is put in: the message, or a line that says where it is."""
        if fits(fit, self._eyes.manner, self._patience.longest_paste_bytes):
            return fit
        name = f"{self._pane.removeprefix('%')}-{number}.txt"
        return await asyncio.to_thread(referring_to, self._messages, name, fit)

    async def _type(self, number: int, words: str) -> None:
        buffer = self._buffer(number)
        await refuse_dead(self._control, self._pane, await look(self._control, self._pane))
        await self._control.tell(loading(buffer, words))
        put_in = f"{leave_mode(self._pane)} ; {typing(buffer, self._pane)}"
        await self.ledger.type_once(number, put_in)

    async def _hand_over(self, entry: Entry, number: int, words: str) -> int:
        if entry.pasted < number:
            await self._paste(number, words)
        if entry.shown < number:
            await self._see_it(number, words)
        return await self._submit(number, words)

    async def _paste(self, number: int, words: str) -> None:
        found = await self._until(lambda it: it == "empty", words, self._patience.ready_seconds)
        if found != "empty":
            raise NotListening(f"pane {self._pane}: {_WHY[found]}")
        buffer = self._buffer(number)
        await self._control.tell(loading(buffer, words))
        put_in = f"{leave_mode(self._pane)} ; {pasting(buffer, self._pane)}"
        await self.ledger.paste_once(number, put_in)

    async def _see_it(self, number: int, words: str) -> None:
        found = await self._until(lambda it: it == "ours", words, self._patience.paint_seconds)
        if found != "ours":
            raise DeliveryInDoubt(
                f"message {number} was pasted into pane {self._pane} and did not show in its input; look at the pane, "
                "then retry the message or take it as sent"
            )
        await asyncio.sleep(self._patience.settle_seconds)
        await self.ledger.note_shown(number)

    async def _submit(self, number: int, words: str) -> int:
        """Press Enter until the words have left. Gives how often that was, in this life and earlier ones."""
        for _ in range(self._patience.most_enters):
            entry = await self.ledger.read()
            if entry.enters == 0:
                await self._refuse_vanished(number, words)
            elif await self._has_left(words, 0.0):
                return await self._note_sent(number, entry)
            press = f"{leave_mode(self._pane)} ; send-keys -t {self._pane} C-m"
            await self.ledger.press_once(number, entry.enters, press)
            if await self._has_left(words, self._patience.enter_seconds):
                return await self._note_sent(number, await self.ledger.read())
        raise NotListening(
            f"message {number} stands in the input of pane {self._pane}, which does not take Enter; look at the pane"
        )

    async def _refuse_vanished(self, number: int, words: str) -> None:
        """Words that went without Enter were removed, or sent by a person."""
        found = await self._until(lambda it: it == "ours", words, self._patience.paint_seconds)
        if found != "ours":
            raise DeliveryInDoubt(
                f"message {number} left the input of pane {self._pane} before Enter was pressed; look at the pane, "
                "then retry the message or take it as sent"
            )

    async def _note_sent(self, number: int, entry: Entry) -> int:
        await self.ledger.note_sent(number)
        return entry.enters

    async def _has_left(self, words: str, seconds: float) -> bool:
        if await self._until(lambda it: it != "ours", words, seconds) == "ours":
            return False
        await asyncio.sleep(self._patience.settle_seconds)
        return self._eyes.composer(await self._look(), words) != "ours"

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

    def _buffer(self, number: int) -> str:
        return f"podium-{self._pane.removeprefix('%')}-{number}"


_WHY: dict[Composer, str] = {
    "other": "something else stands in its input; send or remove it first",
    "ours": "the message stands in its input already, and not by this hand; send or remove it first",
    "unseen": "its input is not to be seen: it starts, works or asks something; look at the pane",
}

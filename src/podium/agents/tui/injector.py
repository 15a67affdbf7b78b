"""Handing a message to a program on a terminal, once, and seeing that it took it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from podium.agents.tui.activity import Activity
from podium.agents.tui.control import (
    Control,
    DeliveryInDoubt,
    KeyboardElsewhere,
    LineLost,
    NotListening,
    NumberTaken,
    TmuxRefused,
)
from podium.agents.tui.ledger import Ledger, LedgerEntry
from podium.agents.tui.panes import (
    fit_for_terminal,
    fits,
    leave_mode,
    loading,
    pasting,
    referring_to,
    typing,
)
from podium.agents.tui.screen import (
    Composer,
    Eyes,
    Patience,
    TerminalScreen,
    is_recognisable,
    look,
    refuse_dead,
)
from podium.agents.tui.screen_watch import ComposerWatch
from podium.core.errors import BadInput

_MAX_LINES = 5
"""So many connections may be lost over one message before that is told."""

_GLANCE_SECONDS = 0.5
"""Between two looks at the ledger, while words are waited for that may have gone on by another's hand."""


@dataclass(frozen=True)
class Delivered:
    """A message that the program took."""

    number: int
    before: bool = False
    """It had been taken already, and nothing was done now."""
    enters: int = 0
    """Times Enter was pressed until it left."""
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
        self._manner = eyes.manner
        self._messages = messages
        self._patience = patience or Patience()
        self.composer = ComposerWatch(control, activity, pane, eyes, self._patience.settle_seconds)
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
        for _ in range(_MAX_LINES - 1):
            try:
                return await self._deliver(number, fit, owner)
            except LineLost:
                continue  # the ledger knows how far it came
        return await self._deliver(number, fit, owner)

    async def _deliver(self, number: int, fit: str, owner: str) -> Delivered:
        # Asked at once: over one connection the answers come in this order, and nothing waits in between.
        _, entry, screen = await asyncio.gather(
            self._activity.follow(self._pane),
            self._owned(number, owner),
            look(self._control, self._pane),
        )
        if entry.sent >= number:
            return Delivered(number, before=True)
        if number != entry.sent + 1:
            raise BadInput(
                f"message {number} cannot follow message {entry.sent}; use numbers without gaps"
            )
        await refuse_dead(self._control, self._pane, screen)
        text = await self._input_text(number, fit, owner)
        if text != fit:  # a file was written: what was seen before may be past
            screen = await look(self._control, self._pane)
            await refuse_dead(self._control, self._pane, screen)
        if self._manner == "lines":
            await self._type(number, text.rstrip("\n"), owner)
            return Delivered(number, as_file=text != fit)
        if entry.pasted < number:
            entry = await self._paste(number, text, owner, screen)
        enters = await self._hand_over(entry, number, text)
        return Delivered(number, enters=enters, as_file=text != fit)

    async def _owned(self, number: int, owner: str) -> LedgerEntry:
        entry = await self.ledger.read()
        if entry.pasted >= number and entry.owners.get(number, owner) != owner:
            raise NumberTaken(
                f"number {number} of pane {self._pane} belongs to another message; use the next number"
            )
        return entry

    async def _refuse_late(self, number: int, owner: str) -> LedgerEntry:
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
                await self._control.run(f"delete-buffer -b {self._buffer(number, owner)}")
            raise
        return entry

    async def _input_text(self, number: int, fit: str, owner: str) -> str:
        """Return the text to put in: the message, or a line that says where it is."""
        patience = self._patience
        whole = is_recognisable(fit) and not any(sign in fit for sign in patience.spoilt)
        if whole and fits(fit, self._manner, patience.longest_paste_bytes):
            return fit
        # By its owner's name too: of two who want the number, neither writes over the other's words.
        name = f"{self._pane.removeprefix('%')}-{number}{owner and f'-{owner}'}.txt"
        return await asyncio.to_thread(referring_to, self._messages, name, fit)

    async def _type(self, number: int, text: str, owner: str) -> None:
        put_in = f"{leave_mode(self._pane)} ; {typing(self._buffer(number, owner), self._pane)}"
        typing_once = self.ledger.type_once(number, put_in, owner)
        await self._put_in(number, text, owner, typing_once)

    async def _paste(
        self, number: int, text: str, owner: str, screen: TerminalScreen
    ) -> LedgerEntry:
        """`screen` was just seen: mostly the composer is empty on it."""
        state = self.composer.on(screen, text)
        if state != "empty":
            seconds = self._patience.ready_seconds
            state = await self.composer.until(lambda it: it == "empty", text, seconds)
        if state != "empty":
            raise NotListening(f"pane {self._pane}: {_WHY[state]}")
        put_in = f"{leave_mode(self._pane)} ; {pasting(self._buffer(number, owner), self._pane)}"
        pasting_once = self.ledger.paste_once(number, put_in, owner)
        return await self._put_in(number, text, owner, pasting_once)

    async def _put_in(
        self, number: int, text: str, owner: str, once: Coroutine[None, None, None]
    ) -> LedgerEntry:
        """Both on their way at once: where the buffer is not there, nothing is put in or noted."""
        load = self._control.run(loading(self._buffer(number, owner), text))
        await asyncio.gather(load, once)
        return await self._refuse_late(number, owner)

    async def _hand_over(self, entry: LedgerEntry, number: int, text: str) -> int:
        """Have what was put in seen, and sent. Gives how often Enter was pressed for it, in this life and earlier ones."""
        if entry.visible >= number:
            return await self._submit(number, text)
        state = await self._see_it(number, text)
        if state == "ours" and self._patience.settle_seconds == 0:
            return await self._submit_at_once(number, text)
        await asyncio.sleep(self._patience.settle_seconds)
        await self.ledger.note_visible(number)
        return await self._submit(number, text)

    async def _see_it(self, number: int, text: str) -> Composer:
        """Return the composer's state once the text is there, or another hand has gone on with it."""
        state = await self._wait_for_text(text, lambda entry: entry.visible >= number)
        if state is None:
            raise DeliveryInDoubt(
                f"message {number} was pasted into pane {self._pane} and did not appear in its input; {_LOOK}"
            )
        return state

    async def _submit_at_once(self, number: int, text: str) -> int:
        """Words that were seen a moment ago need no other look: the ledger lets this Enter through if it is the first."""
        _, has_left = await asyncio.gather(
            self.ledger.note_visible(number), self._press(number, 0, text, "ours")
        )
        if has_left:
            return await self._note_sent(number)
        return await self._submit(number, text, pressed=1)

    async def _submit(self, number: int, text: str, pressed: int = 0) -> int:
        """Press Enter until the words have left. `pressed`: how often that was done just now."""
        waited_for = pressed
        for _ in range(self._patience.most_enters - pressed):
            entry = await self.ledger.read()
            # Another hand may be at the same message: its Enter is given as much time as ours.
            patience = 0.0 if entry.enters == waited_for else self._patience.enter_seconds
            if entry.sent >= number:
                return entry.enters
            if entry.enters == 0:
                before = await self._not_vanished(number, text)
            elif await self.composer.lets_go(text, patience):
                return await self._note_sent(number)
            else:
                before = await self.composer.shows(text)
            if await self._press(number, entry.enters, text, before):
                return await self._note_sent(number)
            waited_for = entry.enters + 1
        raise NotListening(
            f"message {number} is in the input of pane {self._pane}, which does not react to Enter; check the pane"
        )

    async def _not_vanished(self, number: int, text: str) -> Composer:
        """Return the composer's state: the text, unless another hand has gone on with it.

        Words that went without Enter were removed, or sent by a person.
        """
        state = await self._wait_for_text(
            text, lambda entry: entry.enters > 0 or entry.sent >= number
        )
        if state is None:
            raise DeliveryInDoubt(
                f"message {number} left the input of pane {self._pane} before Enter was pressed; {_LOOK}"
            )
        return state

    async def _wait_for_text(
        self, text: str, is_past: Callable[[LedgerEntry], bool]
    ) -> Composer | None:
        """Wait until the composer shows the text, or another hand has gone on with it. None: neither came about."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self._patience.paint_seconds
        while True:
            left = deadline - loop.time()
            glance = min(left, _GLANCE_SECONDS)
            state = await self.composer.until(lambda it: it == "ours", text, glance)
            if state == "ours" or is_past(await self.ledger.read()):
                return state
            if left <= 0:
                return None

    async def _press(self, number: int, enters: int, text: str, before: Composer) -> bool:
        """Press Enter once. True: the words have left.

        Raises `KeyboardElsewhere` when a person took the keyboard before it was pressed: what they do with the words is
        no answer to it.
        """
        press = f"{leave_mode(self._pane)} ; send-keys -t {self._pane} C-m"
        _, entry = await asyncio.gather(
            self.ledger.press_once(number, enters, press), self.ledger.read()
        )
        if entry.enters == enters and entry.sent < number:
            raise KeyboardElsewhere(
                f"a person has the keyboard of pane {self._pane}, with message {number} in its input; it is sent when "
                "the keyboard is returned"
            )
        return await self.composer.lets_go(text, self._patience.enter_seconds, before)

    async def _note_sent(self, number: int) -> int:
        entry, _ = await asyncio.gather(self.ledger.read(), self.ledger.note_sent(number))
        return entry.enters

    def _buffer(self, number: int, owner: str) -> str:
        return f"podium-{self._pane.removeprefix('%')}-{number}{owner and f'-{owner}'}"


_LOOK = (
    "check it with `podium duet attach` and clear its input, then run `podium duet retry`, which sends the message "
    "again only if it was not received"
)

_WHY: dict[Composer, str] = {
    "other": "its input holds other text; send or remove it first",
    "ours": "the message is already in its input, and Podium did not put it there; send or remove it first",
    "unsent": "the message is already in its input and was not sent; send or remove it first",
    "unseen": "its input is not visible: it is starting, working or asking something; check the pane",
}

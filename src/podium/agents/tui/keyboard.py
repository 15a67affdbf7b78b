"""Holder of a pane's keyboard: Podium, or a person who took it.

It is kept in options of the pane, beside the ledger, whose commands find there that they must not run. So it outlives every
Podium, and nothing that was on its way to the server when a person took the keyboard arrives after that.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Awaitable, Callable
from datetime import timedelta

from pydantic import Field, ValidationError

from podium.agents.tui.control import Control
from podium.agents.tui.ledger import HELD, SETTLED, Ledger
from podium.agents.tui.panes import fit_for_terminal, leave_mode, loading, pasting, pressing
from podium.core.errors import NotPossibleNow
from podium.core.keyboards import MAX_HOLD_SECONDS, KeyboardHold, KeyboardState
from podium.ports import Clock

_OPTION = "@podium_keyboard"
_SETTLE_SECONDS = 5.0
"""So long a message that is being handed over is let through. Its sender may be dead: then it stays where it is."""
_PAUSE_SECONDS = 0.05
_LOOK_SECONDS = 0.25
"""Seconds between checks for a returned keyboard: nothing reports that."""

Lapsed = Callable[[KeyboardHold], Awaitable[None]]
"""Is told of a hold that was ended because its time was over."""


class _StoredState(KeyboardState):
    """The state as the server keeps it."""

    word: str = Field(default_factory=lambda: secrets.token_hex(8))
    """Makes each state another one than all before."""


class Keyboard:
    """The keyboard of one pane."""

    def __init__(self, control: Control, pane: str, clock: Clock) -> None:
        self._control = control
        self._pane = pane
        self._clock = clock
        self._ledger = Ledger(control, pane)

    async def state(self) -> KeyboardState:
        """Return the holder. A hold whose time is over is none, also while it has not been ended."""
        return self.state_in((await self._control.ask(self.question))[0])

    @property
    def question(self) -> str:
        """The command whose answer `state_in` reads, for whoever asks for more at once."""
        return f"display-message -p -t {self._pane} '#{{{_OPTION}}}'"

    def state_in(self, answer: str) -> KeyboardState:
        return self._as_of_now(_read(answer))

    async def take(self, who: str, seconds: float) -> KeyboardHold:
        """Have it for so long, or for so much longer. On return Podium types nothing there any more.

        Raises `NotPossibleNow` when another person has it.
        """
        patient_until = asyncio.get_running_loop().time() + _SETTLE_SECONDS
        while True:
            (raw,) = await self._control.ask(self.question)
            state = self._as_of_now(_read(raw))
            hold = self._hold(state, who, seconds)
            new = _StoredState(
                hold=hold,
                takes=state.takes + (state.hold is None),
                stood_seconds=state.stood_seconds,
            )
            waits = state.hold is None and asyncio.get_running_loop().time() < patient_until
            if await self._change(raw, new, SETTLED if waits else "1"):
                return hold
            await asyncio.sleep(_PAUSE_SECONDS)

    async def give(self, who: str = "") -> KeyboardHold | None:
        """Return it, if it is this person's; without a name, whoever's it is. None: nobody had it.

        Raises `NotPossibleNow` when another person has it.
        """
        while True:
            (raw,) = await self._control.ask(self.question)
            hold = _read(raw).hold
            if hold is None:
                return None
            if who and hold.who != who and not self._is_over(hold):
                raise NotPossibleNow(
                    _whose(hold, "only they can return it, unless someone takes it over")
                )
            if await self._change(raw, self._freed(_read(raw), hold), "1"):
                return hold

    async def returned(self, lapsed: Lapsed) -> KeyboardState:
        """Wait until it is Podium's. A hold whose time is over is ended."""
        while True:
            state = await self.settled(lapsed)
            if state.hold is None:
                return state
            await asyncio.sleep(_LOOK_SECONDS)

    async def settled(self, lapsed: Lapsed) -> KeyboardState:
        """Return the holder, once a hold whose time is over was ended. Waits for nothing."""
        (raw,) = await self._control.ask(self.question)
        stored = _read(raw)
        if stored.hold is None or not self._is_over(stored.hold):
            return stored
        if await self._change(raw, self._freed(stored, stored.hold), "1"):
            await lapsed(stored.hold)
        return await self.state()

    async def press(self, who: str, *keys: str) -> None:
        """Press keys for whoever has it; without a name, while nobody has.

        Raises `NotPossibleNow` when that is not so, and `BadInput` for what is no key.
        """
        await self._type(who, pressing(self._pane, keys))

    async def paste(self, who: str, text: str) -> None:
        """Put words in as one paste, for whoever has it. Raises as `press` does."""
        buffer = f"podium-paste-{secrets.token_hex(8)}"
        await self._control.run(loading(buffer, fit_for_terminal(text)))
        try:
            await self._type(who, f"{leave_mode(self._pane)} ; {pasting(buffer, self._pane)}")
        except NotPossibleNow:
            await self._control.run(f"delete-buffer -b {buffer}")
            raise

    async def _type(self, who: str, commands: str) -> None:
        (raw,) = await self._control.ask(self.question)
        hold = self._as_of_now(_read(raw)).hold
        if hold is not None and hold.who != who:
            raise NotPossibleNow(_whose(hold, "take it first"))
        if who and hold is None:
            raise NotPossibleNow("you do not have the keyboard; take it first")
        if not await self._ledger.run_if(_is_still(raw), commands):
            raise NotPossibleNow("someone else just took the keyboard; nothing was typed")

    async def _change(self, raw: str, new: _StoredState, condition: str) -> bool:
        """Put the new state in the place of what was read. False: it is another by now, or the condition does not hold."""
        commands = (
            f"set -p -t {self._pane} {_OPTION} {new.model_dump_json().encode().hex()}",
            f"set -p -t {self._pane} {HELD} {int(new.hold is not None)}",
        )
        return await self._ledger.run_if(
            f"#{{&&:{_is_still(raw)},{condition}}}", " ; ".join(commands)
        )

    def _hold(self, state: KeyboardState, who: str, seconds: float) -> KeyboardHold:
        now = self._clock.now()
        if state.hold is not None and state.hold.who != who:
            raise NotPossibleNow(_whose(state.hold, "wait, or ask them to return it"))
        since = state.hold.since if state.hold else now
        last = since + timedelta(seconds=MAX_HOLD_SECONDS)
        until = now + timedelta(seconds=seconds)
        if state.hold is not None:
            until = max(until, state.hold.until)
        return KeyboardHold(who=who, since=since, until=min(until, last))

    def _is_over(self, hold: KeyboardHold) -> bool:
        return hold.until <= self._clock.now()

    def _as_of_now(self, stored: _StoredState) -> KeyboardState:
        if stored.hold is None or not self._is_over(stored.hold):
            return stored
        return self._freed(stored, stored.hold)

    def _freed(self, state: KeyboardState, hold: KeyboardHold) -> _StoredState:
        until = min(self._clock.now(), hold.until)
        return _StoredState(takes=state.takes, stood_seconds=state.held_seconds(until))


def _read(raw: str) -> _StoredState:
    """Read the state from a pane's option. Whoever attaches could write anything there: that is no hold."""
    try:
        return _StoredState.model_validate_json(bytes.fromhex(raw)) if raw else _StoredState()
    except (ValueError, ValidationError):
        return _StoredState()


def _is_still(raw: str) -> str:
    return f"#{{==:#{{{_OPTION}}},{raw}}}"


def _whose(hold: KeyboardHold, advice: str) -> str:
    until = hold.until.strftime("%H:%M:%S UTC")
    return f"{hold.who!r} has the keyboard until {until} at the latest; {advice}"

"""Fakes of terminals and of their mirror."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from datetime import timedelta

from podium.core.errors import BadInput, NotPossibleNow, PodiumError
from podium.core.keyboards import KeyboardHold, KeyboardState
from podium.core.terminals import (
    KeyboardRequest,
    KeysPressed,
    PairSize,
    PaneFrame,
    PaneView,
    Terminal,
    TerminalPicture,
    TerminalState,
    TerminalUpdate,
    TextPasted,
)
from podium.core.turns import Side
from podium.ports import Clock

SIDES: tuple[Side, ...] = ("PLANNER", "EXECUTER")


class MemoryTerminals:
    """One pair, `main`, whose programs show the keys that were pressed, a line for each time."""

    def __init__(self) -> None:
        self.lines: dict[Side, list[str]] = {}
        """Screen lines of each program. Empty: the pair is not up."""
        self.holds: dict[Side, KeyboardHold] = {}
        """Holders of the keyboards."""
        self.columns, self.rows = 200, 50
        self.starts = 0
        self.watchers = 0
        self.next_error: PodiumError | None = None
        """Error that the next call raises."""
        self._changes = 0
        self._changed = asyncio.Condition()

    async def start(self, pair: str) -> list[TerminalState]:
        self._check(pair)
        if not self.lines:
            self.starts += 1
            self.lines = {side: [] for side in SIDES}
            await self._notify()
        return [self._state(side) for side in SIDES]

    async def states(self, pair: str) -> list[TerminalState]:
        self._check(pair)
        return [self._state(side) for side in SIDES]

    async def send_keys(self, pressed: KeysPressed) -> None:
        self._lines_of(pressed.terminal).append(" ".join(pressed.keys))
        await self._notify()

    async def capture(self, terminal: Terminal, *, whole: bool) -> TerminalPicture:
        lines = self._lines_of(terminal)
        return self._picture(lines if whole else lines[-self.rows :])

    async def resize(self, size: PairSize) -> None:
        self._check(size.pair)
        self.columns, self.rows = size.columns, size.rows
        await self._notify()

    async def resume(self, terminal: Terminal) -> TerminalState:
        self._lines_of(terminal).clear()
        await self._notify()
        return self._state(terminal.side)

    async def watch(self, pair: str) -> AsyncGenerator[TerminalUpdate, None]:
        self._check(pair)
        last = -1
        self.watchers += 1
        try:
            while True:
                async with self._changed:
                    while self._changes <= last:
                        await self._changed.wait()
                last = self._changes
                for side in SIDES:
                    yield TerminalUpdate(state=self._state(side), picture=self._now(side))
        finally:
            self.watchers -= 1

    def _check(self, pair: str) -> None:
        error, self.next_error = self.next_error, None
        if error is not None:
            raise error
        if pair != "main":
            raise BadInput(f"no pair is called {pair!r}; pairs: main")

    def _lines_of(self, terminal: Terminal) -> list[str]:
        self._check(terminal.pair)
        if terminal.side not in self.lines:
            raise NotPossibleNow(
                f"the pair {terminal.pair!r} is not running; start it with `podium duet up`"
            )
        return self.lines[terminal.side]

    def _state(self, side: Side) -> TerminalState:
        return TerminalState(
            terminal=Terminal(side=side),
            agent="scripted",
            status="ready" if side in self.lines else "gone",
            sent=len(self.lines.get(side, ())),
            keyboard=self.holds.get(side),
        )

    def _now(self, side: Side) -> TerminalPicture | None:
        return self._picture(self.lines[side]) if side in self.lines else None

    def _picture(self, lines: list[str]) -> TerminalPicture:
        return TerminalPicture(lines=tuple(lines), columns=self.columns, rows=self.rows)

    async def _notify(self) -> None:
        async with self._changed:
            self._changes += 1
            self._changed.notify_all()


class MemoryMirror:
    """Panes that show what was typed, a line for each time, for whoever has their keyboard."""

    def __init__(self, clock: Clock) -> None:
        self.lines: dict[Terminal, list[str]] = {}
        self.holds: dict[Terminal, KeyboardHold] = {}
        self._clock = clock
        self._changed = asyncio.Condition()

    async def look(self, terminal: Terminal) -> AsyncGenerator[PaneView, None]:
        previous = None
        while True:
            async with self._changed:
                while (view := self._view(terminal)) == previous:
                    await self._changed.wait()
            previous = view
            yield view

    async def press(self, pressed: KeysPressed) -> None:
        await self._typed(pressed.terminal, pressed.who, " ".join(pressed.keys))

    async def paste(self, pasted: TextPasted) -> None:
        await self._typed(pasted.terminal, pasted.who, pasted.text)

    async def take(self, request: KeyboardRequest) -> KeyboardHold:
        held = self._hold(request.terminal)
        if held is not None and held.who != request.who:
            raise NotPossibleNow(f"{held.who!r} has the keyboard; wait, or ask them to return it")
        now = self._clock.now()
        since = held.since if held else now
        hold = KeyboardHold(
            who=request.who, since=since, until=now + timedelta(seconds=request.seconds)
        )
        self.holds[request.terminal] = hold
        await self._notify()
        return hold

    async def give(self, terminal: Terminal, who: str = "") -> KeyboardHold | None:
        held = self._hold(terminal)
        if held is not None and who not in ("", held.who):
            raise NotPossibleNow(f"{held.who!r} has the keyboard; only they can return it")
        self.holds.pop(terminal, None)
        await self._notify()
        return held

    async def _typed(self, terminal: Terminal, who: str, text: str) -> None:
        held = self._hold(terminal)
        if (held.who if held else "") != who:
            raise NotPossibleNow("you do not have the keyboard; take it first")
        self.lines.setdefault(terminal, []).append(text)
        await self._notify()

    def _hold(self, terminal: Terminal) -> KeyboardHold | None:
        held = self.holds.get(terminal)
        return held if held is not None and held.until > self._clock.now() else None

    def _view(self, terminal: Terminal) -> PaneView:
        frame = PaneFrame(columns=80, rows=24, lines=tuple(self.lines.get(terminal, ())[-24:]))
        return PaneView(frame=frame, keyboard=KeyboardState(hold=self._hold(terminal)))

    async def _notify(self) -> None:
        async with self._changed:
            self._changed.notify_all()

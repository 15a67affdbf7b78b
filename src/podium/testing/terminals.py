"""Programs on terminals that are only told of: a fake for the port."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator

from podium.domain.errors import BadInput, NotPossibleNow, PodiumError
from podium.domain.keyboards import KeyboardHold
from podium.domain.messages import Side
from podium.domain.terminals import (
    KeysPressed,
    NewSize,
    Terminal,
    TerminalNews,
    TerminalPicture,
    TerminalState,
)

SIDES: tuple[Side, ...] = ("PLANNER", "EXECUTER")


class MemoryTerminals:
    """One pair, `main`, whose programs show the keys that were pressed, a line for each time."""

    def __init__(self) -> None:
        self.lines: dict[Side, list[str]] = {}
        """What each program shows. Empty: the pair is not up."""
        self.holds: dict[Side, KeyboardHold] = {}
        """Who has taken which keyboard."""
        self.columns, self.rows = 200, 50
        self.starts = 0
        self.watchers = 0
        self.fault: PodiumError | None = None
        """Raised by whatever is asked next."""
        self._changes = 0
        self._changed = asyncio.Condition()

    async def start(self, pair: str) -> list[TerminalState]:
        self._check(pair)
        if not self.lines:
            self.starts += 1
            self.lines = {side: [] for side in SIDES}
            await self._tell()
        return [self._state(side) for side in SIDES]

    async def states(self, pair: str) -> list[TerminalState]:
        self._check(pair)
        return [self._state(side) for side in SIDES]

    async def send_keys(self, pressed: KeysPressed) -> None:
        self._shown(pressed.terminal).append(" ".join(pressed.keys))
        await self._tell()

    async def capture(self, terminal: Terminal, *, whole: bool) -> TerminalPicture:
        shown = self._shown(terminal)
        return self._picture(shown if whole else shown[-self.rows :])

    async def resize(self, size: NewSize) -> None:
        self._check(size.pair)
        self.columns, self.rows = size.columns, size.rows
        await self._tell()

    async def resume(self, terminal: Terminal) -> TerminalState:
        self._shown(terminal).clear()
        await self._tell()
        return self._state(terminal.side)

    async def watch(self, pair: str) -> AsyncGenerator[TerminalNews, None]:
        self._check(pair)
        seen = -1
        self.watchers += 1
        try:
            while True:
                async with self._changed:
                    while self._changes <= seen:
                        await self._changed.wait()
                seen = self._changes
                for side in SIDES:
                    yield TerminalNews(state=self._state(side), picture=self._now(side))
        finally:
            self.watchers -= 1

    def _check(self, pair: str) -> None:
        fault, self.fault = self.fault, None
        if fault is not None:
            raise fault
        if pair != "main":
            raise BadInput(f"no pair is called {pair!r}; pairs: main")

    def _shown(self, terminal: Terminal) -> list[str]:
        self._check(terminal.pair)
        if terminal.side not in self.lines:
            raise NotPossibleNow(f"the pair {terminal.pair!r} is not up; bring it up first")
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

    async def _tell(self) -> None:
        async with self._changed:
            self._changes += 1
            self._changed.notify_all()

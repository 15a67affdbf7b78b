"""Panes that are only told of: a fake for the port `Mirror`."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from datetime import timedelta

from podium.domain.errors import NotPossibleNow
from podium.domain.keyboards import KeyboardHold, KeyboardState
from podium.domain.terminals import (
    KeyboardWish,
    KeysPressed,
    PaneFrame,
    PaneView,
    Terminal,
    TextPasted,
)
from podium.ports import Clock


class MemoryMirror:
    """Panes that show what was typed, a line for each time, for whoever has their keyboard."""

    def __init__(self, clock: Clock) -> None:
        self.lines: dict[Terminal, list[str]] = {}
        self.holds: dict[Terminal, KeyboardHold] = {}
        self._clock = clock
        self._changed = asyncio.Condition()

    async def look(self, terminal: Terminal) -> AsyncGenerator[PaneView, None]:
        known = None
        while True:
            async with self._changed:
                while (view := self._view(terminal)) == known:
                    await self._changed.wait()
            known = view
            yield view

    async def press(self, pressed: KeysPressed) -> None:
        await self._typed(pressed.terminal, pressed.who, " ".join(pressed.keys))

    async def paste(self, pasted: TextPasted) -> None:
        await self._typed(pasted.terminal, pasted.who, pasted.text)

    async def take(self, wish: KeyboardWish) -> KeyboardHold:
        held = self._hold(wish.terminal)
        if held is not None and held.who != wish.who:
            raise NotPossibleNow(f"{held.who!r} has the keyboard; wait, or have them return it")
        now = self._clock.now()
        since = held.since if held else now
        hold = KeyboardHold(who=wish.who, since=since, until=now + timedelta(seconds=wish.seconds))
        self.holds[wish.terminal] = hold
        await self._tell()
        return hold

    async def give(self, terminal: Terminal, who: str = "") -> KeyboardHold | None:
        held = self._hold(terminal)
        if held is not None and who not in ("", held.who):
            raise NotPossibleNow(f"{held.who!r} has the keyboard; only they return it")
        self.holds.pop(terminal, None)
        await self._tell()
        return held

    async def _typed(self, terminal: Terminal, who: str, words: str) -> None:
        held = self._hold(terminal)
        if (held.who if held else "") != who:
            raise NotPossibleNow("the keyboard is another's; take it first")
        self.lines.setdefault(terminal, []).append(words)
        await self._tell()

    def _hold(self, terminal: Terminal) -> KeyboardHold | None:
        held = self.holds.get(terminal)
        return held if held is not None and held.until > self._clock.now() else None

    def _view(self, terminal: Terminal) -> PaneView:
        frame = PaneFrame(columns=80, rows=24, lines=tuple(self.lines.get(terminal, ())[-24:]))
        return PaneView(frame=frame, keyboard=KeyboardState(hold=self._hold(terminal)))

    async def _tell(self) -> None:
        async with self._changed:
            self._changed.notify_all()

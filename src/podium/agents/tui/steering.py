"""Pairs on terminals as other processes may see and steer them: fits the port `Terminals`."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager

from podium.agents.tui.capturing import Screen
from podium.agents.tui.pair import SideState, TerminalPair
from podium.domain.errors import AgentLost, NotPossibleNow, TimedOut
from podium.domain.messages import Side
from podium.domain.terminals import (
    KeysPressed,
    NewSize,
    Terminal,
    TerminalNews,
    TerminalPicture,
    TerminalState,
)

Hold = Callable[[str], AbstractAsyncContextManager[TerminalPair]]
"""The pair of a name, with its sides seated as `planner` and `executer`. Raises `BadInput` when there is none."""

_SIDES: dict[str, Side] = {"planner": "PLANNER", "executer": "EXECUTER"}
_ABSENT_SECONDS = 2.0
"""How often is looked whether a pair has come up: nothing tells of that."""


class SteeredPairs:
    """Holds a pair only while something is done with it, so that anybody else may end it or bring it up anew."""

    def __init__(self, *, seen: Hold, seated: Hold, up: Hold) -> None:
        """The pair as it is, for whoever looks on or types; so that its programs can be started; with both up."""
        self._seen = seen
        self._seated = seated
        self._up = up

    async def start(self, pair: str) -> list[TerminalState]:
        async with self._up(pair) as held:
            return await _states(held, pair)

    async def states(self, pair: str) -> list[TerminalState]:
        async with self._seen(pair) as held:
            return await _states(held, pair)

    async def send_keys(self, pressed: KeysPressed) -> None:
        async with self._seen(pressed.terminal.pair) as held:
            await held.send_keys(pressed.terminal.side.lower(), *pressed.keys, who=pressed.who)

    async def capture(self, terminal: Terminal, *, whole: bool) -> TerminalPicture:
        name = terminal.side.lower()
        async with self._seen(terminal.pair) as held:
            screen = await held.screen(name)
            lines = await held.capture(name, whole=True) if whole else screen.lines
        return _picture(screen, lines)

    async def resize(self, size: NewSize) -> None:
        async with self._seen(size.pair) as held:
            await held.resize(size.columns, size.rows)

    async def resume(self, terminal: Terminal) -> TerminalState:
        name = terminal.side.lower()
        async with self._seated(terminal.pair) as held:
            await held.restart(name)
            (state,) = [each for each in await held.states() if each.name == name]
            return _told(terminal.pair, state)

    async def watch(self, pair: str) -> AsyncGenerator[TerminalNews, None]:
        rung = asyncio.Event()
        known: dict[str, TerminalNews] = {}
        async with self._seen(pair) as held:
            bells = [asyncio.create_task(_ring(held, name, rung)) for name in _SIDES]
            try:
                while True:
                    rung.clear()
                    for state in await held.states():
                        news = await _news(held, pair, state)
                        if not _is_same(known.get(state.name), news):
                            known[state.name] = news
                            yield news
                    await rung.wait()
            finally:
                for bell in bells:
                    bell.cancel()
                await asyncio.wait(bells)


async def _states(held: TerminalPair, pair: str) -> list[TerminalState]:
    return [_told(pair, state) for state in await held.states()]


async def _ring(held: TerminalPair, name: str, rung: asyncio.Event) -> None:
    """Whenever the pane shows a sign of life."""
    beats = 0
    while True:
        try:
            beats = await held.beats_beyond(name, beats)
        except (AgentLost, NotPossibleNow, TimedOut):
            beats = 0
            await asyncio.sleep(_ABSENT_SECONDS)
        rung.set()


async def _news(held: TerminalPair, pair: str, state: SideState) -> TerminalNews:
    picture = None
    if state.pane:
        try:
            screen = await held.screen(state.name)
            picture = _picture(screen, screen.lines)
        except (AgentLost, NotPossibleNow):  # it was closed just now
            state = SideState(state.name, state.kind, session=state.session)
    return TerminalNews(state=_told(pair, state), picture=picture)


def _is_same(known: TerminalNews | None, news: TerminalNews) -> bool:
    """Whether it differs at most in when the program wrote last."""
    if known is None:
        return False
    at = {"active_at": news.state.active_at}
    return known.model_copy(update={"state": known.state.model_copy(update=at)}) == news


def _told(pair: str, state: SideState) -> TerminalState:
    return TerminalState(
        terminal=Terminal(pair=pair, side=_SIDES[state.name]),
        agent=state.kind,
        status=state.status or "gone",
        question=state.question,
        pane=state.pane,
        pid=state.pid,
        session=state.session,
        sent=state.sent,
        active_at=state.active_at,
        keyboard=state.keyboard,
    )


def _picture(screen: Screen, lines: tuple[str, ...]) -> TerminalPicture:
    column, row = screen.cursor
    return TerminalPicture(
        lines=lines,
        columns=screen.columns,
        rows=screen.rows,
        cursor_column=column,
        cursor_row=row,
    )

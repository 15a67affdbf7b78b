"""Pairs on terminals as other processes and lookers-on see and steer them: fits the ports `Terminals` and `Mirror`."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field

from podium.agents.tui.pair import SideState, TerminalPair
from podium.agents.tui.screen import TerminalScreen
from podium.core.errors import AgentLost, NotPossibleNow, TimedOut
from podium.core.keyboards import KeyboardHold
from podium.core.terminals import (
    KeyboardRequest,
    KeysPressed,
    PairSize,
    PaneView,
    Terminal,
    TerminalPicture,
    TerminalState,
    TerminalUpdate,
    TextPasted,
)
from podium.core.turns import Side

Hold = Callable[[str], AbstractAsyncContextManager[TerminalPair]]
"""The pair of a name, with its sides seated as `planner` and `executer`. Raises `BadInput` when there is none."""

_SIDES: dict[str, Side] = {"planner": "PLANNER", "executer": "EXECUTER"}
_ABSENT_SECONDS = 2.0
"""Seconds between checks whether a pair has come up: nothing reports that."""


class SteeredPairs:
    """Holds a pair only while something is done with it, so that anybody else may end it or bring it up anew."""

    def __init__(self, *, observed: Hold, seated: Hold, up: Hold) -> None:
        """The pair as it is, for whoever looks on or types; so that its programs can be started; with both up."""
        self._observed = observed
        self._seated = seated
        self._up = up

    async def start(self, pair: str) -> list[TerminalState]:
        async with self._up(pair) as held:
            return await _states(held, pair)

    async def states(self, pair: str) -> list[TerminalState]:
        async with self._observed(pair) as held:
            return await _states(held, pair)

    async def send_keys(self, pressed: KeysPressed) -> None:
        async with self._observed(pressed.terminal.pair) as held:
            await held.send_keys(pressed.terminal.side.lower(), *pressed.keys, who=pressed.who)

    async def capture(self, terminal: Terminal, *, whole: bool) -> TerminalPicture:
        name = terminal.side.lower()
        async with self._observed(terminal.pair) as held:
            screen = await held.screen(name)
            lines = await held.capture(name, whole=True) if whole else screen.lines
        return _picture(screen, lines)

    async def resize(self, size: PairSize) -> None:
        async with self._observed(size.pair) as held:
            await held.resize(size.columns, size.rows)

    async def resume(self, terminal: Terminal) -> TerminalState:
        name = terminal.side.lower()
        async with self._seated(terminal.pair) as held:
            await held.restart(name)
            (state,) = [candidate for candidate in await held.states() if candidate.name == name]
            return _terminal_state(terminal.pair, state)

    async def watch(self, pair: str) -> AsyncGenerator[TerminalUpdate, None]:
        changed = asyncio.Event()
        last_updates: dict[str, TerminalUpdate] = {}
        async with self._observed(pair) as held:
            bells = [asyncio.create_task(_ring(held, name, changed)) for name in _SIDES]
            try:
                while True:
                    changed.clear()
                    for state in await held.states():
                        news = await _news(held, pair, state)
                        if not _is_same(last_updates.get(state.name), news):
                            last_updates[state.name] = news
                            yield news
                    await changed.wait()
            finally:
                for task in bells:
                    task.cancel()
                await asyncio.wait(bells)


async def _states(held: TerminalPair, pair: str) -> list[TerminalState]:
    return [_terminal_state(pair, state) for state in await held.states()]


async def _ring(held: TerminalPair, name: str, changed: asyncio.Event) -> None:
    """Whenever the pane shows a sign of life."""
    signs = 0
    while True:
        try:
            signs = await held.signs_beyond(name, signs)
        except (AgentLost, NotPossibleNow, TimedOut):
            signs = 0
            await asyncio.sleep(_ABSENT_SECONDS)
        changed.set()


async def _news(held: TerminalPair, pair: str, state: SideState) -> TerminalUpdate:
    picture = None
    if state.pane:
        try:
            screen = await held.screen(state.name)
            picture = _picture(screen, screen.lines)
        except (AgentLost, NotPossibleNow):  # it was closed just now
            state = SideState(state.name, state.kind, session=state.session)
    return TerminalUpdate(state=_terminal_state(pair, state), picture=picture)


def _is_same(previous: TerminalUpdate | None, news: TerminalUpdate) -> bool:
    """Return whether it differs at most in the time of the program's last output."""
    if previous is None:
        return False
    at = {"active_at": news.state.active_at}
    return previous.model_copy(update={"state": previous.state.model_copy(update=at)}) == news


def _terminal_state(pair: str, state: SideState) -> TerminalState:
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


def _picture(screen: TerminalScreen, lines: tuple[str, ...]) -> TerminalPicture:
    column, row = screen.cursor
    return TerminalPicture(
        lines=lines,
        columns=screen.columns,
        rows=screen.rows,
        cursor_column=column,
        cursor_row=row,
    )


FRAME_SECONDS = 0.04
"""Between two pictures of a pane that changes all the time."""
_LOOK_SECONDS = 1.0
"""Nothing tells that a keyboard changed hands, or a pane its size."""
_ABSENT_PANE_SECONDS = 2.0


class MirroredPairs:
    """Fits the port `Mirror`. Holds a pair as long as somebody looks at it or types, once for all of them."""

    def __init__(self, hold: Hold) -> None:
        self._hold = hold
        self._shared: dict[str, _Shared] = {}
        self._readers: dict[Terminal, _Reader] = {}

    async def look(self, terminal: Terminal) -> AsyncGenerator[PaneView, None]:
        reader = self._readers.get(terminal)
        if reader is None:
            reader = self._readers[terminal] = _Reader(self, terminal)
        reader.lookers += 1
        number = 0
        try:
            while True:
                number, view = await reader.beyond(number)
                yield view
        finally:
            reader.lookers -= 1
            if not reader.lookers:
                del self._readers[terminal]
                await reader.close()

    async def press(self, pressed: KeysPressed) -> None:
        async with self.held(pressed.terminal.pair) as pair:
            await pair.send_keys(pressed.terminal.side.lower(), *pressed.keys, who=pressed.who)

    async def paste(self, pasted: TextPasted) -> None:
        async with self.held(pasted.terminal.pair) as pair:
            keyboard = await pair.keyboard(pasted.terminal.side.lower())
            await keyboard.paste(pasted.who, pasted.text)

    async def take(self, request: KeyboardRequest) -> KeyboardHold:
        async with self.held(request.terminal.pair) as pair:
            keyboard = await pair.keyboard(request.terminal.side.lower())
            return await keyboard.take(request.who, request.seconds)

    async def give(self, terminal: Terminal, who: str = "") -> KeyboardHold | None:
        async with self.held(terminal.pair) as pair:
            return await (await pair.keyboard(terminal.side.lower())).give(who)

    @asynccontextmanager
    async def held(self, name: str) -> AsyncIterator[TerminalPair]:
        """The pair, by the hold of whoever has it already."""
        shared = self._shared.setdefault(name, _Shared())
        shared.users += 1
        try:
            async with shared.opening:
                if shared.pair is None:
                    shared.pair = await shared.stack.enter_async_context(self._hold(name))
            yield shared.pair
        finally:
            shared.users -= 1
            if not shared.users:
                if self._shared.get(name) is shared:
                    del self._shared[name]
                await shared.stack.aclose()

    def let_go(self, name: str) -> None:
        """Forget the hold: the next user takes a new one, as other programs may be up by then. Present users keep theirs."""
        self._shared.pop(name, None)


@dataclass
class _Shared:
    """One hold on a pair, closed by the last who uses it."""

    stack: AsyncExitStack = field(default_factory=AsyncExitStack)
    opening: asyncio.Lock = field(default_factory=asyncio.Lock)
    pair: TerminalPair | None = None
    users: int = 0


class _Reader:
    """Looks at one pane whenever it wrote something, and keeps the last view alone: whoever is slow misses what lay between."""

    def __init__(self, pairs: MirroredPairs, terminal: Terminal) -> None:
        self.lookers = 0
        self._pairs = pairs
        self._terminal = terminal
        self._view = PaneView()
        self._number = 0
        self._changed = asyncio.Condition()
        self._reading = asyncio.create_task(self._read())

    async def beyond(self, number: int) -> tuple[int, PaneView]:
        """The newest view, and its number, once there is one after this. Raises what ended the reading."""
        async with self._changed:
            while self._number <= number:
                if self._reading.done():
                    self._reading.result()
                await self._changed.wait()
            return self._number, self._view

    async def close(self) -> None:
        self._reading.cancel()
        await asyncio.gather(self._reading, return_exceptions=True)

    async def _read(self) -> None:
        try:
            while True:
                try:
                    async with self._pairs.held(self._terminal.pair) as pair:
                        await self._follow(pair)
                except (AgentLost, NotPossibleNow, TimedOut) as absent:
                    self._pairs.let_go(self._terminal.pair)
                    await self._publish(PaneView(trouble=str(absent)))
                await asyncio.sleep(_ABSENT_PANE_SECONDS)
        finally:
            async with self._changed:
                self._changed.notify_all()

    async def _follow(self, pair: TerminalPair) -> None:
        name, signs = self._terminal.side.lower(), 0
        while True:
            await self._publish(await pair.view(name))
            signs = await pair.stirring(name, signs, _LOOK_SECONDS)
            await asyncio.sleep(FRAME_SECONDS)

    async def _publish(self, view: PaneView) -> None:
        if view == self._view and self._number:
            return
        async with self._changed:
            self._view, self._number = view, self._number + 1
            self._changed.notify_all()

"""A pair of programs on one tmux server, and one of them as an agent. Any number of Podiums may hold it; one at a time changes it."""

from __future__ import annotations

import asyncio
import json
import os
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from podium.agents.deps import AgentOptions
from podium.agents.outcome import accounted, plain_line, unkept_limits
from podium.agents.tui.activity import Activity
from podium.agents.tui.adapter import Adapter, Status, TuiDeps
from podium.agents.tui.control import Control, LineLost, PaneGone, ProgramEnded, ServerGone
from podium.agents.tui.exchange import Exchange
from podium.agents.tui.keyboard import Keyboard
from podium.agents.tui.panes import Panes
from podium.agents.tui.reply_reader import TurnAnswer
from podium.agents.tui.screen import TerminalScreen, history, look, painted
from podium.agents.tui.server import ServerIdentity, TerminalSettings, TmuxServer
from podium.agents.tui.side import Side, SideSpec
from podium.core.decisions import Usage
from podium.core.errors import AgentLost, BadInput, LockHeld, NotPossibleNow, ToolMissing
from podium.core.keyboards import KeyboardHold
from podium.core.terminals import PaneView
from podium.core.turns import Reply, Turn
from podium.platform import make_private_folder
from podium.platform.atomic_write import atomic_write
from podium.platform.file_lock import take_file_lock_async
from podium.ports import ANY_USE, HookDoor

_LIVES = 2
"""A program that dies is started again once in a turn."""

_LAST_OUTPUT = 400
"""Characters of the end of what a dead program wrote."""

BeUp = Callable[[Side], Awaitable[None]]
"""Has a side's program up, started again where it died, and told its part."""


class TuiAgent:
    """One side of a pair behind the port of all agents. Made by `TerminalPair.side`.

    A turn that was under way when Podium was killed is gone on with: its message is not sent again, and an answer that came
    meanwhile is found.
    """

    def __init__(
        self, deps: TuiDeps, side: Side, control: Control, activity: Activity, be_up: BeUp
    ) -> None:
        self._deps = deps
        self.side = side
        self._control = control
        self._activity = activity
        self._be_up = be_up
        self._turns = asyncio.Lock()

    @property
    def name(self) -> str:
        return self.side.spec.options.name

    @property
    def reads_screen(self) -> bool:
        """Its words are read off its screen, where only a block can be told from the rest."""
        return self.side.written is None

    async def ask(self, turn: Turn) -> Reply:
        """Put one turn to the program, once.

        Raises `NeedsHuman` when it asks something in its terminal, `TimedOut` when the turn's time is over, `AgentLost`
        when its program died twice, or its turn came to no good end. Cancelling interrupts it by its own keys; the
        program goes on living.
        """
        began = self._deps.clock.monotonic()
        exchanges: list[Exchange] = []

        def used() -> Usage:
            if not any(exchange.asked for exchange in exchanges):
                return Usage()
            seconds = self._deps.clock.monotonic() - began
            return Usage(turns=1, seconds=seconds, complete=False)

        with accounted(self.name, used):
            async with self._turns:
                return await self._ask(turn, exchanges, used)

    async def _ask(self, turn: Turn, exchanges: list[Exchange], used: Callable[[], Usage]) -> Reply:
        deps, side = self._deps, self.side
        side.folders.lay_out()
        translate = side.adapter.translate
        with deps.transcripts.open(turn, self.name) as transcript:
            async with deps.doors.open(turn, agent=self.name, translate=translate) as door:
                door.expect(ANY_USE)
                exchange = Exchange(
                    deps, side, self._control, self._activity, turn, door, transcript
                )
                exchanges.append(exchange)
                with _door_file(side.folders.door_file, door):
                    answer, warnings = await self._answer(exchange)
        usage = used()
        return Reply(
            text=answer.text,
            usage=usage,
            agent=self.name,
            model=side.spec.options.model,
            session=self._session(),
            seconds=usage.seconds,
            transcript=transcript.path,
            read_from=answer.read_from,
            warnings=(*unkept_limits(self.name, turn.limits, "tokens", "usd"), *warnings),
            waiting_approvals=door.waiting_approvals,
        )

    async def _answer(self, exchange: Exchange) -> tuple[TurnAnswer, tuple[str, ...]]:
        """The answer, and what a person should know of how it came about."""
        warnings: list[str] = []
        for life in range(_LIVES):
            try:
                await self._up(exchange)
                return await exchange.hold(), tuple(warnings)
            except (ProgramEnded, PaneGone, ServerGone) as lost:
                last_output = _last_output(lost)
                if life + 1 == _LIVES:
                    await exchange.give_up()
                    raise AgentLost(
                        f"{self.side.who} ended again after a restart: {lost}{last_output}"
                    ) from lost
                warnings.append(f"{self.side.who} ended and was restarted{last_output}")
        raise AssertionError("lives are counted")

    async def _up(self, exchange: Exchange) -> None:
        try:
            await self.side.by_ourselves(lambda: self._be_up(self.side), exchange.lapsed)
        except ProgramEnded as lost:
            raise AgentLost(
                f"{self.side.who} did not stay running: {lost}{_last_output(lost)}"
            ) from lost

    def _session(self) -> str | None:
        """The conversation, kept so that a program that is started again goes on with it."""
        record, written = self.side.record(), self.side.written
        session = (written.session if written is not None else "") or record.session
        if session != record.session:
            self.side.keep(record.model_copy(update={"session": session}))
        return session or None


@contextmanager
def _door_file(file: Path, door: HookDoor) -> Iterator[None]:
    """Write the file by which the program's hook finds this turn's door. Without it every use of a tool is denied."""
    content = json.dumps(dict(door.hook_env)).encode()
    atomic_write(file, content, durable=False)
    try:
        yield
    finally:
        if file.exists() and file.read_bytes() == content:
            file.unlink(missing_ok=True)


def _last_output(lost: AgentLost) -> str:
    text = plain_line(getattr(lost, "last_output", "")[-_LAST_OUTPUT:])
    return f"; its last output: {text}" if text else ""


PATIENCE_SECONDS = 120.0


@asynccontextmanager
async def alone(file: Path, patience_seconds: float = PATIENCE_SECONDS) -> AsyncIterator[None]:
    """Hold what nobody else holds meanwhile. It is let go of however this process ends.

    Raises `LockHeld` when another keeps it for too long.
    """
    make_private_folder(file.parent)
    try:
        handle = await take_file_lock_async(file, seconds=patience_seconds)
    except BlockingIOError:
        raise LockHeld(
            f"another Podium has been starting programs at {str(file.parent)!r} for {patience_seconds:g} s; "
            "wait for it, or stop it"
        ) from None
    try:
        yield
    finally:
        os.close(handle)


@dataclass(frozen=True)
class SideState:
    """State of one side."""

    name: str
    kind: str
    pane: str = ""
    """Empty: it is not up."""
    pid: int = 0
    status: Status | None = None
    """None: its program is not there, or is no more."""
    question: str = ""
    """Its question for a person, when it is `asking`."""
    session: str = ""
    sent: int = 0
    """Messages that it took in this life of the server."""
    active_at: datetime | None = None
    """Time of its last output."""
    keyboard: KeyboardHold | None = None
    """The person who has its keyboard. None: Podium."""


class TerminalPair:
    """Brings a pair up, gives its sides as agents, and shows what they are at.

    Sides are seated before the pair comes up, the first one leftmost. Closed by whoever made it.
    """

    def __init__(self, deps: TuiDeps, settings: TerminalSettings) -> None:
        self._deps = deps
        self._settings = settings
        self._server = TmuxServer(deps.launcher, settings, deps.end_left)
        self._control = self._server.control
        self._activity = Activity(self._control, settings.folder / "activity")
        self._panes = Panes(self._control, settings)
        self._agents: dict[str, TuiAgent] = {}
        self._identity: ServerIdentity | None = None

    def side(
        self, name: str, adapter: Adapter, options: AgentOptions, cwd: Path, primer: str = ""
    ) -> TuiAgent:
        """Seat a program on a side. It is started when the pair comes up, or when it is first asked."""
        if name in self._agents:
            raise BadInput(f"side {name!r} is taken; choose another name")
        side = Side(
            self._deps,
            SideSpec(name, adapter, options, cwd, primer),
            self._control,
            self._panes,
            self._activity,
            self._settings.folder / name,
        )
        agent = TuiAgent(self._deps, side, self._control, self._activity, self._be_up)
        self._agents[name] = agent
        return agent

    async def come_up(self) -> None:
        """Have server, panes and programs up, ready and told their parts. Harmless when called again, by whomever.

        Raises `ToolMissing` without tmux, `NeedsHuman` when a program asks something, `TimedOut` when one does not
        become ready, `ProgramEnded` with its last words when one dies.
        """
        sides = [agent.side for agent in self._agents.values()]
        # All start before the first is told its part: they get ready side by side, and a missing one costs no wait.
        if not all([await self._is_up(side) for side in sides]):
            await self._open_through(sides[-1])
        for side in sides:
            await self._be_up(side)

    async def states(self) -> list[SideState]:
        """Return the state of each side. Starts nothing."""
        return [await self._state(agent.side) for agent in self._agents.values()]

    async def interrupt(self, name: str) -> bool:
        """End what it is at by its own keys. True: it is ready now."""
        return await (await self._running_side(name)).interrupt()

    async def nudge(self, name: str, text: str) -> None:
        """Say something to a program that rests. Raises `NotPossibleNow` when it does not."""
        side = await self._running_side(name)
        await side.sight.look()
        if side.sight.status not in ("ready", "unknown"):
            raise NotPossibleNow(
                f"{side.who} is {side.sight.status}; it takes messages only while it is idle"
            )
        await side.send(f"wish {secrets.token_hex(8)}", text)

    async def capture(self, name: str, *, whole: bool = False) -> tuple[str, ...]:
        """Return the lines that its pane shows; with `whole` all that it still has."""
        side = await self._running_side(name)
        if whole:
            return await history(self._control, side.pane)
        return (await self.screen(name)).lines

    async def screen(self, name: str) -> TerminalScreen:
        return await look(self._control, (await self._running_side(name)).pane)

    async def view(self, name: str) -> PaneView:
        """Return its screen as a spectator sees it."""
        side = await self._running_side(name)
        keyboard = side.keyboard
        frame, (answer,) = await painted(self._control, side.pane, keyboard.question)
        return PaneView(frame=frame, keyboard=keyboard.state_in(answer))

    async def stirring(self, name: str, since: int, seconds: float) -> int:
        """Return the number of signs of life of its pane: at once when there are more than `since`, else after so long."""
        pane = (await self._running_side(name)).pane
        await self._activity.beyond(pane, since, seconds)
        return self._activity.signs(pane)

    async def keyboard(self, name: str) -> Keyboard:
        return (await self._running_side(name)).keyboard

    async def send_keys(self, name: str, *keys: str, who: str = "") -> None:
        """Press keys by their tmux names, whatever the program is at: see `Keyboard.press`."""
        await (await self.keyboard(name)).press(who, *keys)

    async def signs_beyond(self, name: str, signs: int) -> int:
        """Return the number of signs of life of its pane, once there are more than this. Raises when it is not up."""
        pane = (await self._running_side(name)).pane
        await self._activity.beyond(pane, signs, float("inf"))
        return self._activity.signs(pane)

    async def resize(self, columns: int, rows: int) -> None:
        """Give every pane so many columns and rows."""
        await self._here()
        await self._panes.resize(columns, rows)

    async def restart(self, name: str) -> None:
        """Start its program again, in its conversation. Raises as `come_up` does."""
        side = await self._running_side(name)
        async with alone(self._lock):
            await side.open(await self._here(), again=True)
        await side.take_part()

    async def close(self) -> None:
        """Let go of the pair. Its programs go on."""
        self._activity.close()
        await self._server.close()

    async def depart(self) -> None:
        """End the server, both programs and all they started, and remove their homes and conversations."""
        self._activity.close()
        await self._server.departing()
        self._identity = None

    @property
    def _lock(self) -> Path:
        return self._settings.folder / "lock"

    async def _be_up(self, side: Side) -> None:
        if not await self._is_up(side):
            await self._open_through(side)
        await side.take_part()

    async def _open_through(self, last: Side) -> None:
        """Start a side's program, and those of all that sit before it, so that panes lie in the order of seats."""
        async with alone(self._lock):
            self._identity = await self._server.come_up()
            for agent in self._agents.values():
                await self._open(agent.side, self._identity)
                if agent.side is last:
                    break

    async def _open(self, side: Side, server: ServerIdentity) -> None:
        try:
            await side.open(server)
        except ToolMissing as missing:
            choice = f"or choose another: `podium duet up --{side.name} AGENT`"
            raise ToolMissing(f"{side.who}: {missing}; {choice}") from missing

    async def _is_up(self, side: Side) -> bool:
        if self._identity is None:
            return False
        try:
            return await side.is_up(self._server.identity())
        except (ServerGone, LineLost):
            return False

    async def _here(self) -> ServerIdentity:
        """The life of the server that is there. Starts none."""
        if self._identity is None and not self._settings.socket.exists():
            raise ServerGone("the pair is not running; start it with `podium duet up`")
        return await self._server.identity()

    async def _running_side(self, name: str) -> Side:
        """A side whose program is up, dead or alive. Raises `ServerGone` or `PaneGone` when it is not there."""
        if name not in self._agents:
            raise BadInput(f"there is no side {name!r}; sides: {', '.join(self._agents)}")
        side = self._agents[name].side
        await side.find(await self._here())
        return side

    async def _state(self, side: Side) -> SideState:
        state = SideState(side.name, side.adapter.kind, session=side.record().session)
        try:
            await side.find(await self._here())
            screen = await look(self._control, side.pane)
            (pid,) = await self._control.ask(f"display-message -p -t {side.pane} '#{{pane_pid}}'")
            entry = await side.injector.ledger.read()
            keyboard = await side.keyboard.state()
        except (ServerGone, PaneGone):
            return state
        status = None if screen.dead else side.adapter.status(screen)
        return replace(
            state,
            pane=side.pane,
            pid=0 if screen.dead else int(pid),
            status=status,
            question=side.adapter.question(screen) if status == "asking" else "",
            sent=entry.sent,
            active_at=_written_at(self._activity.file(side.pane)),
            keyboard=keyboard.hold,
        )


def _written_at(file: Path) -> datetime | None:
    try:
        return datetime.fromtimestamp(file.stat().st_mtime, UTC)
    except OSError:
        return None


ADAPTERS = ("claude", "codex", "gemini", "generic")


def adapter_for(kind: str, options: AgentOptions) -> Adapter:
    """Raises `BadInput` for a kind that has none, and for options that a program does not have."""
    # Late: each brings along all that its CLI needs when it is asked without a terminal.
    match kind:
        case "claude":
            from podium.agents.tui.claude import ClaudeTui

            return ClaudeTui()
        case "codex":
            from podium.agents.tui.codex import CodexTui

            return CodexTui()
        case "gemini":
            from podium.agents.tui.gemini import GeminiTui

            return GeminiTui()
        case "generic":
            from podium.agents.tui.generic import GenericTui

            return GenericTui(options)
    raise BadInput(f"{kind!r} is not a terminal program; kinds: {', '.join(ADAPTERS)}")

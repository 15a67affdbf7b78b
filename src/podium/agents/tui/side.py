"""One side of a pair: a program in its pane, with its folders and record, started when absent and found again when not."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

from pydantic import ValidationError

from podium.agents.deps import AgentOptions
from podium.agents.program import Needs, with_needs
from podium.agents.tui.activity import Activity
from podium.agents.tui.adapter import Adapter, ProgramContext, TuiDeps, Written
from podium.agents.tui.control import Control, LineLost, NotListening, PaneGone, ServerGone
from podium.agents.tui.delivery import OutboundMessage, OutboundMessages, ScreenProbe, Sender
from podium.agents.tui.injector import Injector
from podium.agents.tui.keyboard import Keyboard, Lapsed
from podium.agents.tui.panes import Panes, Program, end_program, pressing
from podium.agents.tui.screen import history_size, look
from podium.agents.tui.screen_watch import Sight
from podium.agents.tui.server import ServerIdentity
from podium.core.errors import NeedsHuman, NotPossibleNow, TimedOut
from podium.core.keyboards import KeyboardState
from podium.core.model import FrozenModel, Json, json_of
from podium.core.processes import ProcessSpec
from podium.platform.atomic_write import atomic_write


class SideRecord(FrozenModel):
    """One program's lives and conversation."""

    kind: str
    session: str = ""
    """Its conversation. Empty: it has not begun, or cannot be gone on with."""
    lives: int = 0
    """Times the program was started."""
    server: tuple[int, int] | None = None
    """The life of the server that it was started in last."""
    primed: bool = False
    """This conversation has been told its part."""


@dataclass(frozen=True)
class SideBook:
    """Keeps the record in a file."""

    file: Path
    kind: str

    def read(self) -> SideRecord:
        """A record that is damaged, or of another kind of program, counts for nothing."""
        new = SideRecord(kind=self.kind)
        try:
            record = SideRecord.model_validate_json(self.file.read_bytes())
        except (OSError, ValidationError):
            return new
        return record if record.kind == new.kind else new

    def keep(self, record: SideRecord) -> None:
        """On return it survives a crash."""
        atomic_write(self.file, json_of(record).encode())


DOOR_FILE = "PODIUM_DOOR_FILE"
"""Variable by which a CLI's hook finds the door of whichever turn is on."""
_FOLDERS = ("home", "tmp", "door", "messages", "letters")


@dataclass(frozen=True)
class SideSpec:
    """The program of a side, and its first message."""

    name: str
    adapter: Adapter
    options: AgentOptions
    cwd: Path
    primer: str = ""


@dataclass(frozen=True)
class SideFolders:
    """The folder of one side, private, for as long as the pair is up."""

    folder: Path
    deps: TuiDeps
    spec: SideSpec

    @property
    def door_file(self) -> Path:
        return self.folder / "door" / "door.json"

    @property
    def messages(self) -> Path:
        """For what is handed over as files."""
        return self.folder / "messages"

    def context(self, *, confined: bool = False) -> ProgramContext:
        return ProgramContext(
            name=self.spec.name,
            cwd=self.spec.cwd,
            home=self.folder / "home",
            temporary=self.folder / "tmp",
            options=self.spec.options,
            hook_command=self.deps.hook_command,
            user_home=self.deps.user_home,
            confined=confined,
        )

    def lay_out(self) -> None:
        """Make its folders. Harmless when they are there."""
        # One by one: what `mkdir` makes above a folder is open to others.
        for folder in (self.folder.parent, self.folder, *(self.folder / name for name in _FOLDERS)):
            folder.mkdir(exist_ok=True, mode=0o700)

    async def program(self, session: str) -> tuple[Program, str]:
        """The program for its pane, in this conversation or in a new one, and what the conversation is called."""
        spec, deps = self.spec, self.deps
        confinement = await deps.confinement_provider.confinement(str(spec.cwd))
        context = self.context(confined=confinement.kind != "none")
        launch = await asyncio.to_thread(spec.adapter.launch, context, session or None)
        spawn = ProcessSpec(
            argv=launch.argv,
            cwd=str(spec.cwd),
            env={**launch.env, DOOR_FILE: str(self.door_file)},
            confinement=with_needs(confinement, self._needs(launch.needs, context)),
        )
        argv = await deps.launcher.on_terminal(spawn)
        return Program(name=spec.name, argv=argv, cwd=spec.cwd), launch.session

    def _needs(self, needs: Needs, context: ProgramContext) -> Needs:
        """Return the needs of its kind and of a turn: to find the door, and to read what is handed over as a file."""
        doors = () if self.deps.door_folder is None else (self.deps.door_folder,)
        writable = (context.home, context.temporary, *needs.writable)
        return replace(
            needs,
            writable=tuple(dict.fromkeys(writable)),
            readable=(*needs.readable, self.door_file.parent, self.messages, *doors),
        )


T = TypeVar("T")

INTERRUPT_SECONDS = 5.0
_PAUSE_SECONDS = 0.02


class Side:
    """Starts, finds, watches and stops one program. Everything that must survive lies in its folder and in the server."""

    def __init__(
        self,
        deps: TuiDeps,
        spec: SideSpec,
        control: Control,
        panes: Panes,
        activity: Activity,
        folder: Path,
    ) -> None:
        self.spec = spec
        self.adapter = spec.adapter
        self.folders = SideFolders(folder.absolute(), deps, spec)
        self.outbound = OutboundMessages(folder.absolute() / "letters")
        self.pane = ""
        self._deps = deps
        self._control = control
        self._panes = panes
        self._activity = activity
        self._server = ServerIdentity(0, 0)
        self._book = SideBook(folder.absolute() / "side.json", spec.adapter.kind)
        self._sight: Sight | None = None

    @property
    def name(self) -> str:
        return self.spec.name

    @property
    def who(self) -> str:
        """Its name for people."""
        return f"{self.name!r} ({self.adapter.kind})"

    async def open(self, server: ServerIdentity, *, again: bool = False) -> None:
        """Have its program in its pane. The caller is alone with the pair meanwhile.

        A program that ended, or was lost with an earlier server, is started again in its conversation; with `again` one
        that lives as well.
        """
        pane = await self._find_pane(server)
        if not pane or again or (await look(self._control, pane)).dead:
            pane = await self._start(server, pane)
        await self._settle_in(pane, server)

    async def find(self, server: ServerIdentity) -> None:
        """Know its pane, and start nothing. Raises `PaneGone` when it has none."""
        if self.pane and self._server == server:
            return
        if not (pane := await self._find_pane(server)):
            raise PaneGone(f"{self.who} is not running; start the pair with `podium duet up`")
        await self._settle_in(pane, server)

    async def _settle_in(self, pane: str, server: ServerIdentity) -> None:
        self.pane, self._server, self._sight = pane, server, None
        await self._activity.follow(pane)
        await self._activity.expect_end(pane)

    async def is_up(self, server: Awaitable[ServerIdentity]) -> bool:
        """Return whether its program is there and lives in this life of the server, without doing anything about it."""
        identity, lives = await asyncio.gather(server, self._lives())
        return lives and self._server == identity

    async def _lives(self) -> bool:
        try:
            return bool(self.pane) and not (await look(self._control, self.pane)).dead
        except PaneGone:
            return False

    async def take_part(self) -> None:
        """Wait until it takes messages, and tell it its part, once for each conversation.

        Raises `NeedsHuman` when it asks something, and `TimedOut` when it does not become ready.
        """
        record = self.record()
        if record.primed:
            return
        await self.be_ready(self._deps.timings.start_seconds)
        if self.spec.primer:
            await self.send(f"primer {record.lives}", self.spec.primer)
            await self._rest_after_primer()
        written = self.written
        session = written.session if written is not None else record.session
        self.keep(record.model_copy(update={"primed": True, "session": session or record.session}))

    async def be_ready(self, seconds: float) -> None:
        if not await self.sight.until_ready(self.who, seconds):
            raise TimedOut(
                f"{self.who} does not take a message: it has been {self.sight.status} for {seconds:g} s; check its pane, "
                "interrupt or restart it, then retry"
            )

    async def interrupt(self, seconds: float = INTERRUPT_SECONDS) -> bool:
        """End what it is at by its own keys. True: it is ready. Does nothing to one that rests."""
        quiet = min(self._deps.timings.quiet_seconds, seconds / 2)
        give_up_at = asyncio.get_running_loop().time() + seconds
        while (left := give_up_at - asyncio.get_running_loop().time()) > 0:
            await self.sight.look()
            # Right after Enter a program may look ready that is about to begin.
            if self.sight.rests(quiet):
                return True
            if self.sight.status == "ready":
                await self.sight.pause(min(give_up_at, self.sight.rests_at(quiet)))
            elif await self._press_interrupt():
                return await self.sight.until_ready(self.who, left)
            else:
                await asyncio.sleep(_PAUSE_SECONDS)
        return False

    @property
    def sight(self) -> Sight:
        if self._sight is None:
            self._sight = Sight(
                self._control, self._activity, self._pane(), self.adapter, self._deps.timings
            )
        return self._sight

    @property
    def injector(self) -> Injector:
        return Injector(
            self._control,
            self._activity,
            self._pane(),
            self.adapter,
            self.folders.messages,
            self.adapter.patience,
        )

    async def send(self, key: str, text: str) -> OutboundMessage:
        """Have it take these words, once for each key. Raises as `Sender.send` does."""
        fit = self.adapter.fitted(text, self.folders.context())
        message = await self._sender.send(key, fit, self.end_position)
        self.sight.stirred()
        return message

    @property
    def keyboard(self) -> Keyboard:
        return Keyboard(self._control, self._pane(), self._deps.clock)

    async def by_ourselves(self, act: Callable[[], Awaitable[T]], lapsed: Lapsed) -> T:
        """Do what types in the pane while no person has its keyboard, and again when one took it meanwhile.

        What was typed in between is known by the ledger, so nothing is typed twice.
        """
        while True:
            before = await self._when_returned(lapsed)
            try:
                return await act()
            except (NotListening, NeedsHuman, TimedOut):
                now = await self.keyboard.settled(lapsed)
                if now.hold is None and now.takes == before.takes:
                    raise

    async def _when_returned(self, lapsed: Lapsed) -> KeyboardState:
        """A pane that is not known yet, or was lost, is found by whatever types in it, and nobody has its keyboard."""
        if not self.pane:
            return KeyboardState()
        try:
            return await self.keyboard.returned(lapsed)
        except (LineLost, PaneGone, ServerGone):
            return KeyboardState()

    async def has(self, key: str) -> bool:
        """Return whether it took what is sent under this key, or has it in its input."""
        return await self._sender.is_on_its_way(key)

    @property
    def _sender(self) -> Sender:
        injector = self.injector
        probe = ScreenProbe(
            self._control, self._pane(), injector, self.adapter.status, self.written
        )
        return Sender(injector, self.outbound, self._server, self.record().lives, probe)

    @property
    def written(self) -> Written | None:
        return self.adapter.written(self.folders.context(), self.record().session)

    async def end_position(self) -> Json:
        """Return the end of its transcript; or, where it writes none, how much it has shown."""
        written = self.written
        if written is None:
            return await history_size(self._control, self._pane())
        return await asyncio.to_thread(written.end_position)

    def record(self) -> SideRecord:
        return self._book.read()

    def keep(self, record: SideRecord) -> None:
        self._book.keep(record)

    async def _press_interrupt(self) -> bool:
        """Not while a message is being handed over: its words would go, and nobody would know whether they arrived."""
        pane = self._pane()
        press = pressing(pane, self.adapter.interrupt_keys)
        return await self.injector.ledger.press_between(press)

    async def _rest_after_primer(self) -> None:
        if not await self.sight.until_rests(self.who, self._deps.timings.start_seconds):
            raise TimedOut(
                f"{self.who} has been {self.sight.status} since its first instructions; check its pane"
            )

    async def _find_pane(self, server: ServerIdentity) -> str:
        """Its pane in this life of the server. Empty: it has none."""
        if self.record().server != (server.pid, server.started):
            return ""
        try:
            return await self._panes.find(self.name)
        except PaneGone:
            return ""

    async def _start(self, server: ServerIdentity, pane: str) -> str:
        """First the record: a Podium that dies in between has counted a life too many, which does no harm."""
        record = self.record()
        if pane:
            # While its home is laid out nobody may lay links there.
            await end_program(self._control, pane)
        self.folders.lay_out()
        program, session = await self.folders.program(record.session)
        again = bool(record.session) and session == record.session
        self.keep(
            record.model_copy(
                update={
                    "session": session,
                    "lives": record.lives + 1,
                    "server": (server.pid, server.started),
                    "primed": record.primed and again,
                }
            )
        )
        await asyncio.to_thread(self.outbound.remove_old)
        if not pane:
            return await self._panes.open(program)
        await self._panes.restart(pane, program)
        return pane

    def _pane(self) -> str:
        if not self.pane:
            raise NotPossibleNow(f"{self.who} is not running; start the pair with `podium duet up`")
        return self.pane

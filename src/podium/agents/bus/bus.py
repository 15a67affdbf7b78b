"""The bus, a socket of this user's alone where programs join as sides of pairs, and a program on it as an agent."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

import zmq
import zmq.asyncio
from pydantic import Field, ValidationError

from podium.agents.bus.peer import (
    MAX_FRAME_BYTES,
    AnsweredMessage,
    AnswerReceived,
    Asked,
    Cancelled,
    FailedMessage,
    FromPeer,
    HeartbeatMessage,
    Join,
    Leave,
    ProgressMessage,
    RefusedMessage,
    Taken,
    ToPeer,
    Welcome,
    Who,
    endpoint_of,
    frame_of,
    from_peer,
)
from podium.agents.deps import AgentDeps, AgentOptions
from podium.agents.outcome import accounted, unkept_limits
from podium.agents.program import printed_line
from podium.core.decisions import Usage
from podium.core.errors import AgentLost, BadInput, NotPossibleNow, TimedOut
from podium.core.model import FrozenModel, digest_of
from podium.core.turns import PairName, Reply, Side, Turn
from podium.platform.private_sockets import sole_server
from podium.ports import HookDoor

MISSED_HEARTBEATS = 4
"""So many beats without a word, and nobody sits there any more."""


@dataclass
class PendingTurn:
    """A turn that is not answered yet."""

    asked: Asked
    notify: Callable[[str], None]
    ended: asyncio.Future[AnsweredMessage | FailedMessage]
    taken: bool = False
    """The program has received it. Until then it is sent again with every heartbeat."""


@dataclass
class BusSlot:
    """One side of one pair."""

    name: str = ""
    """Of the program. Empty: nobody has ever sat here."""
    identity: bytes = b""
    """By which the socket reaches it. Empty: nobody sits here now."""
    last_message_at: float = 0.0
    askings: dict[str, PendingTurn] = field(default_factory=dict)
    taken: asyncio.Event = field(default_factory=asyncio.Event)

    def sit(self, name: str, identity: bytes) -> None:
        self.name, self.identity = name, identity
        self.touch()
        self.taken.set()

    def leave(self) -> None:
        self.identity = b""
        self.taken.clear()

    def touch(self) -> None:
        self.last_message_at = asyncio.get_running_loop().time()

    def is_silent(self, heartbeat_seconds: float) -> bool:
        """Return whether a message from it is overdue."""
        return (
            asyncio.get_running_loop().time() - self.last_message_at
            > heartbeat_seconds * MISSED_HEARTBEATS
        )

    def end(self, id_: str, how: AnsweredMessage | FailedMessage) -> bool:
        """False: nobody waits for it."""
        asking = self.askings.get(id_)
        if asking is None or asking.ended.done():
            return False
        asking.ended.set_result(how)
        return True


class BusSettings(FrozenModel):
    """Location of the bus, and its timeouts."""

    socket: Path
    """In a folder that nobody else can reach into."""
    beat_seconds: float = Field(default=1.0, gt=0)
    """Seconds between heartbeats of a program."""
    join_seconds: float = Field(default=30.0, ge=0)
    """Seconds to wait for a program that has not joined, or was lost."""


class Bus:
    """Opened when it is first needed, closed by whoever made it. One process has it at a time."""

    def __init__(self, settings: BusSettings) -> None:
        self.settings = settings
        self._slots: dict[tuple[str, Side], BusSlot] = {}
        self._by_identity: dict[bytes, BusSlot] = {}
        self._opened = ExitStack()
        self._line: zmq.asyncio.Socket | None = None
        self._pump: asyncio.Task[None] | None = None

    @property
    def endpoint(self) -> str:
        return endpoint_of(self.settings.socket)

    def open(self) -> None:
        """Listen. Harmless when it does. Raises `LockHeld` when another process has the bus."""
        if self._line is not None:
            return
        with ExitStack() as opening:
            path = opening.enter_context(sole_server(self.settings.socket))
            context = opening.enter_context(zmq.asyncio.Context())
            line = opening.enter_context(context.socket(zmq.ROUTER))
            line.set(zmq.LINGER, 0)
            line.set(zmq.ROUTER_MANDATORY, 1)
            line.set(zmq.MAXMSGSIZE, MAX_FRAME_BYTES)
            line.bind(self.endpoint)
            path.chmod(0o600)
            self._opened = opening.pop_all()
        self._line = line
        self._pump = asyncio.get_running_loop().create_task(self._hear(line))

    async def close(self) -> None:
        """Let go of the bus. Programs wait for whoever opens it next."""
        if self._pump is not None:
            self._pump.cancel()
            await asyncio.wait({self._pump})
        self._line = self._pump = None
        self._opened.close()

    async def ask(
        self, pair: str, side: Side, asked: Asked, notify: Callable[[str], None]
    ) -> AnsweredMessage | FailedMessage:
        """Have a turn answered by whoever sits there. Said again to whoever takes the seat over meanwhile.

        Raises `AgentLost` when nobody comes. Cancelling tells the program.
        """
        self.open()
        slot = self._slot(pair, side)
        if asked.id in slot.askings:
            raise NotPossibleNow("this turn is already being asked; wait for its answer")
        asking = PendingTurn(asked, notify, asyncio.get_running_loop().create_future())
        slot.askings[asked.id] = asking
        self._say(slot, asked)
        try:
            ended = await self._ended(pair, side, slot, asking)
        except BaseException:
            self._say(slot, Cancelled(id=asked.id))
            raise
        finally:
            del slot.askings[asked.id]
        self._say(slot, AnswerReceived(id=asked.id))
        return ended

    async def _ended(
        self, pair: str, side: Side, slot: BusSlot, asking: PendingTurn
    ) -> AnsweredMessage | FailedMessage:
        while not asking.ended.done():
            await self._until_taken(pair, side, slot)
            await asyncio.wait({asking.ended}, timeout=self.settings.beat_seconds)
            if slot.is_silent(self.settings.beat_seconds):
                self._vacate(slot)
        return asking.ended.result()

    async def _until_taken(self, pair: str, side: Side, slot: BusSlot) -> None:
        try:
            async with asyncio.timeout(self.settings.join_seconds):
                await slot.taken.wait()
        except TimeoutError:
            who = f"{slot.name!r} disconnected" if slot.name else "no program is connected"
            raise AgentLost(
                f"{who} as {side} of pair {pair!r}, and no program joined within {self.settings.join_seconds:g} s; "
                f"start a program that joins at {self.endpoint}"
            ) from None

    def _slot(self, pair: str, side: Side) -> BusSlot:
        return self._slots.setdefault((pair, side), BusSlot())

    def _vacate(self, slot: BusSlot) -> None:
        self._by_identity.pop(slot.identity, None)
        slot.leave()

    async def _hear(self, line: zmq.asyncio.Socket) -> None:
        while True:
            identity, *frames = await line.recv_multipart()
            try:
                message = from_peer(frames[-1] if frames else b"")
            except ValueError as error:
                why = f"the message cannot be read: {str(error).splitlines()[0]}"
                self._send(identity, RefusedMessage(why=why))
                continue
            self._take(identity, message)

    def _take(self, identity: bytes, message: FromPeer) -> None:
        if isinstance(message, Join):
            self._join(identity, message)
            return
        slot = self._by_identity.get(identity)
        if slot is None:
            self._send(identity, Who())
            return
        slot.touch()
        if isinstance(message, HeartbeatMessage):
            self._send(identity, HeartbeatMessage())
            for asking in slot.askings.values():
                if not asking.taken:
                    self._send(identity, asking.asked)
        elif isinstance(message, Taken) and message.id in slot.askings:
            slot.askings[message.id].taken = True
        elif isinstance(message, Leave):
            self._vacate(slot)
        elif isinstance(message, ProgressMessage) and message.id in slot.askings:
            slot.askings[message.id].notify(message.words)
        elif isinstance(message, AnsweredMessage | FailedMessage):
            slot.end(message.id, message)

    def _join(self, identity: bytes, join: Join) -> None:
        slot = self._slot(join.pair, join.side)
        is_other = slot.identity not in (b"", identity) and slot.name != join.name
        if is_other and not slot.is_silent(self.settings.beat_seconds):
            why = f"{slot.name!r} is already {join.side} of pair {join.pair!r}; stop it first"
            self._send(identity, RefusedMessage(why=why))
            return
        former = self._by_identity.get(identity)
        if former is not None:
            self._vacate(former)
        self._vacate(slot)
        self._by_identity[identity] = slot
        slot.sit(join.name, identity)
        self._send(identity, Welcome(beat_seconds=self.settings.beat_seconds))
        for asking in slot.askings.values():
            asking.taken = False
            self._send(identity, asking.asked)

    def _say(self, slot: BusSlot, message: ToPeer) -> None:
        if slot.identity:
            self._send(slot.identity, message)

    def _send(self, identity: bytes, message: ToPeer) -> None:
        """Send, without waiting: whoever is gone or does not listen joins again or is found silent."""
        if self._line is not None:
            frames = [identity, frame_of(message)]
            asyncio.ensure_future(self._line.send_multipart(frames, flags=zmq.NOBLOCK)).exception()


class BusAgentOptions(FrozenModel):
    """The options of an agent on the bus."""

    pair: PairName = "main"
    side: Side
    """The side of the pair that joins for it."""

    @classmethod
    def of(cls, options: AgentOptions) -> BusAgentOptions:
        try:
            return cls.model_validate(options.options)
        except ValidationError as error:
            issue = error.errors()[0]
            raise BadInput(
                f"agent {options.name!r}: its options are not valid: {'.'.join(map(str, issue['loc']))}: {issue['msg']}; "
                "set `options: {side: PLANNER}` or EXECUTER, and `pair` unless it is main"
            ) from None


class BusAgent:
    """The program that has joined as this side of this pair.

    It is a program of the person's own, started by somebody else: Podium holds neither its processes nor its tools. What
    it wants of Podium it asks for at the turn's door, whose variables come with each turn.
    """

    def __init__(self, options: AgentOptions, deps: AgentDeps, bus: Bus) -> None:
        """Raises `BadInput` for options that cannot be meant."""
        own = BusAgentOptions.of(options)
        self._options = options
        self._deps = deps
        self._bus = bus
        self._pair = own.pair
        self._side: Side = own.side

    @property
    def name(self) -> str:
        return self._options.name

    async def ask(self, turn: Turn) -> Reply:
        began = self._deps.clock.monotonic()

        def used() -> Usage:
            seconds = self._deps.clock.monotonic() - began
            return Usage(turns=1, seconds=seconds, complete=False)

        with (
            accounted(self.name, used),
            self._deps.transcripts.open(turn, self.name) as transcript,
        ):
            async with self._deps.doors.open(turn, agent=self.name) as door:
                text = await self._answer(turn, door)
                waiting = door.waiting_approvals
            transcript.write(printed_line(text))
        return Reply(
            text=text,
            usage=used(),
            agent=self.name,
            session=turn.session or f"{self._pair}/{self._side}",
            seconds=used().seconds,
            transcript=transcript.path,
            warnings=unkept_limits(self.name, turn.limits, "tokens", "usd", "turns"),
            waiting_approvals=waiting,
        )

    async def _answer(self, turn: Turn, door: HookDoor) -> str:
        asked = Asked(
            id=self._id_of(turn),
            prompt=turn.prompt,
            workspace=turn.workspace,
            seconds=turn.limits.seconds,
            variables=dict(door.env),
        )
        try:
            async with asyncio.timeout(turn.limits.seconds):
                ended = await self._bus.ask(
                    self._pair, self._side, asked, lambda text: door.report_progress("note", text)
                )
        except TimeoutError:
            raise TimedOut(
                f"agent {self.name!r} gave no answer within {turn.limits.seconds:g} s; it is {self._side} of pair "
                f"{self._pair!r} on the bus: check the program, or give it more time"
            ) from None
        if isinstance(ended, FailedMessage):
            raise AgentLost(f"agent {self.name!r} could not answer: {ended.why}")
        return ended.text

    def _id_of(self, turn: Turn) -> str:
        """The same turn has the same id in every Podium, so that its answer is heard after a crash too."""
        parts = [self._pair, self._side, turn.run_id, turn.step_key, turn.asking]
        return digest_of([*parts, turn.prompt])

"""Messages on the bus, one frame of JSON each way, and the bus's other end for programs written in Python.

peer   → join · beat · taken · told · answered · failed · leave
Podium → welcome · refused · who · beat · asked · heard · cancelled
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Annotated, Literal

import zmq
import zmq.asyncio
from pydantic import Field, TypeAdapter

from podium.core.errors import BadInput, NotPossibleNow
from podium.core.model import FrozenModel, json_of
from podium.core.turns import PairName, Side
from podium.platform.atomic_write import atomic_write
from podium.platform.private_sockets import make_private, refuse_long

MAX_FRAME_BYTES = 16_000_000
_SCHEME = "ipc://"

Id = Annotated[str, Field(min_length=1, max_length=200)]


class Join(FrozenModel):
    """A program takes a seat. Whoever has the same name takes it over."""

    kind: Literal["join"] = "join"
    pair: PairName = "main"
    side: Side
    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9_.-]{1,80}$")]


class HeartbeatMessage(FrozenModel):
    """Still here."""

    kind: Literal["beat"] = "beat"


class Taken(FrozenModel):
    kind: Literal["taken"] = "taken"
    id: Id


class ProgressMessage(FrozenModel):
    """Progress of a turn."""

    kind: Literal["told"] = "told"
    id: Id
    words: str


class AnsweredMessage(FrozenModel):
    """The whole answer. It is said again until it is heard."""

    kind: Literal["answered"] = "answered"
    id: Id
    text: str


class FailedMessage(FrozenModel):
    kind: Literal["failed"] = "failed"
    id: Id
    why: str


class Leave(FrozenModel):
    kind: Literal["leave"] = "leave"


class Welcome(FrozenModel):
    kind: Literal["welcome"] = "welcome"
    beat_seconds: float
    """Seconds within which the program has to send something."""


class RefusedMessage(FrozenModel):
    kind: Literal["refused"] = "refused"
    why: str


class Who(FrozenModel):
    """Podium does not know the program, and it should join: Podium was started anew."""

    kind: Literal["who"] = "who"


class Asked(FrozenModel):
    """A turn. The same id is the same turn: what was answered is answered again and not done again."""

    kind: Literal["asked"] = "asked"
    id: Id
    prompt: str
    workspace: str
    seconds: float | None = None
    """Seconds to wait for an answer. None: no limit."""
    variables: dict[str, str] = Field(default_factory=dict)
    """With these a process of the program reaches Podium's tools during this turn."""


class AnswerReceived(FrozenModel):
    kind: Literal["heard"] = "heard"
    id: Id


class Cancelled(FrozenModel):
    """Nobody waits for the answer any more."""

    kind: Literal["cancelled"] = "cancelled"
    id: Id


FromPeer = (
    Join | HeartbeatMessage | Taken | ProgressMessage | AnsweredMessage | FailedMessage | Leave
)
ToPeer = Welcome | RefusedMessage | Who | HeartbeatMessage | Asked | AnswerReceived | Cancelled
_FROM_PEER: TypeAdapter[FromPeer] = TypeAdapter(Annotated[FromPeer, Field(discriminator="kind")])
_TO_PEER: TypeAdapter[ToPeer] = TypeAdapter(Annotated[ToPeer, Field(discriminator="kind")])


def from_peer(frame: bytes) -> FromPeer:
    """Raises `ValueError` for what cannot be read."""
    return _FROM_PEER.validate_json(frame)


def to_peer(frame: bytes) -> ToPeer:
    """Raises `ValueError` for what cannot be read."""
    return _TO_PEER.validate_json(frame)


def frame_of(message: FromPeer | ToPeer) -> bytes:
    return json_of(message).encode()


def endpoint_of(socket: Path) -> str:
    return f"{_SCHEME}{socket.absolute()}"


def socket_of(endpoint: str) -> Path:
    """The file that an endpoint names. Raises `BadInput` for all but files: no network, no nameless sockets."""
    if not endpoint.startswith(f"{_SCHEME}/"):
        raise BadInput(
            f"the bus cannot use {endpoint!r}; give a local socket, such as ipc:///run/user/1000/podium/bus"
        )
    socket = Path(endpoint.removeprefix(_SCHEME))
    refuse_long(socket)
    return socket


Notify = Callable[[str], None]
Answer = Callable[[Asked, Notify], Awaitable[str]]
"""Does a turn. What it tells meanwhile is shown to whoever follows the run."""

MAX_REMEMBERED = 100
"""Answers that are given again when the same turn is asked again."""
_FIRST_HEARTBEAT_SECONDS = 0.5


class BusPeer:
    """One side of a pair. Turns that were answered are known by their ids, also after a crash when there is a memory."""

    def __init__(self, endpoint: str, join: Join, memory: Path | None = None) -> None:
        """`memory`: a file of its own. Raises `BadInput` for an endpoint that is no local socket."""
        self._socket = socket_of(endpoint)
        self._endpoint = endpoint
        self._join = join
        self._memory = memory
        self._answers: dict[str, str] = _remembered(memory)
        self._unheard: set[str] = set()
        self._doing: dict[str, asyncio.Task[None]] = {}
        self._heartbeat_seconds = _FIRST_HEARTBEAT_SECONDS
        self._coming: asyncio.Future[list[bytes]] | None = None

    async def serve(self, answer: Answer) -> None:
        """Answer turns until cancelled. Raises `NotPossibleNow` when the seat is somebody else's."""
        make_private(self._socket.parent)
        with zmq.asyncio.Context() as context, context.socket(zmq.DEALER) as line:
            line.set(zmq.LINGER, 1000)
            line.set(zmq.MAXMSGSIZE, MAX_FRAME_BYTES)
            line.connect(self._endpoint)
            self._line = line
            self._send(self._join)
            try:
                while True:
                    await self._hear(answer)
            finally:
                for task in self._doing.values():
                    task.cancel()
                await asyncio.gather(*self._doing.values(), return_exceptions=True)
                self._send(Leave())

    async def _hear(self, answer: Answer) -> None:
        # Waiting does not take it back: a message that comes just then would be lost.
        coming = self._coming or asyncio.ensure_future(self._line.recv_multipart())
        await asyncio.wait({coming}, timeout=self._heartbeat_seconds)
        self._coming = None if coming.done() else coming
        if self._coming is not None:
            self._send(HeartbeatMessage())
            return
        frames = coming.result()
        try:
            message = to_peer(frames[-1])
        except ValueError:
            return  # of a newer Podium
        self._take(message, answer)

    def _take(self, message: ToPeer, answer: Answer) -> None:
        if isinstance(message, Asked):
            self._asked(message, answer)
        elif isinstance(message, Welcome):
            self._heartbeat_seconds = message.beat_seconds
            for id_ in self._unheard:
                self._send(AnsweredMessage(id=id_, text=self._answers[id_]))
        elif isinstance(message, Who):
            self._send(self._join)
        elif isinstance(message, AnswerReceived):
            self._unheard.discard(message.id)
        elif isinstance(message, Cancelled) and message.id in self._doing:
            self._doing[message.id].cancel()
        elif isinstance(message, RefusedMessage):
            raise NotPossibleNow(
                f"the bus at {self._endpoint} refused {self._join.name!r}: {message.why}"
            )

    def _asked(self, asked: Asked, answer: Answer) -> None:
        if asked.id in self._answers:
            self._send(AnsweredMessage(id=asked.id, text=self._answers[asked.id]))
            return
        self._send(Taken(id=asked.id))
        if asked.id not in self._doing:
            task = asyncio.get_running_loop().create_task(self._do(asked, answer))
            self._doing[asked.id] = task
            task.add_done_callback(lambda _: self._doing.pop(asked.id, None))

    async def _do(self, asked: Asked, answer: Answer) -> None:
        try:
            text = await answer(
                asked, lambda text: self._send(ProgressMessage(id=asked.id, words=text))
            )
        except Exception as error:  # whatever it is, Podium is told
            self._send(FailedMessage(id=asked.id, why=f"{type(error).__name__}: {error}"))
            return
        self._remember(asked.id, text)
        self._send(AnsweredMessage(id=asked.id, text=text))

    def _remember(self, id_: str, text: str) -> None:
        """On return it survives a crash, where there is a memory."""
        self._answers[id_] = text
        self._unheard.add(id_)
        while len(self._answers) > MAX_REMEMBERED:
            oldest = next(iter(self._answers))
            del self._answers[oldest]
            self._unheard.discard(oldest)
        if self._memory is not None:
            atomic_write(self._memory, json.dumps(self._answers).encode())

    def _send(self, message: FromPeer) -> None:
        """Never waits: while Podium is not there the socket keeps it, or it is said again."""
        asyncio.ensure_future(self._line.send(frame_of(message), flags=zmq.NOBLOCK)).exception()


def _remembered(memory: Path | None) -> dict[str, str]:
    if memory is None or not memory.exists():
        return {}
    try:
        answers = json.loads(memory.read_bytes())
    except ValueError:
        return {}
    return (
        {str(id_): str(text) for id_, text in answers.items()} if isinstance(answers, dict) else {}
    )

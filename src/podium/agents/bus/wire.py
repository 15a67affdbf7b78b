"""Messages on the bus: one frame of JSON each way, told apart by its `kind`.

peer   → join · beat · taken · told · answered · failed · leave
Podium → welcome · refused · who · beat · asked · heard · cancelled
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, TypeAdapter

from podium.core.errors import BadInput
from podium.core.model import FrozenModel, json_of
from podium.core.turns import PairName, Side
from podium.platform.private_sockets import refuse_long

MAX_FRAME_BYTES = 16_000_000
_SCHEME = "ipc://"

Id = Annotated[str, Field(min_length=1, max_length=200)]


class Join(FrozenModel):
    """A program takes a seat. Whoever has the same name takes it over."""

    kind: Literal["join"] = "join"
    pair: PairName = "main"
    side: Side
    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9_.-]{1,80}$")]


class Heartbeat(FrozenModel):
    """Still here."""

    kind: Literal["beat"] = "beat"


class Taken(FrozenModel):
    kind: Literal["taken"] = "taken"
    id: Id


class ProgressReport(FrozenModel):
    """Progress of a turn."""

    kind: Literal["told"] = "told"
    id: Id
    words: str


class Answered(FrozenModel):
    """The whole answer. It is said again until it is heard."""

    kind: Literal["answered"] = "answered"
    id: Id
    text: str


class Failed(FrozenModel):
    kind: Literal["failed"] = "failed"
    id: Id
    why: str


class Leave(FrozenModel):
    kind: Literal["leave"] = "leave"


class Welcome(FrozenModel):
    kind: Literal["welcome"] = "welcome"
    beat_seconds: float
    """Seconds within which the program has to send something."""


class Refused(FrozenModel):
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


FromPeer = Join | Heartbeat | Taken | ProgressReport | Answered | Failed | Leave
ToPeer = Welcome | Refused | Who | Heartbeat | Asked | AnswerReceived | Cancelled
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
            f"the bus cannot be at {endpoint!r}: it is only ever a local socket, as ipc:///run/user/1000/podium/bus"
        )
    socket = Path(endpoint.removeprefix(_SCHEME))
    refuse_long(socket)
    return socket

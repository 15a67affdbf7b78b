"""Podium's models and errors as messages and status codes of `podium.proto`, and back."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from datetime import UTC, datetime
from typing import Any

import grpc
from grpc import aio
from pydantic import ValidationError

from podium.core.errors import (
    AgentLost,
    AgentNotLoggedIn,
    BadInput,
    CallRefused,
    LockHeld,
    NeedsHuman,
    NotPossibleNow,
    Passing,
    PodiumError,
    RunMustStop,
    TimedOut,
    ToolMissing,
    UserMustAct,
)
from podium.core.keyboards import KeyboardHold
from podium.core.model import whole_text
from podium.core.terminals import Terminal, TerminalPicture, TerminalState, TerminalStatus
from podium.core.turns import Side
from podium.rpc.generated import podium_pb2 as pb

MAX_PICTURE_CHARACTERS = 900_000
"""Four bytes each at most: gRPC takes messages of four megabytes."""

MAX_QUESTION_CHARACTERS = 10_000
"""It is sent beside a picture."""

DEFAULT_PAIR = "main"

SIDES: tuple[Side, Side] = ("PLANNER", "EXECUTER")
"""As they are told."""
_SIDES: dict[Side, pb.Side.ValueType] = {"PLANNER": pb.SIDE_PLANNER, "EXECUTER": pb.SIDE_EXECUTER}
_SIDES_BACK = {number: side for side, number in _SIDES.items()}
_STATUSES: dict[TerminalStatus, pb.Status.ValueType] = {
    "gone": pb.STATUS_GONE,
    "starting": pb.STATUS_STARTING,
    "ready": pb.STATUS_READY,
    "busy": pb.STATUS_BUSY,
    "asking": pb.STATUS_ASKING,
    "unknown": pb.STATUS_UNKNOWN,
}
_STATUSES_BACK = {number: status for status, number in _STATUSES.items()}


def terminal_in(message: pb.Terminal) -> Terminal:
    """Raises `BadInput` when it names no side."""
    side = _SIDES_BACK.get(message.side)
    if side is None:
        raise BadInput("the side is missing; use SIDE_PLANNER or SIDE_EXECUTER")
    return Terminal(pair=message.pair or DEFAULT_PAIR, side=side)


def terminal_out(terminal: Terminal) -> pb.Terminal:
    return pb.Terminal(pair=terminal.pair, side=_SIDES[terminal.side])


def state_out(state: TerminalState) -> pb.State:
    return pb.State(
        terminal=terminal_out(state.terminal),
        agent=state.agent,
        status=_STATUSES[state.status],
        question=whole_text(state.question[:MAX_QUESTION_CHARACTERS]),
        pane=state.pane,
        pid=state.pid,
        session=state.session,
        sent=state.sent,
        active_at_ms=_ms(state.active_at) if state.active_at else 0,
        keyboard=_hold_out(state.keyboard) if state.keyboard else None,
    )


def state_in(message: pb.State) -> TerminalState:
    at = message.active_at_ms
    return TerminalState(
        terminal=terminal_in(message.terminal),
        agent=message.agent,
        status=_STATUSES_BACK.get(message.status, "unknown"),
        question=message.question,
        pane=message.pane,
        pid=message.pid,
        session=message.session,
        sent=message.sent,
        active_at=_timestamp(at) if at else None,
        keyboard=_hold_in(message.keyboard) if message.HasField("keyboard") else None,
    )


def _hold_out(hold: KeyboardHold) -> pb.Keyboard:
    return pb.Keyboard(who=whole_text(hold.who), since_ms=_ms(hold.since), until_ms=_ms(hold.until))


def _hold_in(message: pb.Keyboard) -> KeyboardHold:
    return KeyboardHold(
        who=message.who, since=_timestamp(message.since_ms), until=_timestamp(message.until_ms)
    )


def _ms(at: datetime) -> int:
    return round(at.timestamp() * 1000)


def _timestamp(ms: int) -> datetime:
    return datetime.fromtimestamp(ms / 1000, UTC)


def picture_out(picture: TerminalPicture) -> pb.Picture:
    """The last of its lines that there is room for."""
    left = MAX_PICTURE_CHARACTERS
    lines: list[str] = []
    for line in reversed(picture.lines):
        left -= len(line) + 1
        if left < 0:
            break
        lines.append(whole_text(line))
    return pb.Picture(
        lines=reversed(lines),
        left_out=picture.left_out + len(picture.lines) - len(lines),
        columns=picture.columns,
        rows=picture.rows,
        cursor_column=picture.cursor_column,
        cursor_row=picture.cursor_row,
    )


def picture_in(message: pb.Picture) -> TerminalPicture:
    return TerminalPicture(
        lines=tuple(message.lines),
        left_out=message.left_out,
        columns=message.columns,
        rows=message.rows,
        cursor_column=message.cursor_column,
        cursor_row=message.cursor_row,
    )


ERROR_KEY = "podium-error"
_MAX_BYTES = 2000
"""They become up to three times as many, and all headers of an answer together may have 8 KB."""

_CODES: dict[type[PodiumError], grpc.StatusCode] = {
    BadInput: grpc.StatusCode.INVALID_ARGUMENT,
    ToolMissing: grpc.StatusCode.FAILED_PRECONDITION,
    AgentNotLoggedIn: grpc.StatusCode.FAILED_PRECONDITION,
    LockHeld: grpc.StatusCode.FAILED_PRECONDITION,
    NotPossibleNow: grpc.StatusCode.FAILED_PRECONDITION,
    UserMustAct: grpc.StatusCode.FAILED_PRECONDITION,
    NeedsHuman: grpc.StatusCode.FAILED_PRECONDITION,
    CallRefused: grpc.StatusCode.PERMISSION_DENIED,
    TimedOut: grpc.StatusCode.DEADLINE_EXCEEDED,
    AgentLost: grpc.StatusCode.UNAVAILABLE,
    Passing: grpc.StatusCode.UNAVAILABLE,
    RunMustStop: grpc.StatusCode.UNKNOWN,
    PodiumError: grpc.StatusCode.UNKNOWN,
}
_BY_NAME = {kind.__name__: kind for kind in _CODES}
_BY_CODE: dict[grpc.StatusCode, type[PodiumError]] = {
    grpc.StatusCode.DEADLINE_EXCEEDED: TimedOut,
    grpc.StatusCode.UNAVAILABLE: AgentLost,
    grpc.StatusCode.CANCELLED: AgentLost,
}


@asynccontextmanager
async def reporting_errors(context: aio.ServicerContext[Any, Any]) -> AsyncIterator[None]:
    """Server: what goes wrong inside is told to the client in words. gRPC itself tells of what nobody foresaw."""
    try:
        yield
    except PodiumError as error:
        kind = next(kind for kind in type(error).__mro__ if kind in _CODES)
        await _abort(context, _CODES[kind], str(error), kind.__name__)
    except ValidationError as error:
        problem = error.errors(include_url=False, include_input=False)[0]
        location = ".".join(map(str, problem["loc"]))
        text = f"{location}: {problem['msg']}; correct the request"
        await _abort(context, grpc.StatusCode.INVALID_ARGUMENT, text, BadInput.__name__)


async def _abort(
    context: aio.ServicerContext[Any, Any], code: grpc.StatusCode, message: str, name: str
) -> None:
    detail = message.encode(errors="replace")[:_MAX_BYTES].decode(errors="ignore")
    await context.abort(code, detail, ((ERROR_KEY, name),))


@contextmanager
def raising_errors(where: str) -> Iterator[None]:
    """Client: what the server told is raised here as if it had happened here."""
    try:
        yield
    except aio.AioRpcError as error:
        raise _raised(error, where) from None


def _raised(error: aio.AioRpcError, where: str) -> PodiumError:
    text = error.details() or error.code().name
    named = dict(error.trailing_metadata() or ()).get(ERROR_KEY)
    if isinstance(named, str) and named in _BY_NAME:
        return _BY_NAME[named](text)
    if error.code() is grpc.StatusCode.UNIMPLEMENTED:
        return NotPossibleNow(
            f"the Podium at {where!r} runs a version that does not support this; update and restart it"
        )
    if error.code() is grpc.StatusCode.RESOURCE_EXHAUSTED:
        return NotPossibleNow(
            f"the Podium at {where!r} is overloaded: {text}; send smaller requests, or retry later"
        )
    kind = _BY_CODE.get(error.code())
    if kind is None:
        return PodiumError(f"error in the Podium at {where!r}: {text}")
    return kind(f"the Podium at {where!r} did not answer: {text}; check that it is running")

"""Errors on their way through gRPC: a status code for everybody, and the name of the error for Podium itself."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import grpc
from grpc import aio
from pydantic import ValidationError

from podium.domain.errors import (
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

ERROR_KEY = "podium-error"
_MOST_BYTES = 2000
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
_BY_NAME = {each.__name__: each for each in _CODES}
_BY_CODE: dict[grpc.StatusCode, type[PodiumError]] = {
    grpc.StatusCode.DEADLINE_EXCEEDED: TimedOut,
    grpc.StatusCode.UNAVAILABLE: AgentLost,
    grpc.StatusCode.CANCELLED: AgentLost,
}


@asynccontextmanager
async def telling(context: aio.ServicerContext[Any, Any]) -> AsyncIterator[None]:
    """Server: what goes wrong inside is told to the client in words. gRPC itself tells of what nobody foresaw."""
    try:
        yield
    except PodiumError as error:
        known = next(each for each in type(error).__mro__ if each in _CODES)
        await _abort(context, _CODES[known], str(error), known.__name__)
    except ValidationError as error:
        fault = error.errors(include_url=False, include_input=False)[0]
        place = ".".join(map(str, fault["loc"]))
        words = f"{place}: {fault['msg']}; put it right"
        await _abort(context, grpc.StatusCode.INVALID_ARGUMENT, words, BadInput.__name__)


async def _abort(
    context: aio.ServicerContext[Any, Any], code: grpc.StatusCode, words: str, name: str
) -> None:
    kept = words.encode(errors="replace")[:_MOST_BYTES].decode(errors="ignore")
    await context.abort(code, kept, ((ERROR_KEY, name),))


@contextmanager
def hearing(where: str) -> Iterator[None]:
    """Client: what the server told is raised here as if it had happened here."""
    try:
        yield
    except aio.AioRpcError as error:
        raise _raised(error, where) from None


def _raised(error: aio.AioRpcError, where: str) -> PodiumError:
    words = error.details() or error.code().name
    named = dict(error.trailing_metadata() or ()).get(ERROR_KEY)
    if isinstance(named, str) and named in _BY_NAME:
        return _BY_NAME[named](words)
    if error.code() is grpc.StatusCode.UNIMPLEMENTED:
        return NotPossibleNow(
            f"the Podium at {where!r} is of another version, which does not know this; end it and start it anew"
        )
    if error.code() is grpc.StatusCode.RESOURCE_EXHAUSTED:
        return NotPossibleNow(
            f"the Podium at {where!r} has no room for this: {words}; ask for less at once, or later"
        )
    kind = _BY_CODE.get(error.code())
    if kind is None:
        return PodiumError(f"something went wrong in the Podium at {where!r}: {words}")
    return kind(f"the Podium at {where!r} did not answer: {words}; see whether it runs")

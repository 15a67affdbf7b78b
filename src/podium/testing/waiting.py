"""Waiting in tests: until something is true, and never for longer than said."""

from __future__ import annotations

import asyncio
import inspect
import time
from collections.abc import Awaitable, Callable, Iterator
from typing import Any, TypeVar, overload

from podium.domain.errors import TimedOut

T = TypeVar("T")

_FIRST_PAUSE_SECONDS = 0.001
_LONGEST_PAUSE_SECONDS = 0.05


@overload
async def retry_until(condition: Callable[[], Awaitable[T]], seconds: float = 120.0) -> T: ...
@overload
async def retry_until(condition: Callable[[], T], seconds: float = 120.0) -> T: ...
async def retry_until(condition: Callable[[], Any], seconds: float = 120.0) -> Any:
    """Ask again and again until the answer is truthy, and give that answer.

    `condition` may be plain or a coroutine function. Raises `TimedOut` after `seconds`.
    """
    for pause in _pauses(condition, seconds):
        answer = condition()
        if inspect.isawaitable(answer):
            answer = await answer
        if answer:
            return answer
        await asyncio.sleep(pause)
    raise AssertionError("unreachable: the pauses end with TimedOut")


def retry_until_blocking(condition: Callable[[], T], seconds: float = 120.0) -> T:
    """`retry_until` for code without an event loop."""
    for pause in _pauses(condition, seconds):
        if answer := condition():
            return answer
        time.sleep(pause)
    raise AssertionError("unreachable: the pauses end with TimedOut")


def _pauses(condition: object, seconds: float) -> Iterator[float]:
    deadline = time.monotonic() + seconds
    pause = _FIRST_PAUSE_SECONDS
    yield pause
    while time.monotonic() < deadline:
        yield pause
        pause = min(pause * 2, _LONGEST_PAUSE_SECONDS)
    raise TimedOut(f"{condition!r} did not become true within {seconds:g} seconds")

"""A clock and ids that tests hold still, and waiting with a bound."""

from __future__ import annotations

import asyncio
import hashlib
import inspect
import itertools
import time
from collections.abc import Awaitable, Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar, overload

from podium.core.errors import BadInput, TimedOut
from podium.core.ids import mint_id

START_TIME = datetime(2026, 1, 1, 12, 0, tzinfo=UTC)
"""Default start time of a `FixedClock`."""


class FixedClock:
    """A clock that moves only when it is told to."""

    def __init__(self, start: datetime = START_TIME) -> None:
        if start.tzinfo is None:
            raise BadInput(f"a clock cannot start at {start!r}: give a time zone")
        self._start = start.astimezone(UTC)
        self._passed_seconds = 0.0
        self._set_back = timedelta()

    def now(self) -> datetime:
        return self._start + timedelta(seconds=self._passed_seconds) - self._set_back

    def monotonic(self) -> float:
        return self._passed_seconds

    def advance(self, seconds: float) -> None:
        """Let time pass. Timers of an event loop do not notice: they run on the loop's own time."""
        if seconds < 0:
            raise BadInput(f"time cannot pass by {seconds!r} seconds: a clock only moves forward")
        self._passed_seconds += seconds

    def set_back(self, seconds: float) -> None:
        """Set the time of day back, as a person or a time server may. Monotonic time does not change."""
        self._set_back += timedelta(seconds=seconds)


class SteadyIds:
    """Ids of the real shape that are the same in every test run.

    Two sources on one store need different seeds.
    """

    def __init__(self, seed: int = 0, start: datetime = START_TIME) -> None:
        self._seed = seed
        self._first_millisecond = int(start.timestamp() * 1000)
        self._counter = itertools.count(1)

    def new(self, prefix: str) -> str:
        number = next(self._counter)
        chance = hashlib.sha256(f"{self._seed}:{number}".encode()).digest()[:10]
        return mint_id(prefix, self._first_millisecond + number, chance)


T = TypeVar("T")

_FIRST_PAUSE_SECONDS = 0.001
_MAX_PAUSE_SECONDS = 0.05


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
        pause = min(pause * 2, _MAX_PAUSE_SECONDS)
    raise TimedOut(f"{condition!r} did not become true within {seconds:g} seconds")

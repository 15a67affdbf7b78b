"""Waiting in tests."""

from __future__ import annotations

import itertools

import pytest

from podium.core.errors import TimedOut
from podium.testing import retry_until, retry_until_blocking


async def test_retry_until_gives_the_first_truthy_answer() -> None:
    answers = iter([0, "", "there"])
    assert await retry_until(lambda: next(answers)) == "there"


async def test_retry_until_awaits_a_condition_that_is_a_coroutine() -> None:
    counter = itertools.count()

    async def third_time() -> bool:
        return next(counter) == 2

    assert await retry_until(third_time)


async def test_retry_until_gives_up_in_time_and_names_the_condition() -> None:
    def never() -> bool:
        return False

    with pytest.raises(TimedOut, match="never"):
        await retry_until(never, seconds=0.05)


async def test_retry_until_looks_at_least_once() -> None:
    assert await retry_until(lambda: True, seconds=0)


def test_the_blocking_form_keeps_the_same_promises() -> None:
    answers = iter([None, 7])
    assert retry_until_blocking(lambda: next(answers)) == 7
    with pytest.raises(TimedOut):
        retry_until_blocking(lambda: False, seconds=0.02)

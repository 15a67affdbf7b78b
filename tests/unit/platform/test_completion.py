"""Work is completed although the task that waits for it is cancelled, and its failure is not lost."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable

import pytest

from podium.platform.completion import in_thread, run_to_completion
from podium.testing import retry_until


class Work:
    """Waits until it may end; then gives its outcome or raises it."""

    def __init__(self, outcome: str | BaseException = "done") -> None:
        self.outcome = outcome
        self.begun = asyncio.Event()
        self.may_end = asyncio.Event()
        self.ended = False

    async def run(self) -> str:
        self.begun.set()
        await self.may_end.wait()
        self.ended = True
        if isinstance(self.outcome, BaseException):
            raise self.outcome
        return self.outcome


async def cancelled_during(work: Work, times: int) -> asyncio.CancelledError:
    """The error that the waiting task ends with, cancelled so often while the work is on its way."""
    task = asyncio.create_task(run_to_completion(work.run()))
    await work.begun.wait()
    for _ in range(times):
        task.cancel()
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert not task.done()
    work.may_end.set()
    with pytest.raises(asyncio.CancelledError) as caught:
        await task
    return caught.value


async def test_the_result_is_given_when_nobody_cancels() -> None:
    work = Work()
    work.may_end.set()
    assert await run_to_completion(work.run()) == "done"


async def test_a_failure_is_raised_when_nobody_cancels() -> None:
    work = Work(ValueError("odd"))
    work.may_end.set()
    with pytest.raises(ValueError, match="odd"):
        await run_to_completion(work.run())


@pytest.mark.parametrize("times", [1, 2, 3])
async def test_the_work_ends_however_often_the_task_is_cancelled(times: int) -> None:
    work = Work()
    error = await cancelled_during(work, times)
    assert work.ended
    assert not hasattr(error, "__notes__")


async def test_a_failure_meanwhile_is_noted_on_the_cancellation() -> None:
    error = await cancelled_during(Work(ValueError("the disk is full")), 2)
    assert error.__notes__ == ["meanwhile: the disk is full"]


async def test_a_failure_without_a_text_is_noted_by_its_type() -> None:
    error = await cancelled_during(Work(TimeoutError()), 1)
    assert error.__notes__ == ["meanwhile: TimeoutError"]


async def test_work_that_was_cancelled_itself_ends_the_wait() -> None:
    error = await cancelled_during(Work(asyncio.CancelledError("by itself")), 1)
    assert not hasattr(error, "__notes__")


async def test_a_time_limit_around_it_still_counts() -> None:
    work = Work()
    asyncio.get_running_loop().call_later(0.05, work.may_end.set)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.01):
            await run_to_completion(work.run())
    assert work.ended


async def test_a_future_that_somebody_else_waits_for_is_not_cancelled() -> None:
    future: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    task = asyncio.create_task(run_to_completion(future))
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.sleep(0)
    future.set_result("done")
    with pytest.raises(asyncio.CancelledError):
        await task
    assert future.result() == "done"


async def test_the_loop_goes_on_while_a_thread_works() -> None:
    loop_ran = threading.Event()
    asyncio.get_running_loop().call_soon(loop_ran.set)
    assert await in_thread(loop_ran.wait, 120)


async def test_a_cancelled_thread_has_ended_before_anybody_goes_on() -> None:
    begun, may_end, done = threading.Event(), threading.Event(), threading.Event()

    def work(wait: Callable[[float], bool]) -> None:
        begun.set()
        wait(120)
        done.set()

    working = asyncio.create_task(in_thread(work, wait=may_end.wait))
    await retry_until(begun.is_set)
    for _ in range(3):
        working.cancel()
        await asyncio.sleep(0)
    assert not working.done()
    may_end.set()
    with pytest.raises(asyncio.CancelledError):
        await working
    assert done.is_set()

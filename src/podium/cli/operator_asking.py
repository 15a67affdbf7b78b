"""One message put to the operator: built, processed, shown."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress

from podium.cli.detaching import queue_named, see_that_it_is_served
from podium.cli.door import Door
from podium.cli.event_words import event_line
from podium.cli.progress import Progress
from podium.domain.errors import BadInput, NotPossibleNow
from podium.domain.ids import short_id
from podium.domain.operating import OperatorAnswer
from podium.domain.work import Run
from podium.flows.operator import Operator
from podium.flows.operator.answers import Answers
from podium.flows.operator.blocks import blocks
from podium.usecases import follow_logs
from podium.wiring import Podium
from podium.wiring.operating import OperatorWish, build_operator

TELLING = ("tool_requested", "tool_completed", "tool_failed", "tool_in_doubt", "approval_requested")
"""Events of a run that somebody who waits for it wants to see."""

Started = Callable[[Run], Awaitable[None]]
Process = Callable[[Podium, Operator, Started], Awaitable[OperatorAnswer]]


def put(
    door: Door, message: str, mode: str, process: Process, *, pack: str = "", classifier: str = ""
) -> OperatorAnswer:
    """Let an operator do something and give its answer, also when none could be built."""

    async def work(podium: Podium) -> OperatorAnswer:
        async def served(run: Run) -> None:
            spec = queue_named(door, run.queue or "")
            await see_that_it_is_served(podium, run, spec)

        wish = OperatorWish(pack=pack, classifier=classifier, worker_is_there=served)
        try:
            operator = await build_operator(podium, wish)
        except (BadInput, NotPossibleNow) as error:
            return Answers().not_understood(message, mode, str(error).splitlines())
        async with _followed(door, podium) as started:
            return await process(podium, operator, started)

    return door.run(work)


def show(door: Door, answer: OperatorAnswer) -> None:
    """The answer on stdout: as five blocks, or as one object."""
    text = blocks(answer)
    record = {**answer.model_dump(mode="json"), "text": text}
    if answer.plan is not None:
        record["plan"]["plan_hash"] = answer.plan.plan_hash
    door.screen.answer(record, lambda: door.screen.line(text))


@asynccontextmanager
async def _followed(door: Door, podium: Podium) -> AsyncIterator[Started]:
    """While open, what happens in a run that was started is told on stderr."""
    following: list[asyncio.Task[None]] = []

    async def follow(run: Run) -> None:
        with Progress(sys.stderr) as progress:
            async for event in follow_logs(await podium.store(), run.id, follow=True):
                if event.body.type in TELLING:
                    progress.line(event_line(event, progress.width))

    async def started(run: Run) -> None:
        door.options.parting_words = (
            f"run {run.id} stays at its checkpoint: `podium resume {short_id(run.id)}` goes on, "
            f"`podium cancel {short_id(run.id)}` ends it"
        )
        following.append(asyncio.create_task(follow(run)))

    try:
        yield started
    finally:
        for task in following:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task

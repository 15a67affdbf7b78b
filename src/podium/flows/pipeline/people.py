"""Where only a person knows how to go on."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from itertools import count
from typing import Any

from podium.domain.errors import NeedsHuman
from podium.domain.events import NoteTaken
from podium.domain.model import Moment, Noun
from podium.flows.pipeline.desk import Desk
from podium.ports import Step


class Awaited(Noun):
    """What a step waits for before it is done again."""

    approval_id: str
    approval_deadline: Moment | None


class AwaitsApproval(NeedsHuman):
    """A step cannot end before a person has answered."""

    def __init__(self, approval_id: str, deadline: Moment | None, what: str) -> None:
        super().__init__(f"{what}: `podium approve {approval_id}`")
        self.awaited = Awaited(approval_id=approval_id, approval_deadline=deadline)


async def approved_step(
    desk: Desk, name: str, work: Callable[[Step], Awaitable[Any]], *, index: int, returns: Any
) -> Any:
    """A step that is done again, under a name of its own, once what it waits for is answered."""
    for attempt in count():

        async def unless_awaited(step: Step) -> Any:
            try:
                return await work(step)
            except AwaitsApproval as waits:
                desk.ctx.note(NoteTaken(text=str(waits)))
                return waits.awaited

        found = await desk.ctx.step(
            f"{name}:asked{attempt}" if attempt else name,
            unless_awaited,
            index=index,
            returns=returns | Awaited,
        )
        if not isinstance(found, Awaited):
            return found
        signal = f"approval:{found.approval_id}"
        await desk.ctx.wait(signal, index=attempt, until=found.approval_deadline)
    raise AssertionError("attempts are counted without end")


async def ask_a_person(desk: Desk, name: str, reason: str) -> None:
    """Stop until somebody has looked and resumed the run; what they say goes into the next prompt."""
    desk.trip.stuck += 1
    how = (
        f'; look at it, then `podium resume {desk.trip.run_id} --note "…"` goes on with your words'
    )
    signal = await desk.ctx.ask_person(name, f"{reason}{how}", index=desk.trip.stuck)
    said = signal.payload
    if isinstance(said, str) and said.strip():
        desk.trip.guidance.append(said.strip())

"""Continuation of a run after the answer of a person: by which process, or by which command."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING

from podium.app.run_list import INTERRUPTED, list_by_status
from podium.core.ids import short_id
from podium.core.model import FrozenModel
from podium.core.work import MACHINE, Run, RunStatus, WorkerHeartbeat
from podium.ports import Engine, Store, StoreView

if TYPE_CHECKING:
    from podium.core.approvals import Approval

MAX_LEFT = 100
"""Answered runs that are looked at to tell who was left alone."""
MAX_NAMES = 5
"""Names of missing things that are listed."""


class Continuation(FrozenModel):
    """Continuation of an answered run."""

    hosted: bool = False
    """A process alive hosts it now."""
    continues: bool = False
    """It goes on by itself: it is hosted, or a worker alive takes it up."""
    ended: bool = False
    next: str = ""
    """Next step for a person, with the command; empty when it continues by itself, or not at all."""

    @property
    def sentence(self) -> str:
        """The same as a sentence, for whoever just answered."""
        if self.next:
            return f"{self.next[0].upper()}{self.next[1:]}."
        if self.ended:
            return "Its run has ended, so the answer has no effect."
        return "Its run continues." if self.continues else ""


async def how_it_continues(
    store: Store, engine: Callable[[], Awaitable[Engine]], approval: Approval
) -> Continuation:
    """Say how the run of an approval goes on, as of now. One that still waits for others does not go on yet."""
    # Late: lists of runs load no approvals.
    from podium.core.approvals import ApprovalStatus

    run = await store.read(lambda view: view.run(approval.run_id))
    if run is None or approval.status is ApprovalStatus.PENDING:
        return Continuation()
    if run.status.ended:
        return Continuation(ended=True)
    return continuation_of(run, await living(store, engine))


async def left_alone(
    store: Store, engine: Callable[[], Awaitable[Engine]]
) -> list[tuple[Run, str]]:
    """Runs that were answered and that nobody alive hosts or takes up, each with the words for a person."""
    answered = await store.read(_answered)
    if not answered:
        return []
    alive = await living(store, engine)
    goes_on = [(run, continuation_of(run, alive).next) for run in answered[:MAX_LEFT]]
    return [(run, text) for run, text in goes_on if text]


async def resumable(store: Store, engine: Callable[[], Awaitable[Engine]]) -> list[Run]:
    """Runs that nobody hosts and that `resume` continues, newest first.

    These were interrupted, need a person or have their answer. Without any: those that still wait for one.
    """
    stopped = await list_by_status(
        store, engine, (INTERRUPTED, RunStatus.NEEDS_HUMAN), limit=MAX_LEFT
    )
    ready = [listing.run for listing in stopped if not listing.hosted]
    ready += [run for run, _ in await left_alone(store, engine)]
    if not ready:
        waiting = await list_by_status(store, engine, (RunStatus.WAITING,), limit=MAX_LEFT)
        ready = [listing.run for listing in waiting if not listing.hosted]
    return sorted({run.id: run for run in ready}.values(), key=lambda run: run.id, reverse=True)


async def living(store: Store, engine: Callable[[], Awaitable[Engine]]) -> list[WorkerHeartbeat]:
    """The processes alive that host runs."""
    alive = await (await engine()).alive()
    return [heartbeat for heartbeat in await store.read(_heartbeats) if heartbeat.id in alive]


def continuation_of(run: Run, alive: Sequence[WorkerHeartbeat]) -> Continuation:
    """Say how an answered run goes on among these processes."""
    if any(heartbeat.id == run.owner for heartbeat in alive):
        return Continuation(hosted=True, continues=True)
    short = short_id(run.id)
    if run.status is RunStatus.NEEDS_HUMAN:
        return Continuation(
            next=f"run {short} needs a person; continue it with `podium resume {short}`"
        )
    if run.queue is not None:
        if any(heartbeat.serves(run) for heartbeat in alive):
            return Continuation(continues=True)
        return Continuation(
            next=f"no worker is running for queue {run.queue!r}; continue run {short} with "
            f"`podium worker --queue {run.queue}`, or here with `podium resume {short}`"
        )
    if run.status is RunStatus.WAITING and any(heartbeat.takes_up(run) for heartbeat in alive):
        return Continuation(continues=True)
    return Continuation(next=_resume_text(run, alive))


def _resume_text(run: Run, alive: Sequence[WorkerHeartbeat]) -> str:
    short = short_id(run.id)
    lacking = [heartbeat.lacks(run) for heartbeat in alive if heartbeat.answered_queue]
    named = [_named(need) for need in min(lacking, key=len, default=[])][:MAX_NAMES]
    why = f" with {', '.join(named)}" if named else ""
    return f"no process{why} hosts run {short}; continue it with `podium resume {short}`"


def _named(need: str) -> str:
    kind, _, name = need.partition(":")
    return f"machine {name}" if need.startswith(MACHINE) else f"{kind} {name}"


def _answered(view: StoreView) -> list[Run]:
    runs = view.answered_waits()
    return [run for run in runs if run.awaits(name for _, name in view.untaken_signals([run.id]))]


def _heartbeats(view: StoreView) -> list[WorkerHeartbeat]:
    return view.workers()

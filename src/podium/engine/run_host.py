"""`RunHost`: one run in this process, from its first step to its end or to where it is released."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from enum import Enum, auto
from typing import Any

from podium.core.errors import (
    BadInput,
    BudgetSpent,
    FlowChanged,
    LeaseLost,
    NeedsHuman,
    Passing,
    StoreFull,
    StoreUnusable,
)
from podium.core.events import (
    EventBody,
    FlowCodeChanged,
    RunCancelled,
    RunFailed,
    RunNeededHuman,
    RunParked,
    RunSucceeded,
)
from podium.core.work import Run, RunStatus
from podium.engine.definition import RegisteredFlow, encode
from podium.engine.ownership import signal_parents
from podium.engine.run_context import RunContext, failure_of
from podium.engine.run_hold import RunHold
from podium.ports import Ids, Store, Transaction

MAX_SETBACKS = 6
"""So often in a row a queue's run may be let go of by passing errors before a person is asked."""

MAX_WAIT = timedelta(days=31)
MAX_PAUSE_SECONDS = 60.0

_SPINS = 5
"""Turns of the event loop that a branch between two waits needs at most."""


class StopReason(Enum):
    """Reasons for ending a body from outside."""

    CANCELLED = auto()
    UNLOADED = auto()
    LET_GO = auto()
    ABANDONED = auto()


class RunHost:
    """Runs a flow's body and writes how it ended. One per claim."""

    def __init__(
        self,
        hold: RunHold,
        flow: RegisteredFlow,
        store: Store,
        ids: Ids,
        *,
        after: asyncio.Task[None] | None = None,
    ) -> None:
        """Nothing is done before `after` has ended: an older body of the same run."""
        self.hold = hold
        self._after = after
        self._flow = flow
        self._store = store
        self._ids = ids
        self._stop: StopReason | None = None
        self.task = asyncio.create_task(self._run(), name=f"podium {hold.run.id}")

    @property
    def run_id(self) -> str:
        return self.hold.run.id

    def stop(self, why: StopReason) -> None:
        """End the body. The first reason given is the one that counts."""
        if self._stop is None:
            self._stop = why
            self.hold.stopping = True
            self.task.cancel()

    async def rest(self, also_when_waiting: bool) -> None:
        """Return when the run is hosted no more or needs a person, or also when all of it waits."""
        stops = [self.hold.asked_person.wait()]
        if also_when_waiting:
            stops.append(self.hold.marked_waiting.wait())
        marked = {asyncio.ensure_future(stop) for stop in stops}
        try:
            await asyncio.wait({self.task, *marked}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in marked:
                task.cancel()

    async def _run(self) -> None:
        body = asyncio.ensure_future(self._body())
        idle = asyncio.ensure_future(self._watch_for_quiet(body))
        try:
            while not body.done():
                try:
                    await asyncio.wait((body,))
                except asyncio.CancelledError:
                    body.cancel()
            await self._end_what_is_left(body)
            await self._end_on_a_full_disk(body)
        except LeaseLost:
            # Another process owns the run and writes its story from here on.
            return
        finally:
            idle.cancel()
            await asyncio.gather(idle, return_exceptions=True)

    async def _end_what_is_left(self, body: asyncio.Future[Any]) -> None:
        """End branches that are still in a step: nothing may act for a run that has ended."""
        branches = [task for task in self.hold.at_work if task is not body]
        for task in branches:
            task.cancel()
        await asyncio.gather(*branches, return_exceptions=True)

    async def _body(self) -> Any:
        if self._after is not None:
            await asyncio.wait((self._after,))
        recorded = await self._store.read(lambda view: view.steps(self.run_id))
        run = self.hold.run
        if run.code_digest != self._flow.code_digest and run.fence > 1:
            self.hold.note(
                FlowCodeChanged(recorded=run.code_digest, current=self._flow.code_digest)
            )
        context = RunContext(self.hold, recorded)
        result = await self._flow.body(context, self._flow.read_input(run.input))
        if context.unvisited:
            missed = ", ".join(sorted(context.unvisited))
            raise FlowChanged(
                f"the flow's code ended without requesting the recorded steps {missed}; "
                "resume it with the code that started it"
            )
        return encode("result", result, None)

    async def _watch_for_quiet(self, body: asyncio.Future[Any]) -> None:
        """Mark the run as waiting when all of it waits; a queue's run gives its place up then."""
        while True:
            await self.hold.quiet.wait()
            for _ in range(_SPINS):
                await asyncio.sleep(0)
            if not self.hold.quiet.is_set():
                continue
            self.hold.stirred.clear()
            try:
                await self.hold.write(self.hold.record_waiting)
                self.hold.marked_waiting.set()
                if any(wait.reason for wait in self.hold.waits):
                    self.hold.asked_person.set()
            except LeaseLost:
                body.cancel()
                return
            if self.hold.run.queue is not None and self.hold.quiet.is_set():
                self.stop(StopReason.UNLOADED)
                return
            await self.hold.stirred.wait()

    async def _end_on_a_full_disk(self, body: asyncio.Future[Any]) -> None:
        """Write the end, in space that is kept back for it where there is no other."""
        while True:
            try:
                return await self._end(body)
            except StoreFull:
                if not self._store.release_reserve():
                    raise

    async def _end(self, body: asyncio.Future[Any]) -> None:
        if self._stop is StopReason.ABANDONED:
            body.cancelled() or body.exception()
            return
        if body.cancelled():
            await self._write_stop()
            return
        error = body.exception()
        if error is None:
            result = body.result()
            try:
                await self._close(RunStatus.SUCCEEDED, RunSucceeded(result=result), result=result)
            except BadInput as problem:
                # More than a record may hold: the run must not stand as running for ever.
                await self._fail(problem)
        elif isinstance(error, LeaseLost):
            return
        elif isinstance(error, NeedsHuman | FlowChanged | BudgetSpent):
            failure = failure_of(error)
            event = RunNeededHuman(reason=failure.message)
            await self._close(RunStatus.NEEDS_HUMAN, event, failure=failure)
        elif isinstance(error, Passing | StoreUnusable):
            await self.hold.write(lambda tx: self._set_back(tx, error))
        else:
            await self._fail(error)

    async def _fail(self, error: BaseException) -> None:
        failure = failure_of(error)
        await self._close(RunStatus.FAILED, RunFailed(failure=failure), failure=failure)

    async def _write_stop(self) -> None:
        if self._stop is StopReason.CANCELLED:
            await self._close(RunStatus.CANCELLED, RunCancelled())
        elif self._stop is StopReason.UNLOADED:
            await self.hold.write(self._unload)
        else:
            await self.hold.write(lambda tx: self._let_go(tx, "its process let go of it"))

    async def _close(self, status: RunStatus, event: EventBody, **changes: Any) -> None:
        def close(tx: Transaction) -> None:
            run = self.hold.stored(tx)
            ended = run.model_copy(
                update={
                    "status": status,
                    "owner": None,
                    "waiting_for": None,
                    "wake_at": None,
                    "failure": None,
                    "finished_at": self.hold.clock.now() if status.ended else None,
                    **changes,
                }
            )
            tx.save_run(ended)
            tx.append(self.run_id, event)
            if status.ended:
                tx.drop_signals(self.run_id)
            signal_parents(tx, ended, self._ids)

        await self._store.write(close)

    def _unload(self, tx: Transaction) -> None:
        """Leave a queue's waiting run to whoever claims it when its signal comes."""
        run = self.hold.stored(tx)
        if self._ended_instead(tx, run):
            return
        names = (run.waiting_for or "").split(", ")
        called = any(signal.name in names for signal in tx.signals(self.run_id))
        # Its last wait may have ended while it was stopped: then nothing else would have it claimed again.
        is_runnable = called or run.status is RunStatus.RUNNING
        status = RunStatus.QUEUED if is_runnable else run.status
        tx.save_run(run.model_copy(update={"owner": None, "status": status}))

    def _set_back(self, tx: Transaction, error: Passing | StoreUnusable) -> None:
        """Let go of the run after an error that passes by itself; of a queue's run for a while.

        Without a finished step in between, the pauses grow and a person is asked in the end: an
        agent that is never there must not be asked for ever.
        """
        run = self.hold.stored(tx)
        if self._ended_instead(tx, run):
            return
        steps = len(tx.steps(self.run_id))
        setbacks = run.setbacks + 1 if steps == run.setback_steps else 1
        counted = run.model_copy(update={"setbacks": setbacks, "setback_steps": steps})
        if run.queue is None:
            tx.save_run(counted)
            self._let_go(tx, str(error))
            return
        if setbacks >= MAX_SETBACKS:
            failure = failure_of(error)
            update = {"status": RunStatus.NEEDS_HUMAN, "owner": None, "failure": failure}
            tx.save_run(counted.model_copy(update=update))
            reason = f"tried {setbacks} times without progress: {failure.message}"
            tx.append(self.run_id, RunNeededHuman(reason=reason))
            return
        pause = timedelta(seconds=min(2.0 ** (setbacks - 1), MAX_PAUSE_SECONDS))
        retry_at = error.retry_at if isinstance(error, Passing) else None
        now = self.hold.clock.now()
        # What a provider says may be in the past, or beyond all reason.
        later = min(max(retry_at or now, now + pause), now + MAX_WAIT)
        tx.save_run(
            counted.model_copy(
                update={"status": RunStatus.QUEUED, "owner": None, "not_before": later}
            )
        )
        tx.append(self.run_id, RunParked(reason=f"{error}; next attempt at {later.isoformat()}"))

    def _ended_instead(self, tx: Transaction, run: Run) -> bool:
        """End a run that somebody wished ended while it was about to be left: nobody would look at it again."""
        if not run.cancel_requested:
            return False
        update = {
            "status": RunStatus.CANCELLED,
            "owner": None,
            "finished_at": self.hold.clock.now(),
        }
        ended = run.model_copy(update=update)
        tx.save_run(ended)
        tx.append(self.run_id, RunCancelled())
        tx.drop_signals(self.run_id)
        signal_parents(tx, ended, self._ids)
        return True

    def _let_go(self, tx: Transaction, reason: str) -> None:
        run = self.hold.stored(tx)
        status = run.status
        if run.queue is not None and status is RunStatus.RUNNING:
            status = RunStatus.QUEUED
        tx.save_run(run.model_copy(update={"owner": None, "status": status}))
        tx.append(self.run_id, RunParked(reason=reason))

"""`RunContext`: the steps, waits and signals that a flow's body works with."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any, TypeVar, cast

from podium.core.approval_steps import store_expired
from podium.core.decisions import ApprovalStatus
from podium.core.errors import (
    NO_SPACE,
    BadInput,
    BudgetSpent,
    FlowChanged,
    NeedsHuman,
    Passing,
    PodiumError,
    StepFailed,
    StoreFull,
)
from podium.core.events import (
    ChildStarted,
    EventBody,
    RunPinned,
    SignalReceived,
    StepBroke,
    StepCompleted,
    StepStarted,
    WaitExpired,
)
from podium.core.model import FrozenModel, Json
from podium.core.work import APPROVAL_SIGNAL, TIMER, Failure, Run, Signal, StepRecord, StepStatus
from podium.engine.definition import decode, encode
from podium.engine.ownership import follow, queued_event
from podium.engine.run_hold import RunHold
from podium.ports import ONCE, Checkpoint, Retry, StepFunction, Transaction

T = TypeVar("T")

WithStep = Callable[[Transaction], None]

_SPINS = 200
"""Turns of the event loop without progress after which a replay has gone as far as it can.

A branch that starts tasks within tasks needs one or two for each; this is a millisecond in all.
"""

MAX_MESSAGE = 20_000
"""Characters that are kept of what an error says: some quote all they were given."""


class StepHandle:
    """The step a function runs in."""

    def __init__(self, context: RunContext, key: str, began: datetime, attempt: int) -> None:
        self._context = context
        self.began = began
        self.attempt = attempt
        self.key = key
        self.record: StepRecord | None = None
        """The step's record, when the step's own transaction has written it already."""

    @property
    def run_id(self) -> str:
        return self._context.run.id

    @property
    def idempotency_key(self) -> str:
        return f"{self.run_id}:{self.key}"

    @property
    def checkpoint(self) -> Checkpoint:
        return self._write

    def _write(self, tx: Transaction, came_out: FrozenModel) -> None:
        output = came_out.model_dump(mode="json")
        tx.guard(self.run_id, self._context.run.fence)
        self.record = self._context.record(tx, self.key, output, self.began, attempts=self.attempt)


class RunContext:
    """One run's memory: recorded steps are given back, new ones are done and recorded."""

    def __init__(self, hold: RunHold, recorded: list[StepRecord]) -> None:
        self._hold = hold
        self._recorded = {record.key: record for record in recorded}
        self._unvisited = {
            record.key for record in recorded if record.status is not StepStatus.WAITING
        }
        self._asked: set[str] = set()
        self._unasked = set(self._recorded)
        self._ordinal = max((record.ordinal for record in recorded), default=0)

    @property
    def run(self) -> Run:
        return self._hold.run

    @property
    def unvisited(self) -> set[str]:
        """Recorded steps the body has not asked for yet."""
        return self._unvisited

    async def step(
        self,
        name: str,
        function: StepFunction[T],
        *,
        index: int = 0,
        returns: Any = None,
        retry: Retry = ONCE,
    ) -> T:
        key = self._ask(name, index)
        recorded = self._remembered(key)
        if recorded is None:
            await self._at_the_end_of_the_record(key)
            with self._hold:
                recorded = await self._attempt(key, function, returns, retry)
        return cast(T, decode(recorded.output, returns))

    async def wait(
        self,
        signal: str,
        *,
        index: int = 0,
        seconds: float | None = None,
        until: datetime | None = None,
    ) -> Signal | None:
        key = self._ask(f"wait:{signal}", index)
        recorded = self._remembered(key)
        if recorded is None:
            if key not in self._recorded:
                await self._at_the_end_of_the_record(key)
            recorded = await self._wait_for(key, signal, self._deadline(key, seconds, until))
        return None if recorded.output is None else Signal.model_validate(recorded.output)

    async def ask_person(self, name: str, reason: str, *, index: int = 0) -> Signal:
        signal = f"guidance:{name}"
        key = self._ask(f"wait:{signal}", index)
        recorded = self._remembered(key)
        if recorded is None:
            if key not in self._recorded:
                await self._at_the_end_of_the_record(key)
            recorded = await self._wait_for(key, signal, None, reason)
        return Signal.model_validate(recorded.output)

    async def sleep(self, name: str, *, index: int = 0, seconds: float) -> None:
        await self.wait(f"{TIMER}{name}", index=index, seconds=seconds)

    async def now(self, name: str, *, index: int = 0) -> datetime:
        async def look(step: Any) -> datetime:
            return self._hold.clock.now()

        return await self.step(f"now:{name}", look, index=index, returns=datetime)

    async def pin(self) -> None:
        self._hold.check_cancelled()
        host = self._hold.host
        if self.run.pinned_to == host:
            return

        def keep(tx: Transaction) -> None:
            tx.save_run(self._hold.stored(tx).model_copy(update={"pinned_to": host}))
            tx.append(self.run.id, RunPinned(host=host))

        with self._hold:
            await self._hold.write(keep)

    async def start_child(
        self,
        name: str,
        flow: str,
        input: Json,
        *,
        queue: str,
        index: int = 0,
        priority: int = 0,
        dedup_key: str | None = None,
        task: str = "",
    ) -> str:
        key = self._ask(f"child:{name}", index)
        recorded = self._remembered(key)
        if recorded is not None:
            return str(recorded.output)
        await self._at_the_end_of_the_record(key)
        began = self._hold.clock.now()
        child = self._hold.new_run(
            flow, input, queue=queue, priority=priority, dedup_key=dedup_key, task=task
        )

        def keep(tx: Transaction) -> StepRecord:
            added = tx.add_run(child)
            if added is child:
                tx.append(child.id, queued_event(child))
            else:
                follow(tx, added, self.run.id)
            tx.append(self.run.id, ChildStarted(child_id=added.id, flow=flow))
            return self.record(tx, key, added.id, began, attempts=1)

        with self._hold:
            return str((await self._hold.write(keep)).output)

    async def child(self, run_id: str) -> Run:
        ended = await self.wait(f"child:{run_id}")
        if ended is None:
            raise FlowChanged(f"the wait for child {run_id} was recorded with a deadline")
        return Run.model_validate(ended.payload)

    def note(self, body: EventBody) -> None:
        # Also before a wait that has begun: it was noted then.
        if not self._unasked:
            self._hold.note(body)

    def record(
        self, tx: Transaction, key: str, output: Json, began: datetime, *, attempts: int
    ) -> StepRecord:
        """Write a completed step within the owner's transaction."""
        now = self._hold.clock.now()
        stored = tx.save_step(
            StepRecord(
                run_id=self.run.id,
                key=key,
                status=StepStatus.COMPLETED,
                ordinal=self._next_ordinal(),
                attempts=attempts,
                output=output,
                started_at=began,
                finished_at=now,
            )
        )
        seconds = (now - began).total_seconds()
        tx.append(self.run.id, StepCompleted(step=key, seconds=seconds))
        return stored

    def _ask(self, name: str, index: int) -> str:
        self._hold.check_cancelled()
        key = f"{name}#{index}" if index else name
        if key in self._asked:
            raise FlowChanged(
                f"step {key!r} was requested twice in one run; give each its own index"
            )
        self._asked.add(key)
        self._unasked.discard(key)
        return key

    def _remembered(self, key: str) -> StepRecord | None:
        record = self._recorded.get(key)
        if record is None or record.status is StepStatus.WAITING:
            return None
        self._unvisited.discard(key)
        if record.failure is not None:
            failure = record.failure
            raise StepFailed(key, failure.kind, failure.message, failure.exit_code)
        return record

    async def _at_the_end_of_the_record(self, key: str) -> None:
        """Go on only when the whole record fits: a step that is new must come after all recorded ones.

        Branches that run side by side get the turns they need to reach their own recorded steps.
        """
        spins = 0
        while self._unvisited and spins < _SPINS:
            before = len(self._unvisited)
            await asyncio.sleep(0)
            spins = spins + 1 if len(self._unvisited) == before else 0
        if self._unvisited:
            expected = min(self._unvisited, key=lambda key: self._recorded[key].ordinal)
            raise FlowChanged(
                f"the flow's code requests step {key!r} where the record of {self.run.id} has "
                f"{expected!r}; resume it with the code that started it, or "
                f"`podium retry {self.run.id} --from {expected}`"
            )

    async def _attempt(
        self, key: str, function: StepFunction[Any], returns: Any, retry: Retry
    ) -> StepRecord:
        delay = retry.first_delay_seconds
        for attempt in range(1, retry.attempts + 1):
            began = self._hold.clock.now()
            handle = StepHandle(self, key, began, attempt)
            try:
                output = await self._do(handle, function, returns)
                break
            except Passing as error:
                if attempt == retry.attempts:
                    raise
                failure = failure_of(error)
                self._hold.note(StepBroke(step=key, attempt=attempt, failure=failure, final=False))
            await asyncio.sleep(min(delay, retry.longest_delay_seconds))
            delay *= retry.factor
        # Outside of the tries: what is done is not done again because it could not be written down.
        if handle.record is not None:
            return handle.record
        try:
            return await self._hold.write(
                lambda tx: self.record(tx, key, output, began, attempts=attempt)
            )
        except BadInput as error:
            # More than a record may hold.
            raise await self._failed(key, began, attempt, error) from error

    async def _do(self, handle: StepHandle, function: StepFunction[Any], returns: Any) -> Json:
        """Call the step's function once. A failure that is the step's own is recorded."""
        key, began, attempt = handle.key, handle.began, handle.attempt
        self._hold.note(StepStarted(step=key, attempt=attempt))
        try:
            return encode(key, await function(handle), returns)
        except (Passing, NeedsHuman, BudgetSpent, StoreFull):
            # Nothing about the step itself: it is done when somebody has helped.
            raise
        except Exception as error:
            if isinstance(error, OSError) and error.errno in NO_SPACE:
                raise _disk_full(error) from error
            raise await self._failed(key, began, attempt, error) from error

    async def _failed(
        self, key: str, began: datetime, attempt: int, error: Exception
    ) -> StepFailed:
        """Record that the step failed, and give what its caller is told."""
        failure = failure_of(error)
        await self._hold.write(lambda tx: self._record_failure(tx, key, began, attempt, failure))
        return StepFailed(key, failure.kind, failure.message, failure.exit_code)

    def _record_failure(
        self, tx: Transaction, key: str, began: datetime, attempt: int, failure: Failure
    ) -> None:
        tx.save_step(
            StepRecord(
                run_id=self.run.id,
                key=key,
                status=StepStatus.FAILED,
                ordinal=self._next_ordinal(),
                attempts=attempt,
                failure=failure,
                started_at=began,
                finished_at=self._hold.clock.now(),
            )
        )
        broke = StepBroke(step=key, attempt=attempt, failure=failure, final=True)
        tx.append(self.run.id, broke)

    async def _wait_for(
        self, key: str, signal: str, deadline: datetime | None, reason: str = ""
    ) -> StepRecord:
        began = self._hold.clock.now()
        async with self._hold.waiting(signal, deadline, reason) as turns:
            async for _ in turns:
                with self._hold:
                    stored = await self._hold.write(
                        lambda tx: self._take(tx, key, signal, began, deadline)
                    )
                if stored.status is StepStatus.COMPLETED:
                    return stored
                self._recorded[key] = stored
        raise AssertionError("turns end only by cancellation")

    def _take(
        self, tx: Transaction, key: str, signal: str, began: datetime, deadline: datetime | None
    ) -> StepRecord:
        """Complete the wait if its signal is there, its time is up or nobody can answer; else keep that it waits."""
        taken = tx.take_signal(self.run.id, signal)
        # The store's time, which all hosts share: one whose clock is behind would never see it come.
        now = tx.now()
        expired = taken is None and (
            (deadline is not None and self._is_over(deadline, now)) or _is_closed(tx, signal)
        )
        waiting = taken is None and not expired
        recorded = self._recorded.get(key)
        if waiting and recorded is not None:
            return recorded
        record = StepRecord(
            run_id=self.run.id,
            key=key,
            status=StepStatus.WAITING if waiting else StepStatus.COMPLETED,
            ordinal=self._next_ordinal(),
            output=None if taken is None else taken.model_dump(mode="json"),
            started_at=began,
            finished_at=None if waiting else now,
            deadline=deadline,
        )
        if taken is not None:
            tx.append(self.run.id, SignalReceived(name=signal, step=key))
        elif expired:
            tx.append(self.run.id, WaitExpired(name=signal, step=key))
            self._expire_approval(tx, signal)
        if not waiting:
            self._hold.record_running(tx)
        return tx.save_step(record)

    def _is_over(self, deadline: datetime, now: datetime) -> bool:
        self._hold.deadlines.watch(deadline, now)
        return self._hold.deadlines.passed(deadline, now)

    def _expire_approval(self, tx: Transaction, signal: str) -> None:
        """Expire the approval with the wait for it: by a clock that was set back it would still be open."""
        if not signal.startswith(APPROVAL_SIGNAL):
            return
        if (approval := tx.approval(signal.removeprefix(APPROVAL_SIGNAL))) is not None:
            store_expired(tx, approval, approval.deadline)

    def _deadline(self, key: str, seconds: float | None, until: datetime | None) -> datetime | None:
        recorded = self._recorded.get(key)
        if recorded is not None:
            return recorded.deadline
        if until is not None:
            return until
        return None if seconds is None else self._hold.clock.now() + timedelta(seconds=seconds)

    def _next_ordinal(self) -> int:
        self._ordinal += 1
        return self._ordinal


def _is_closed(tx: Transaction, signal: str) -> bool:
    """Tell whether what is waited for is an approval that takes no answer any more, as one whose run had ended."""
    if not signal.startswith(APPROVAL_SIGNAL):
        return False
    approval = tx.approval(signal.removeprefix(APPROVAL_SIGNAL))
    return approval is not None and approval.status in _CLOSED


_CLOSED = (ApprovalStatus.EXPIRED, ApprovalStatus.REJECTED, ApprovalStatus.CONSUMED)


def _disk_full(error: OSError) -> StoreFull:
    where = str(error.filename or "a file of this run")
    return StoreFull(where, "the disk is full", "free space there and resume the run")


def failure_of(error: BaseException) -> Failure:
    """An error as it is kept."""
    text = str(error)
    message = text if len(text) <= MAX_MESSAGE else f"{text[:MAX_MESSAGE]}…"
    if isinstance(error, StepFailed):
        return Failure(kind=error.kind, message=message, exit_code=error.exit_code)
    code = error.exit_code if isinstance(error, PodiumError) else 1
    return Failure(kind=type(error).__name__, message=message, exit_code=code)

"""A whole store in memory: its transactions work on a copy of the tables that replaces them on commit."""

from __future__ import annotations

import asyncio
import json
import threading
from collections import deque
from collections.abc import AsyncIterator, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TypeVar

from podium.core.decisions import Approval, CallRecord, CallStatus, Receipt, digest_of
from podium.core.errors import BadInput, LeaseLost, NotPossibleNow
from podium.core.events import Event, EventBody, read_body
from podium.core.ids import short_id
from podium.core.model import FrozenModel, json_of
from podium.core.record_limits import refuse_heavy, refuse_long_key, refuse_long_keys
from podium.core.work import (
    QueueSpec,
    Run,
    RunStatus,
    Schedule,
    Signal,
    StepRecord,
    WorkerHeartbeat,
)
from podium.ports import Clock, EventQuery, Store, StoreView, Transaction
from podium.testing.clock import FixedClock
from podium.testing.memory_view import MemoryView, Tables

N = TypeVar("N", bound=FrozenModel)

_UNSETTLED = (CallStatus.REQUESTED, CallStatus.IN_DOUBT)

Clean = Callable[[str], str]
"""Takes a JSON text and gives it back without secrets."""


class MemoryTx(MemoryView):
    """A transaction at one moment. It belongs to whoever made the tables; nothing is shared until then."""

    def __init__(self, tables: Tables, now: datetime, clean: Clean) -> None:
        super().__init__(tables, now)
        self._clean = clean

    def append(self, run_id: str, body: EventBody) -> int:
        text = json_of(body)
        refuse_heavy(body, text)
        seq = self.last_seq(run_id) + 1
        self._tables.last_seqs[run_id] = seq
        self._tables.last_position += 1
        self._tables.events.append(
            Event(
                run_id=run_id,
                seq=seq,
                position=self.last_position(),
                at=self._now,
                body=read_body(json.loads(self._clean(text))),
            )
        )
        return seq

    def add_run(self, run: Run) -> Run:
        twin = self._unfinished_twin(run)
        if twin is not None:
            return twin.model_copy(deep=True)
        self._tables.runs[run.id] = self._stored(run)
        return run

    def save_run(self, run: Run) -> None:
        # What was let in can also be claimed and ended; a result is new.
        self._tables.runs[run.id] = self._stored(run) if run.result is not None else self._copy(run)

    def drop_runs(self, run_ids: Sequence[str]) -> None:
        for run_id in run_ids:
            run = self.run(run_id)
            if run is not None and not run.status.ended:
                raise NotPossibleNow(
                    f"run {run_id!r} is {run.status} and cannot be deleted; "
                    f"end it with `podium cancel {short_id(run_id)}`"
                )
        tables, gone = self._tables, set(run_ids)
        tables.events = [event for event in tables.events if event.run_id not in gone]
        tables.signals = [signal for signal in tables.signals if signal.run_id not in gone]
        tables.steps = {key: step for key, step in tables.steps.items() if key[0] not in gone}
        tables.calls = {key: call for key, call in tables.calls.items() if call.run_id not in gone}
        for run_id in gone:
            tables.runs.pop(run_id, None)
            tables.last_seqs.pop(run_id, None)

    def guard(self, run_id: str, fence: int) -> None:
        run = self.run(run_id)
        if run is None or run.owner is None or run.fence != fence:
            raise LeaseLost(run_id)

    def claim(
        self, worker_id: str, queue: QueueSpec, flows: Sequence[str], now: datetime
    ) -> Run | None:
        if self._is_full(queue, now):
            return None
        ready = [run for run in self._of_queue(queue) if _is_ready(run, now) and run.flow in flows]
        if not ready:
            return None
        first = min(ready, key=lambda run: (-run.priority, run.id))
        claimed = first.model_copy(
            update={
                "status": RunStatus.RUNNING,
                "owner": worker_id,
                "fence": first.fence + 1,
                "claimed_at": now,
                "waiting_for": None,
                "wake_at": None,
            }
        )
        self.save_run(claimed)
        return claimed.model_copy(deep=True)

    def save_step(self, step: StepRecord) -> StepRecord:
        stored = self._stored(step)
        self._tables.steps[step.run_id, step.key] = stored
        return stored.model_copy(deep=True)

    def drop_steps(self, run_id: str, keys: Sequence[str]) -> None:
        for key in keys:
            self._tables.steps.pop((run_id, key), None)
        for call in self.calls(run_id):
            if call.step_key in keys and call.status not in _UNSETTLED:
                del self._tables.calls[call.key]

    def add_signal(self, signal: Signal) -> None:
        self._tables.signals.append(self._stored(signal))
        run = self.run(signal.run_id)
        if (
            run is not None
            and run.status is RunStatus.WAITING
            and run.queue is not None
            and run.owner is None
        ):
            self.save_run(run.model_copy(update={"status": RunStatus.QUEUED, "not_before": None}))

    def drop_signals(self, run_id: str) -> None:
        remaining = [signal for signal in self._tables.signals if signal.run_id != run_id]
        self._tables.signals[:] = remaining

    def take_signal(self, run_id: str, name: str) -> Signal | None:
        waiting = self.signals(run_id, name)
        if not waiting:
            return None
        self._tables.signals.remove(waiting[0])
        return waiting[0]

    def save_call(self, call: CallRecord) -> None:
        self._tables.calls[call.key] = self._stored(call)

    def save_approval(self, approval: Approval) -> None:
        self._tables.approvals[approval.id] = self._stored(approval)

    def must_be_able_to_seal(self) -> None:
        """A memory can always."""

    def add_receipt(self, draft: Receipt) -> Receipt:
        last = self.last_receipt(draft.run_id)
        numbered = self._stored(draft).model_copy(
            update={
                "number": last.number + 1 if last else 1,
                "previous": last.seal if last else "",
                "seal": "",
            }
        )
        # Without a key: enough to see a chain in tests, no proof against anybody.
        sealed = numbered.model_copy(update={"seal": digest_of(numbered.model_dump(mode="json"))})
        self._tables.receipts.append(sealed)
        return sealed.model_copy(deep=True)

    def count(self, counter: str, at: datetime, amount: float = 1.0) -> None:
        refuse_long_key("counter", counter)
        self._tables.counts.append((counter, at, amount))

    def save_schedule(self, schedule: Schedule) -> None:
        self._tables.schedules[schedule.name] = self._stored(schedule)

    def drop_schedule(self, name: str) -> None:
        self._tables.schedules.pop(name, None)

    def save_worker(self, heartbeat: WorkerHeartbeat) -> None:
        self._tables.workers[heartbeat.id] = self._stored(heartbeat)

    def drop_worker(self, worker_id: str) -> None:
        self._tables.workers.pop(worker_id, None)

    def _stored(self, model: N) -> N:
        """Validate and copy a model to be stored. Raises `BadInput` if it is too large."""
        refuse_long_keys(model)
        refuse_heavy(model, json_of(model))
        return self._copy(model)

    def _copy(self, model: N) -> N:
        """Copy a model as a database would: through JSON, sharing nothing with the caller."""
        return type(model).model_validate_json(self._clean(json_of(model)))

    def _unfinished_twin(self, run: Run) -> Run | None:
        if run.dedup_key is None:
            return None
        for other in self._tables.runs.values():
            same = (other.queue, other.dedup_key) == (run.queue, run.dedup_key)
            if same and not other.status.ended:
                return other
        return None

    def _of_queue(self, queue: QueueSpec) -> list[Run]:
        return [run for run in self._tables.runs.values() if run.queue == queue.name]

    def _is_full(self, queue: QueueSpec, now: datetime) -> bool:
        runs = self._of_queue(queue)
        running = sum(run.status is RunStatus.RUNNING and run.owner is not None for run in runs)
        window_start = now - timedelta(seconds=queue.rate_seconds)
        started = sum(run.claimed_at is not None and run.claimed_at > window_start for run in runs)
        return (queue.concurrency is not None and running >= queue.concurrency) or (
            queue.rate_limit is not None and started >= queue.rate_limit
        )


def _is_ready(run: Run, now: datetime) -> bool:
    return (
        run.status is RunStatus.QUEUED
        and run.owner is None
        and not run.cancel_requested
        and (run.not_before is None or run.not_before <= now)
    )


T = TypeVar("T")

_NOTES_WAIT_SECONDS = 0.05


class MemoryStore:
    """Keeps every promise of `Store` but the one that needs a disk.

    Work runs in threads of its own, as it would with a database, so that work which touches the
    event loop is found out. `close` it to end them.
    """

    def __init__(
        self,
        clock: Clock | None = None,
        *,
        clean: Clean = str,
        beside: MemoryStore | None = None,
    ) -> None:
        """`clean` removes secrets from the JSON of everything that is written.

        `beside` another store it shares that one's memory, as two processes share a file.
        """
        self._clock = clock if clock is not None else FixedClock()
        self._clean = clean
        self._memory: _Memory = beside._memory if beside is not None else _Memory()
        self._notes: deque[tuple[str, EventBody]] = deque()
        self._writer = ThreadPoolExecutor(1, thread_name_prefix="memory-store-writer")
        self._readers = ThreadPoolExecutor(2, thread_name_prefix="memory-store-reader")
        self._closed = False

    async def write(self, work: Callable[[Transaction], T]) -> T:
        return await self._in_thread(self._writer, lambda: self._transact(work))

    async def read(self, work: Callable[[StoreView], T]) -> T:
        return await self._in_thread(
            self._readers, lambda: work(MemoryView(self._memory.tables, self._clock.now()))
        )

    def require_space(self) -> None:
        """Memory is not what runs out here."""

    def release_reserve(self) -> bool:
        return False

    def note(self, run_id: str, body: EventBody) -> None:
        self._notes.append((run_id, body))
        asyncio.get_running_loop().call_later(_NOTES_WAIT_SECONDS, self._write_notes_soon)

    async def changes(self) -> AsyncIterator[None]:
        listener = _Listener()
        self._memory.listeners.add(listener)
        try:
            while not self._closed:
                yield
                await listener.next_change()
        finally:
            self._memory.listeners.discard(listener)

    async def close(self) -> None:
        if self._closed:
            return
        await self._in_thread(self._writer, self._write_notes)
        self._closed = True
        self._writer.shutdown()
        self._readers.shutdown()
        self._memory.notify_listeners()

    async def _in_thread(self, thread: ThreadPoolExecutor, work: Callable[[], T]) -> T:
        if self._closed:
            raise NotPossibleNow("this store is closed; open a new one")
        return await asyncio.get_running_loop().run_in_executor(thread, work)

    def _transact(self, work: Callable[[Transaction], T]) -> T:
        self._write_notes()
        return self._commit(work)

    def _commit(self, work: Callable[[Transaction], T]) -> T:
        with self._memory.lock:
            tables = self._memory.tables.copy()
            result = work(MemoryTx(tables, self._clock.now(), self._clean))
            self._memory.tables = tables
        self._memory.notify_listeners()
        return result

    def _write_notes(self) -> None:
        # Notes have their own commit, so that work which raises cannot take them along.
        if self._notes:
            self._commit(self._append_notes)

    def _append_notes(self, tx: Transaction) -> None:
        while self._notes:
            # One that cannot be kept must not keep anything else from being written.
            with suppress(BadInput):
                tx.append(*self._notes.popleft())

    def _write_notes_soon(self) -> None:
        if self._notes and not self._closed:
            self._writer.submit(self._write_notes)


class _Listener:
    """Wakes one `changes` loop from a store's thread. Several notifications before it looks are one."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._changed = asyncio.Event()

    def notify(self) -> None:
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._changed.set)

    async def next_change(self) -> None:
        await self._changed.wait()
        self._changed.clear()


@dataclass
class _Memory:
    """Memory shared by several stores."""

    tables: Tables = field(default_factory=Tables)
    lock: threading.Lock = field(default_factory=threading.Lock)
    listeners: set[_Listener] = field(default_factory=set)

    def notify_listeners(self) -> None:
        for listener in tuple(self.listeners):
            listener.notify()


class MemoryJournal:
    """The events alone, of the store it is given or of one of its own."""

    def __init__(self, store: Store | None = None) -> None:
        self.store: Store = store if store is not None else MemoryStore()

    async def append(self, run_id: str, body: EventBody) -> int:
        return await self.store.write(lambda tx: tx.append(run_id, body))

    def note(self, run_id: str, body: EventBody) -> None:
        self.store.note(run_id, body)

    async def read(self, query: EventQuery) -> list[Event]:
        return await self.store.read(lambda view: view.events(query))

    async def follow(self, query: EventQuery) -> AsyncIterator[Event]:
        """`limit` is how many events are read at a time, not where following ends."""
        async for _ in self.store.changes():
            while page := await self.read(query):
                for event in page:
                    yield event
                query = query.model_copy(update={"after_position": page[-1].position})

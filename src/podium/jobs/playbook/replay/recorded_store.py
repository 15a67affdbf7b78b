"""In-memory store of a replay: each appended event is compared with the recording."""

from __future__ import annotations

import asyncio
import json
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from typing import Any, TypeVar, cast

from podium.core.errors import NotPossibleNow
from podium.core.events import EventBody, read_body
from podium.core.model import Json, json_of
from podium.core.work import WorkerHeartbeat
from podium.jobs.playbook.replay.recording import EventDifference, Tape, as_recorded, difference
from podium.ports import StoreView, Transaction
from podium.testing import MemoryStore

T = TypeVar("T")

FROM_OUTSIDE = frozenset(
    {
        "run_queued",
        "run_started",
        "run_unpinned",
        "run_cancel_requested",
        "run_retried",
        "flow_code_changed",
        "signal_sent",
        "tool_resolved",
        "approval_granted",
        "approval_rejected",
    }
)
"""Events of people and other processes. Events of the run wait for them."""


class _NotYet(Exception):
    """An event from outside comes first. The transaction is retried after it."""


class _Overtaken(Exception):
    """The run wanted to record that it waits, and no longer does."""


class _RecordDiffers(Exception):
    def __init__(self, difference: EventDifference) -> None:
        super().__init__()
        self.difference = difference


class ReplayState:
    """Shared state of all processes of a replayed run: the record and the tape."""

    def __init__(
        self,
        tape: Tape,
        memory: MemoryStore,
        clean: Callable[[str], str],
        rebuilt: tuple[str, ...] = (),
    ) -> None:
        """`clean` removes secrets from JSON, as it was done when the trace was written; `rebuilt` are fields
        that may differ."""
        self.rebuilt = rebuilt
        self.tape = tape
        self.memory = memory
        self.clean = clean
        self.lock = asyncio.Lock()

    async def commit(
        self, work: Callable[[Transaction], T], *, again: bool
    ) -> tuple[bool, T | None]:
        """Do the work if its events are the next ones on the tape. False: not now, or never."""

        def held_against_the_tape(tx: Transaction) -> tuple[T, list[dict[str, Json]]]:
            watched = RecordedTx(tx, self, again)
            return work(cast("Transaction", watched)), watched.lines

        try:
            result, lines = await self.memory.write(held_against_the_tape)
        except _NotYet:
            return False, None
        except _Overtaken:
            return True, None
        except _RecordDiffers as differs:
            self.tape.differs(differs.difference)
            return False, None
        self.tape.advance(lines)
        return True, result


class RecordedTx:
    """A transaction that may only append the next events of the tape. Delegates everything else."""

    def __init__(self, inner: Transaction, state: ReplayState, again: bool) -> None:
        self._inner = inner
        self._state = state
        self._again = again
        self.lines: list[dict[str, Json]] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def append(self, run_id: str, body: EventBody) -> int:
        events, position = self._state.tape.events, self._state.tape.position + len(self.lines)
        if position >= len(events):
            raise _NotYet
        expected = events[position]
        if body.type != expected.body.type and expected.body.type in FROM_OUTSIDE:
            raise _NotYet
        if body.type == "run_waiting" != expected.body.type and self._again:
            raise _Overtaken
        data = json.loads(self._state.clean(json_of(body)))
        line = {"run": run_id, "seq": expected.seq, "at": expected.data["at"], **data}
        taken = as_recorded(line, expected.data, body.type)
        mismatch = difference(taken, expected.data)
        if mismatch and not all(field.field in self._state.rebuilt for field in mismatch.fields):
            raise _RecordDiffers(mismatch)
        self.lines.append(taken)
        return self._inner.append(run_id, read_body(_body_of(taken)))


def _body_of(line: dict[str, Json]) -> dict[str, Json]:
    return {name: value for name, value in line.items() if name not in ("run", "seq", "at")}


class RecordedStore:
    """The store of one process of the run. After that process has ended it refuses everything."""

    def __init__(self, state: ReplayState) -> None:
        self._state = state
        self._notes: deque[tuple[str, EventBody]] = deque()
        self._flushing: set[asyncio.Task[None]] = set()
        self._ended = False

    async def write(self, work: Callable[[Transaction], T]) -> T:
        again = False
        while True:
            async with self._state.lock:
                self._refuse_ended()
                if not self._state.tape.is_over and await self._write_notes(again):
                    done, result = await self._state.commit(work, again=again)
                    if done:
                        return cast("T", result)
            again = True
            if not self._ended:
                await self._state.tape.wait_for_change()

    async def read(self, work: Callable[[StoreView], T]) -> T:
        return await self._state.memory.read(work)

    def require_space(self) -> None:
        """Memory is not what runs out here."""

    def release_reserve(self) -> bool:
        return False

    def note(self, run_id: str, body: EventBody) -> None:
        self._notes.append((run_id, body))
        task = asyncio.get_running_loop().create_task(self._flush())
        self._flushing.add(task)
        task.add_done_callback(self._flushing.discard)

    def changes(self) -> AsyncIterator[None]:
        return self._state.memory.changes()

    async def close(self) -> None:
        """Close as if the process was killed: unwritten notes are lost."""
        self._ended = True
        self._notes.clear()
        self._state.tape.wake_waiters()
        await asyncio.gather(*self._flushing, return_exceptions=True)

    async def _write_notes(self, again: bool) -> bool:
        while self._notes:
            run_id, body = self._notes[0]
            done, _ = await self._state.commit(lambda tx: tx.append(run_id, body), again=again)  # noqa: B023 - awaited here
            if not done or self._ended:
                return False
            self._notes.popleft()
        return True

    async def _flush(self) -> None:
        with suppress(NotPossibleNow):
            await self.write(lambda tx: None)

    def _refuse_ended(self) -> None:
        if self._ended:
            raise NotPossibleNow("this process of the replayed run has ended")


class ReplayPresence:
    """Presence of the processes of one replay, in memory."""

    def __init__(self) -> None:
        self.alive: set[str] = set()


class ReplayWorkerPresence:
    """Presence of one process; see `Presence`."""

    def __init__(self, presence: ReplayPresence) -> None:
        self._presence = presence
        self._held = ""

    async def enter(self, worker_id: str) -> None:
        self._held = worker_id
        self._presence.alive.add(worker_id)

    async def leave(self) -> None:
        self._presence.alive.discard(self._held)

    def present(self, view: StoreView, workers: list[WorkerHeartbeat]) -> set[str]:
        return {worker.id for worker in workers} & self._presence.alive

    def is_gone(self, view: StoreView, worker: WorkerHeartbeat | None) -> bool:
        return worker is None or worker.id not in self._presence.alive

    def sweep(self) -> None:
        return

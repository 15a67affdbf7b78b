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
"""Events that people and other processes made. Whatever the run wants to record meanwhile waits for them."""


class _NotYet(Exception):
    """Something from outside came first. The transaction is tried again behind it."""


class _Overtaken(Exception):
    """The run wanted to say that it waits, and by now it does not."""


class _RecordDiffers(Exception):
    def __init__(self, found: EventDifference) -> None:
        super().__init__()
        self.found = found


class ReplayState:
    """What all processes of a replayed run share: the record and the tape."""

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
            self.tape.differs(differs.found)
            return False, None
        self.tape.advance(lines)
        return True, result


class RecordedTx:
    """A transaction that may append nothing but what the tape has next. All else is as beneath."""

    def __init__(self, beneath: Transaction, room: ReplayState, again: bool) -> None:
        self._beneath = beneath
        self._room = room
        self._again = again
        self.lines: list[dict[str, Json]] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._beneath, name)

    def append(self, run_id: str, body: EventBody) -> int:
        events, place = self._room.tape.events, self._room.tape.place + len(self.lines)
        if place >= len(events):
            raise _NotYet
        expected = events[place]
        if body.type != expected.body.type and expected.body.type in FROM_OUTSIDE:
            raise _NotYet
        if body.type == "run_waiting" != expected.body.type and self._again:
            raise _Overtaken
        data = json.loads(self._room.clean(json_of(body)))
        line = {"run": run_id, "seq": expected.seq, "at": expected.data["at"], **data}
        taken = as_recorded(line, expected.data, body.type)
        found = difference(taken, expected.data)
        if found and not all(field.field in self._room.rebuilt for field in found.fields):
            raise _RecordDiffers(found)
        self.lines.append(taken)
        return self._beneath.append(run_id, read_body(_body_of(taken)))


def _body_of(line: dict[str, Json]) -> dict[str, Json]:
    return {name: value for name, value in line.items() if name not in ("run", "seq", "at")}


class RecordedStore:
    """The store as one process of the run sees it. Once that process is ended it refuses everything."""

    def __init__(self, room: ReplayState) -> None:
        self._room = room
        self._notes: deque[tuple[str, EventBody]] = deque()
        self._flushing: set[asyncio.Task[None]] = set()
        self._ended = False

    async def write(self, work: Callable[[Transaction], T]) -> T:
        again = False
        while True:
            async with self._room.lock:
                self._refuse_ended()
                if not self._room.tape.is_over and await self._write_notes(again):
                    done, result = await self._room.commit(work, again=again)
                    if done:
                        return cast("T", result)
            again = True
            if not self._ended:
                await self._room.tape.news()

    async def read(self, work: Callable[[StoreView], T]) -> T:
        return await self._room.memory.read(work)

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
        return self._room.memory.changes()

    async def close(self) -> None:
        """Be the store of a process that was killed: what it had not written is lost."""
        self._ended = True
        self._notes.clear()
        self._room.tape.stir()
        await asyncio.gather(*self._flushing, return_exceptions=True)

    async def _write_notes(self, again: bool) -> bool:
        while self._notes:
            run_id, body = self._notes[0]
            done, _ = await self._room.commit(lambda tx: tx.append(run_id, body), again=again)  # noqa: B023 - awaited here
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


class PresenceMark:
    """The mark of one of them; see `Presence`."""

    def __init__(self, marks: ReplayPresence) -> None:
        self._marks = marks
        self._held = ""

    async def enter(self, worker_id: str) -> None:
        self._held = worker_id
        self._marks.alive.add(worker_id)

    async def leave(self) -> None:
        self._marks.alive.discard(self._held)

    def present(self, view: StoreView, workers: list[WorkerHeartbeat]) -> set[str]:
        return {worker.id for worker in workers} & self._marks.alive

    def is_gone(self, view: StoreView, worker: WorkerHeartbeat | None) -> bool:
        return worker is None or worker.id not in self._marks.alive

    def sweep(self) -> None:
        return

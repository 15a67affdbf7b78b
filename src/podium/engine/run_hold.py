"""`RunHold`: hold of a process on one run, with its fence, its work in progress and its waits."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import TypeVar

from podium.core.errors import LeaseLost
from podium.core.events import EventBody, RunNeededHuman, RunWaiting
from podium.core.model import Json
from podium.core.work import Failure, Run, RunStatus
from podium.engine.deadlines import Deadlines
from podium.ports import Clock, Store, Transaction

T = TypeVar("T")

NewRun = Callable[..., Run]


@dataclass
class Wait:
    """Something a run waits for in this process."""

    signal: str
    deadline: datetime | None
    turn: asyncio.Event
    reason: str = ""
    """The reason why only a person can help; empty for everything else that is waited for."""


class RunHold:
    """Every write of a run's owner goes through here and is refused once another owns the run."""

    def __init__(
        self,
        run: Run,
        store: Store,
        clock: Clock,
        new_run: NewRun,
        deadlines: Deadlines,
        host: str = "",
    ) -> None:
        self.run = run
        self.clock = clock
        self.deadlines = deadlines
        self.host = host
        """This machine's name where runs are pinned to machines."""
        self.stopping = False
        """Set when the body must end: cancelled, unloaded or let go of."""
        self.quiet = asyncio.Event()
        """Set while every branch of the body waits for something."""
        self.stirred = asyncio.Event()
        """Set when that ends."""
        self.marked_waiting = asyncio.Event()
        """Set when it is kept in the store that the whole run waits."""
        self.asked_person = asyncio.Event()
        """Set when it is kept that the run needs a person."""
        self.waits: list[Wait] = []
        self.at_work: Counter[asyncio.Task[object]] = Counter()
        """Tasks of the body that are in the middle of a step."""
        self._store = store
        self._new_run = new_run
        self._busy = 0

    async def write(self, work: Callable[[Transaction], T]) -> T:
        """Write as the run's owner. Raises `LeaseLost` when another process has taken it."""

        def guarded(tx: Transaction) -> T:
            tx.guard(self.run.id, self.run.fence)
            return work(tx)

        return await self._store.write(guarded)

    def stored(self, tx: Transaction) -> Run:
        """The run as it stands now. Raises `LeaseLost` when it is not ours any more."""
        tx.guard(self.run.id, self.run.fence)
        run = tx.run(self.run.id)
        if run is None:
            raise LeaseLost(self.run.id)
        return run

    def note(self, body: EventBody) -> None:
        self._store.note(self.run.id, body)

    def new_run(
        self,
        flow: str,
        input: Json,
        *,
        queue: str,
        priority: int,
        dedup_key: str | None,
        task: str,
    ) -> Run:
        """A child of this run, not stored yet."""
        return self._new_run(
            flow,
            input,
            queue=queue,
            priority=priority,
            dedup_key=dedup_key,
            task=task,
            parent_id=self.run.id,
            settings=self.run.settings,
        )

    def check_cancelled(self) -> None:
        """A body that swallowed its cancellation gets no further than its next step."""
        if self.stopping:
            raise asyncio.CancelledError

    def hear(self, names: set[str]) -> None:
        """These signals are there: let the waits for them look."""
        for wait in self.waits:
            if wait.signal in names:
                wait.turn.set()

    def look_at_the_time(self) -> None:
        """Let the waits look whose deadline has come."""
        now = self.clock.now()
        for wait in self.waits:
            if wait.deadline is not None and self.deadlines.passed(wait.deadline, now):
                wait.turn.set()

    def next_deadline(self) -> datetime | None:
        return min((wait.deadline for wait in self.waits if wait.deadline), default=None)

    def seconds_left(self, now: datetime) -> float | None:
        """Seconds until the first of its waits is over; None when none has a deadline."""
        deadlines = (wait.deadline for wait in self.waits if wait.deadline)
        return min(
            (self.deadlines.seconds_left(deadline, now) for deadline in deadlines), default=None
        )

    def __enter__(self) -> None:
        """While entered, the run is doing something."""
        self._busy += 1
        if (task := asyncio.current_task()) is not None:
            self.at_work[task] += 1
        self._weigh()

    def __exit__(self, *_: object) -> None:
        self._busy -= 1
        if (task := asyncio.current_task()) is not None:
            self.at_work[task] -= 1
            if not self.at_work[task]:
                del self.at_work[task]
        self._weigh()

    @asynccontextmanager
    async def waiting(
        self, signal: str, deadline: datetime | None, reason: str = ""
    ) -> AsyncIterator[AsyncIterator[None]]:
        """While open, the run waits. Gives a turn at once and then whenever there may be news."""
        wait = Wait(signal, deadline, asyncio.Event(), reason)
        wait.turn.set()
        self.waits.append(wait)
        self._weigh()
        try:
            yield _turns(wait.turn)
        finally:
            self.waits.remove(wait)
            self._weigh()

    def record_waiting(self, tx: Transaction) -> None:
        """Keep that the whole run waits, for people to see and for its queue's limits."""
        run = self.stored(tx)
        asking = next((wait for wait in self.waits if wait.reason), None)
        if asking is not None:
            failure = Failure(kind="NeedsHuman", message=asking.reason, exit_code=3)
            update = {"status": RunStatus.NEEDS_HUMAN, "waiting_for": asking.signal}
            tx.save_run(run.model_copy(update={**update, "failure": failure}))
            tx.append(self.run.id, RunNeededHuman(reason=asking.reason))
        else:
            names = ", ".join(wait.signal for wait in self.waits)
            deadline = self.next_deadline()
            update = {"status": RunStatus.WAITING, "waiting_for": names}
            tx.save_run(run.model_copy(update={**update, "wake_at": deadline}))
            tx.append(self.run.id, RunWaiting(signal=names, deadline=deadline))

    def record_running(self, tx: Transaction) -> None:
        """Take that back, within the transaction that ends the wait."""
        run = self.stored(tx)
        if run.status is RunStatus.RUNNING:
            return
        tx.save_run(
            run.model_copy(
                update={
                    "status": RunStatus.RUNNING,
                    "waiting_for": None,
                    "wake_at": None,
                    "failure": None,
                }
            )
        )

    def _weigh(self) -> None:
        if self._busy == 0 and self.waits:
            self.quiet.set()
        else:
            self.quiet.clear()
            self.marked_waiting.clear()
            self.asked_person.clear()
            self.stirred.set()


async def _turns(turn: asyncio.Event) -> AsyncIterator[None]:
    while True:
        await turn.wait()
        turn.clear()
        yield

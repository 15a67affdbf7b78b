"""Store port: events, runs, steps, calls, approvals and receipts changed together; transcripts; presence of other processes."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Collection, Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from typing import TYPE_CHECKING, Protocol, TypeVar

from podium.core.model import FrozenModel
from podium.core.work import RunStatus

if TYPE_CHECKING:
    from podium.core.decisions import (
        Approval,
        ApprovalStatus,
        CallRecord,
        CallStatus,
        Receipt,
        UsageSums,
    )
    from podium.core.events import Event, EventBody
    from podium.core.turns import Turn
    from podium.core.work import (
        QueueCounts,
        QueueSpec,
        Run,
        Schedule,
        Signal,
        StepRecord,
        WorkerHeartbeat,
    )


T = TypeVar("T")


class RunQuery(FrozenModel):
    """A selection of runs, newest first."""

    statuses: tuple[RunStatus, ...] = ()
    flow: str | None = None
    queue: str | None = None
    parent_id: str | None = None
    owner: str | None = None
    text: str = ""
    """Only runs whose task has these words, in whatever case."""
    before_id: str | None = None
    """Only runs older than this one: the next page."""
    from_id: str | None = None
    """Only this run and newer ones."""
    limit: int = 50


class EventQuery(FrozenModel):
    """A selection of events, in the order they were committed."""

    run_id: str | None = None
    types: tuple[str, ...] = ()
    since: datetime | None = None
    until: datetime | None = None
    after_position: int = 0
    after_seq: int = 0
    """With `run_id`: only events behind this one."""
    until_seq: int | None = None
    """With `run_id`: only events up to this one."""
    limit: int = 1000


class StoreView(Protocol):
    """Read access. All answers of one view are of one moment."""

    def now(self) -> datetime:
        """The moment, by the clock that all processes on the store share: leases are measured by it."""
        ...

    def events(self, query: EventQuery) -> list[Event]: ...
    def last_position(self) -> int: ...
    def last_seq(self, run_id: str) -> int: ...

    def run(self, run_id: str) -> Run | None: ...
    def runs(self, query: RunQuery) -> list[Run]: ...
    def run_back(self, run_id: str | None, many: int) -> str | None:
        """The id of the run that is so many runs older than this one, or than all. None: there are fewer."""
        ...

    def find_ids(self, kind: str, text: str) -> list[str]:
        """Whole ids of `run` or `approval` that `text` stands for: the id itself, or a beginning of its tail."""
        ...

    def step(self, run_id: str, key: str) -> StepRecord | None: ...
    def steps(self, run_id: str, *, after: int = -1, limit: int | None = None) -> list[StepRecord]:
        """Steps of a run in the order of their ordinals, behind `after`. No limit: all of them."""
        ...

    def signals(self, run_id: str, name: str | None = None) -> list[Signal]:
        """Signals sent and not yet taken, oldest first."""
        ...

    def call(self, key: str) -> CallRecord | None: ...
    def calls(self, run_id: str, status: CallStatus | None = None) -> list[CallRecord]: ...

    def approval(self, approval_id: str) -> Approval | None: ...
    def approvals(
        self,
        *,
        run_id: str | None = None,
        statuses: Sequence[ApprovalStatus] = (),
        before_id: str | None = None,
        limit: int = 200,
    ) -> list[Approval]:
        """Newest first; with `before_id` only those older than that one: the next page."""
        ...

    def approval_for(self, digest: str, statuses: Sequence[ApprovalStatus]) -> Approval | None:
        """The newest approval of this digest in one of these states."""
        ...

    def receipts(self, run_id: str | None = None) -> list[Receipt]: ...
    def last_receipt(self, run_id: str) -> Receipt | None: ...

    def counted(self, counter: str, since: datetime) -> float:
        """Sum of what was added to a counter since then."""
        ...

    def owners(self) -> set[str]:
        """Workers that own runs of queues, dead or alive."""
        ...

    def untaken_signals(self, run_ids: Collection[str]) -> set[tuple[str, str]]:
        """Run and name of every signal that was sent to one of these runs and not yet taken."""
        ...

    def cancel_wished(self) -> set[str]:
        """Runs that somebody wishes ended and that may be hosted: running, waiting, or in need of a person."""
        ...

    def due_waits(self, now: datetime) -> list[Run]:
        """Waiting runs of queues that nobody hosts and whose deadline has come."""
        ...

    def answered_waits(self) -> list[Run]:
        """Waiting runs of the foreground to which the answer to an approval or news of their pull request were sent,
        and that did not take it."""
        ...

    def due_follow_ups(self, now: datetime) -> list[Run]:
        """Waiting runs of the foreground that are to look at their pull request again by now."""
        ...

    def next_due_at(self) -> datetime | None:
        """The next time when a worker has something to do of itself: a delayed run, a deadline, a schedule."""
        ...

    def tallies(self) -> list[QueueCounts]:
        """Every queue that has runs which have not ended, by name."""
        ...

    def spent(self, since: datetime, after_position: int, limit: int) -> list[UsageSums]:
        """Usage recorded since then and behind a position, in the order it was committed."""
        ...

    def ended_since(self, timestamp: datetime) -> dict[str, int]:
        """Count the runs of each queue that ended then or later; queues without any are left out."""
        ...

    def ended_before(self, timestamp: datetime, limit: int) -> list[str]:
        """Ids of runs that ended before then, oldest first, whose parents and children have ended too."""
        ...

    def schedules(self) -> list[Schedule]: ...
    def workers(self) -> list[WorkerHeartbeat]: ...


class Transaction(StoreView, Protocol):
    """A transaction: reads see its own writes; all of it becomes durable on commit, or none."""

    def append(self, run_id: str, body: EventBody) -> int:
        """Add an event to a run's stream and give its number there. Secrets are removed here."""
        ...

    def add_run(self, run: Run) -> Run:
        """Store a new run. When an unfinished run of its queue has its dedup key, that one is given back instead."""
        ...

    def save_run(self, run: Run) -> None: ...

    def drop_runs(self, run_ids: Sequence[str]) -> None:
        """Forget runs that have ended, with their events, steps, signals and calls.

        Their receipts and approvals stay: what was done can still be proved.
        """
        ...

    def guard(self, run_id: str, fence: int) -> None:
        """Raises `LeaseLost` unless this fence still owns the run."""
        ...

    def claim(
        self, worker_id: str, queue: QueueSpec, flows: Sequence[str], now: datetime
    ) -> Run | None:
        """Take the next run of a queue within its limits: status running, owner set, fence raised."""
        ...

    def save_step(self, step: StepRecord) -> StepRecord:
        """Keep a step's record and give it back as it was kept: without secrets."""
        ...

    def drop_steps(self, run_id: str, keys: Sequence[str]) -> None:
        """Forget steps and the calls made in them, but never a call whose outcome is not known."""
        ...

    def add_signal(self, signal: Signal) -> None:
        """Leave a signal. A waiting run of a queue becomes claimable again."""
        ...

    def drop_signals(self, run_id: str) -> None:
        """Forget what was sent to a run that has ended."""
        ...

    def take_signal(self, run_id: str, name: str) -> Signal | None:
        """Remove and give the oldest signal of that name."""
        ...

    def save_call(self, call: CallRecord) -> None: ...
    def save_approval(self, approval: Approval) -> None: ...

    def must_be_able_to_seal(self) -> None:
        """Raises when no receipt could be sealed, so that nothing is done that cannot be proved."""
        ...

    def add_receipt(self, draft: Receipt) -> Receipt:
        """Number, chain and seal a receipt. `number`, `previous` and `seal` of the draft are ignored."""
        ...

    def count(self, counter: str, at: datetime, amount: float = 1.0) -> None: ...

    def save_schedule(self, schedule: Schedule) -> None: ...
    def drop_schedule(self, name: str) -> None: ...
    def save_worker(self, heartbeat: WorkerHeartbeat) -> None: ...
    def drop_worker(self, worker_id: str) -> None: ...


class Store(Protocol):
    """One database shared by processes. All writing goes through `write`."""

    async def write(self, work: Callable[[Transaction], T]) -> T:
        """Run `work` in one transaction. On return it is durable; when `work` raises nothing is.

        Transactions are serial: whatever one reads no other process changes before it is committed.

        `work` may run in this thread or in another: it must be quick, not block and touch nothing
        but its Tx. It may be run again when the connection to the database was lost before the
        commit, so what it changes elsewhere must not add up.
        """
        ...

    async def read(self, work: Callable[[StoreView], T]) -> T:
        """Run `work` on one consistent view, outside the event loop's thread."""
        ...

    def require_space(self) -> None:
        """Raises `StoreFull` while the disk is full: what could not be recorded must not be begun.

        What is under way is still recorded, in space that was kept back for it.
        """
        ...

    def release_reserve(self) -> bool:
        """Free what is kept back for the ends of runs. False when none of it is left."""
        ...

    def note(self, run_id: str, body: EventBody) -> None:
        """Append an event soon: with the next durable write, or within a tenth of a second.

        For events whose loss in a crash costs nothing, such as `StepStarted`.
        """
        ...

    def changes(self) -> AsyncIterator[None]:
        """Yield at once, and then after commits of this or any other process. Bursts are merged."""
        ...

    async def close(self) -> None:
        """Write what was noted, finish the listeners and close the files."""
        ...


class Journal(Protocol):
    """The events alone: what most rooms need of the store."""

    async def append(self, run_id: str, body: EventBody) -> int:
        """Store the event and give its number in the run. On return it survives a crash."""
        ...

    def note(self, run_id: str, body: EventBody) -> None: ...

    async def read(self, query: EventQuery) -> list[Event]: ...

    def follow(self, query: EventQuery) -> AsyncIterator[Event]:
        """Yield what `query` finds, then every later event as it is committed by any process. Never skips one."""
        ...


class Presence(Protocol):
    """Marks that last exactly as long as the processes that hold them.

    A mark that is gone tells at once that its process is; one that stands tells nothing of a process
    that is stopped, hung or cut off. For that there is the lease.
    """

    async def enter(self, worker_id: str) -> None:
        """Hold a mark under this name. Raises `LockHeld` when another process holds it."""
        ...

    async def leave(self) -> None:
        """Let go of the mark. Harmless when none is held."""
        ...

    def present(self, view: StoreView, workers: list[WorkerHeartbeat]) -> set[str]:
        """Ids of those whose mark stands."""
        ...

    def is_gone(self, view: StoreView, worker: WorkerHeartbeat | None) -> bool:
        """Tell whether a worker's process has ended, and all that it started with it.

        None: it has said goodbye, or never was.
        """
        ...

    def sweep(self) -> None:
        """Clear away what the dead left behind."""
        ...


class Transcript(Protocol):
    """The record of one turn. Secrets are removed when it is written."""

    @property
    def path(self) -> str: ...

    def write(self, line: str) -> None:
        """Keep a line as it came. Beyond the transcript's size lines are counted and dropped."""
        ...


class Transcripts(Protocol):
    """Opens a transcript for each turn."""

    def open(self, turn: Turn, agent: str) -> AbstractContextManager[Transcript]:
        """A new transcript; the prompt is kept beside it. On leaving it is complete."""
        ...

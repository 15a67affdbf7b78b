"""Tables of a `MemoryStore`, and the view that reads them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from copy import copy
from dataclasses import dataclass, field, fields
from datetime import datetime
from typing import TypeVar

from podium.core.decisions import (
    Approval,
    ApprovalStatus,
    CallRecord,
    CallStatus,
    Receipt,
    UsageSums,
)
from podium.core.errors import BadInput
from podium.core.events import Event, UsageRecorded
from podium.core.ids import SHORTEST_TAIL, tail_of
from podium.core.model import FrozenModel
from podium.core.work import (
    APPROVAL_SIGNAL,
    PULL_SIGNAL,
    QueueCounts,
    Run,
    RunStatus,
    Schedule,
    Signal,
    StepRecord,
    WorkerHeartbeat,
)
from podium.ports import EventQuery, RunQuery

N = TypeVar("N", bound=FrozenModel)


@dataclass
class Tables:
    """Everything of one moment. A commit replaces it whole, so a view never changes under its reader."""

    events: list[Event] = field(default_factory=list)
    last_position: int = 0
    """Also when the event that had it is forgotten: a position never comes twice."""
    last_seqs: dict[str, int] = field(default_factory=dict)
    runs: dict[str, Run] = field(default_factory=dict)
    steps: dict[tuple[str, str], StepRecord] = field(default_factory=dict)
    signals: list[Signal] = field(default_factory=list)
    calls: dict[str, CallRecord] = field(default_factory=dict)
    approvals: dict[str, Approval] = field(default_factory=dict)
    receipts: list[Receipt] = field(default_factory=list)
    counts: list[tuple[str, datetime, float]] = field(default_factory=list)
    schedules: dict[str, Schedule] = field(default_factory=dict)
    workers: dict[str, WorkerHeartbeat] = field(default_factory=dict)

    def copy(self) -> Tables:
        return Tables(**{one.name: copy(getattr(self, one.name)) for one in fields(self)})


class MemoryView:
    """Reads one moment's tables. What it gives can be changed without changing the store."""

    def __init__(self, tables: Tables, now: datetime) -> None:
        self._tables = tables
        self._now = now

    def now(self) -> datetime:
        return self._now

    def events(self, query: EventQuery) -> list[Event]:
        events = [event for event in self._tables.events if _fits(event, query)]
        return _fresh(events[: query.limit])

    def last_position(self) -> int:
        return self._tables.last_position

    def last_seq(self, run_id: str) -> int:
        return self._tables.last_seqs.get(run_id, 0)

    def run(self, run_id: str) -> Run | None:
        return _fresh_one(self._tables.runs.get(run_id))

    def runs(self, query: RunQuery) -> list[Run]:
        runs = [run for run in self._tables.runs.values() if _is_asked_for(run, query)]
        runs.sort(key=lambda run: run.id, reverse=True)
        return _fresh(runs[: query.limit])

    def run_back(self, run_id: str | None, many: int) -> str | None:
        older = sorted(other for other in self._tables.runs if run_id is None or other < run_id)
        return older[-many] if len(older) >= many else None

    def find_ids(self, kind: str, text: str) -> list[str]:
        ids: dict[str, Iterable[str]] = {
            "run": self._tables.runs,
            "approval": self._tables.approvals,
        }
        if kind not in ids:
            raise BadInput(f"ids of {kind!r} cannot be looked up; kinds: {', '.join(ids)}")
        if text in ids[kind]:
            return [text]
        beginning = text.rpartition("_")[2].lower()
        if len(beginning) < SHORTEST_TAIL:
            return []
        return sorted(one for one in ids[kind] if tail_of(one).startswith(beginning))

    def step(self, run_id: str, key: str) -> StepRecord | None:
        return _fresh_one(self._tables.steps.get((run_id, key)))

    def steps(self, run_id: str, *, after: int = -1, limit: int | None = None) -> list[StepRecord]:
        steps = [
            step
            for step in self._tables.steps.values()
            if step.run_id == run_id and step.ordinal > after
        ]
        return _fresh(sorted(steps, key=lambda step: step.ordinal)[:limit])

    def signals(self, run_id: str, name: str | None = None) -> list[Signal]:
        return _fresh(
            signal
            for signal in self._tables.signals
            if signal.run_id == run_id and name in (None, signal.name)
        )

    def call(self, key: str) -> CallRecord | None:
        return _fresh_one(self._tables.calls.get(key))

    def calls(self, run_id: str, status: CallStatus | None = None) -> list[CallRecord]:
        calls = [
            call
            for call in self._tables.calls.values()
            if call.run_id == run_id and status in (None, call.status)
        ]
        return _fresh(sorted(calls, key=lambda call: call.requested_at))

    def approval(self, approval_id: str) -> Approval | None:
        return _fresh_one(self._tables.approvals.get(approval_id))

    def approvals(
        self,
        *,
        run_id: str | None = None,
        statuses: Sequence[ApprovalStatus] = (),
        before_id: str | None = None,
        limit: int = 200,
    ) -> list[Approval]:
        approvals = [
            approval
            for approval in self._tables.approvals.values()
            if run_id in (None, approval.run_id)
            and (not statuses or approval.status in statuses)
            and (before_id is None or approval.id < before_id)
        ]
        approvals.sort(key=lambda approval: approval.id, reverse=True)
        return _fresh(approvals[:limit])

    def approval_for(self, digest: str, statuses: Sequence[ApprovalStatus]) -> Approval | None:
        approvals = [
            approval
            for approval in self._tables.approvals.values()
            if approval.digest == digest and approval.status in statuses
        ]
        return _fresh_one(max(approvals, key=lambda approval: approval.id, default=None))

    def receipts(self, run_id: str | None = None) -> list[Receipt]:
        receipts = [one for one in self._tables.receipts if run_id in (None, one.run_id)]
        return _fresh(sorted(receipts, key=lambda one: (one.run_id, one.number)))

    def last_receipt(self, run_id: str) -> Receipt | None:
        return next(iter(self.receipts(run_id)[::-1]), None)

    def counted(self, counter: str, since: datetime) -> float:
        return sum(
            amount for name, at, amount in self._tables.counts if name == counter and at >= since
        )

    def owners(self) -> set[str]:
        held = (RunStatus.RUNNING, RunStatus.WAITING)
        runs = self._tables.runs.values()
        return {run.owner for run in runs if run.queue and run.owner and run.status in held}

    def untaken_signals(self, run_ids: Collection[str]) -> set[tuple[str, str]]:
        signals = self._tables.signals
        return {(one.run_id, one.name) for one in signals if one.run_id in run_ids}

    def cancel_wished(self) -> set[str]:
        stoppable = (RunStatus.RUNNING, RunStatus.WAITING, RunStatus.NEEDS_HUMAN)
        runs = self._tables.runs.values()
        return {run.id for run in runs if run.cancel_requested and run.status in stoppable}

    def due_waits(self, now: datetime) -> list[Run]:
        return _fresh(run for run in self._parked_waits() if run.wake_at and run.wake_at <= now)

    def due_follow_ups(self, now: datetime) -> list[Run]:
        return _fresh(
            run
            for run in self._tables.runs.values()
            if run.queue is None and run.follows_pull_request and run.wake_at and run.wake_at <= now
        )

    def answered_waits(self) -> list[Run]:
        answered = {
            signal.run_id
            for signal in self._tables.signals
            if signal.name.startswith((APPROVAL_SIGNAL, PULL_SIGNAL))
        }
        return _fresh(
            run
            for run in self._tables.runs.values()
            if run.status is RunStatus.WAITING and run.queue is None and run.id in answered
        )

    def next_due_at(self) -> datetime | None:
        runs = self._tables.runs.values()
        times = [
            *(run.not_before for run in runs if run.status is RunStatus.QUEUED),
            *(run.wake_at for run in self._parked_waits()),
            *(one.next_at for one in self._tables.schedules.values() if not one.paused),
        ]
        return min((time for time in times if time is not None), default=None)

    def tallies(self) -> list[QueueCounts]:
        at_work = [run for run in self._tables.runs.values() if run.queue and not run.status.ended]
        queues = sorted({run.queue for run in at_work if run.queue})
        return [
            self._tally(queue, [run for run in at_work if run.queue == queue]) for queue in queues
        ]

    def spent(self, since: datetime, after_position: int, limit: int) -> list[UsageSums]:
        sums = [
            UsageSums(
                event.position,
                event.at,
                self._tables.runs[event.run_id].flow,
                event.body.source,
                event.body.usage.usd,
                event.body.usage.input_tokens + event.body.usage.output_tokens,
                event.body.usage.complete,
            )
            for event in self._tables.events
            if isinstance(event.body, UsageRecorded)
            and event.run_id in self._tables.runs
            and event.position > after_position
            and event.at >= since
        ]
        return sums[:limit]

    def ended_since(self, since: datetime) -> dict[str, int]:
        runs = self._tables.runs.values()
        ended = (run for run in runs if run.finished_at and run.finished_at >= since)
        return dict(Counter(run.queue for run in ended if run.queue))

    def ended_before(self, before: datetime, limit: int) -> list[str]:
        runs = self._tables.runs
        parents = {run.parent_id for run in runs.values() if not run.status.ended}
        ended = [
            (run.finished_at, run.id)
            for run in runs.values()
            if run.status.ended
            and run.finished_at is not None
            and run.finished_at < before
            and run.id not in parents
            and (run.parent_id not in runs or runs[run.parent_id].status.ended)
        ]
        return [run_id for _, run_id in sorted(ended)[:limit]]

    def schedules(self) -> list[Schedule]:
        return _fresh(sorted(self._tables.schedules.values(), key=lambda one: one.name))

    def workers(self) -> list[WorkerHeartbeat]:
        return _fresh(sorted(self._tables.workers.values(), key=lambda one: one.id))

    def _tally(self, queue: str, runs: Sequence[Run]) -> QueueCounts:
        statuses = Counter(self._status(run) for run in runs)
        ready = [run for run in runs if self._status(run) == "queued"]
        oldest = min(ready, key=lambda run: run.id, default=None)
        return QueueCounts(
            queue=queue, oldest_queued_at=oldest.created_at if oldest else None, **statuses
        )

    def _status(self, run: Run) -> str:
        is_queued = run.status is RunStatus.QUEUED
        is_delayed = is_queued and run.not_before is not None and run.not_before > self._now
        return "delayed" if is_delayed else run.status.value

    def _parked_waits(self) -> list[Run]:
        return [
            run
            for run in self._tables.runs.values()
            if run.status is RunStatus.WAITING and run.queue is not None and run.owner is None
        ]


def _fits(event: Event, query: EventQuery) -> bool:
    return (
        event.position > query.after_position
        and query.run_id in (None, event.run_id)
        and (query.run_id is None or event.seq > query.after_seq)
        and (query.run_id is None or query.until_seq is None or event.seq <= query.until_seq)
        and (not query.types or event.body.type in query.types)
        and (query.since is None or event.at >= query.since)
        and (query.until is None or event.at <= query.until)
    )


def _is_asked_for(run: Run, query: RunQuery) -> bool:
    return (
        (not query.statuses or run.status in query.statuses)
        and query.flow in (None, run.flow)
        and query.queue in (None, run.queue)
        and query.parent_id in (None, run.parent_id)
        and query.owner in (None, run.owner)
        and (query.before_id is None or run.id < query.before_id)
        and (query.from_id is None or run.id >= query.from_id)
        and query.text.casefold() in run.task.casefold()
    )


def _fresh(models: Iterable[N]) -> list[N]:
    return [model.model_copy(deep=True) for model in models]


def _fresh_one(model: N | None) -> N | None:
    return model.model_copy(deep=True) if model is not None else None

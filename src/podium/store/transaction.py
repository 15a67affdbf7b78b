"""Transactions: nouns put into the database, all of them or none."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from podium.core.decisions import CallStatus, Receipt
from podium.core.errors import LeaseLost, NotPossibleNow
from podium.core.ids import short_id, tail_of
from podium.core.model import json_of
from podium.core.record_limits import refuse_heavy, refuse_long_key, refuse_long_keys
from podium.core.work import Run, RunStatus, StepRecord
from podium.store.rows import StoreConnection, microseconds, named, portions
from podium.store.view import UNENDED, SqlView

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from podium.core.decisions import Approval, CallRecord
    from podium.core.model import EventBody, FrozenModel
    from podium.core.work import QueueSpec, Schedule, Signal, WorkerHeartbeat
    from podium.store.rows import Report

UNSETTLED = (CallStatus.REQUESTED, CallStatus.IN_DOUBT)
"""Calls nobody may forget: whether they happened is not known."""

Clean = Callable[[str], str]
"""Takes a JSON text and gives it back without secrets."""

Seal = Callable[[Receipt, str, int], Receipt]
"""Numbers, chains and seals a receipt."""

Queued = Callable[[StoreConnection, Run, datetime], None]
"""Told of every run that is stored as queued, within the transaction that stores it."""


class SqlTransaction(SqlView):
    """Writes. Whoever began the transaction commits it or rolls it back."""

    def __init__(
        self,
        connection: StoreConnection,
        now: datetime,
        clean: Clean,
        seal: Seal,
        check_seal: Callable[[], object],
        *,
        report: Report | None = None,
        queued: Queued | None = None,
        last_position: int | None = None,
        last_seqs: Mapping[str, int] | None = None,
    ) -> None:
        """`last_position` is that of the newest event, `last_seqs` those of runs, as far as they are known."""
        super().__init__(connection, now, report)
        self._now = microseconds(now)
        self._clean = clean
        self._seal = seal
        self._check_seal = check_seal
        self._queued = queued
        self._position = last_position
        self._seqs = dict(last_seqs or {})
        self.touched_runs: set[str] = set()
        """Runs whose stream grew, for the listeners."""
        self.new_heads: dict[str, Receipt] = {}
        """The newest receipt of each run, for the anchors."""

    def savepoint(self) -> tuple[int | None, dict[str, int], set[str], dict[str, Receipt]]:
        """State beside the database, for `rewind` after a partial rollback."""
        return self._position, dict(self._seqs), set(self.touched_runs), dict(self.new_heads)

    def rewind(
        self, savepoint: tuple[int | None, dict[str, int], set[str], dict[str, Receipt]]
    ) -> None:
        self._position, self._seqs, self.touched_runs, self.new_heads = savepoint

    def append(self, run_id: str, body: EventBody) -> int:
        text = self._text(body)
        last = self.last_position() if self._position is None else self._position
        self._position = max(last + 1, self._now)
        seq = self._seqs[run_id] if run_id in self._seqs else self.last_seq(run_id)
        self._seqs[run_id] = seq = seq + 1
        self._sql.execute(
            "INSERT INTO events (position, run_id, seq, type, at, body) "
            "VALUES (:position, :run, :seq, :type, :at, :body)",
            {
                "position": self._position,
                "run": run_id,
                "seq": seq,
                "type": body.type,
                "at": self._now,
                "body": text,
            },
        )
        self.touched_runs.add(run_id)
        return seq

    def add_run(self, run: Run) -> Run:
        if run.dedup_key is not None and (same := self._unfinished_twin(run)) is not None:
            return same
        refuse_long_keys(run)
        self._put_run(run, self._text(run))
        return run

    def save_run(self, run: Run) -> None:
        # What was let in can also be claimed and ended; a result is new.
        self._put_run(run, self._text(run) if run.result is not None else self._clean(json_of(run)))

    def _put_run(self, run: Run, body: str) -> None:
        self._sql.execute(
            "INSERT INTO runs (id, tail, flow, status, queue, priority, dedup_key, parent_id, "
            "not_before, claimed_at, wake_at, finished_at, owner, fence, cancel_requested, body) "
            "VALUES (:id, :tail, :flow, :status, :queue, :priority, :dedup_key, :parent_id, "
            ":not_before, :claimed_at, :wake_at, :finished_at, :owner, :fence, :cancel_requested, :body) "
            "ON CONFLICT (id) DO UPDATE SET status = excluded.status, queue = excluded.queue, "
            "priority = excluded.priority, not_before = excluded.not_before, "
            "claimed_at = excluded.claimed_at, wake_at = excluded.wake_at, "
            "finished_at = excluded.finished_at, "
            "owner = excluded.owner, fence = excluded.fence, "
            "cancel_requested = excluded.cancel_requested, body = excluded.body",
            {
                "id": run.id,
                "tail": tail_of(run.id),
                "flow": run.flow,
                "status": run.status,
                "queue": run.queue,
                "priority": run.priority,
                "dedup_key": run.dedup_key,
                "parent_id": run.parent_id,
                "not_before": _maybe(run.not_before),
                "claimed_at": _maybe(run.claimed_at),
                "wake_at": _maybe(run.wake_at),
                "finished_at": _maybe(run.finished_at),
                "owner": run.owner,
                "fence": run.fence,
                "cancel_requested": int(run.cancel_requested),
                "body": body,
            },
        )
        if self._queued is not None and run.queue is not None and run.status is RunStatus.QUEUED:
            self._queued(self._sql, run, self._at)

    def drop_runs(self, run_ids: Sequence[str]) -> None:
        for some in portions(run_ids):
            self._drop_some_runs(some)

    def guard(self, run_id: str, fence: int) -> None:
        row = self._sql.execute("SELECT fence, owner FROM runs WHERE id = :id", {"id": run_id})
        owned = row.fetchone()
        if owned is None or owned[0] != fence or owned[1] is None:
            raise LeaseLost(run_id)

    def claim(
        self, worker_id: str, queue: QueueSpec, flows: Sequence[str], now: datetime
    ) -> Run | None:
        if not flows or not self._has_capacity(queue, now):
            return None
        values: dict[str, Any] = {"queue": queue.name, "now": microseconds(now)}
        run = self._first(
            Run,
            "SELECT id, body FROM runs WHERE queue = :queue AND status = 'queued' "  # noqa: S608
            "AND cancel_requested = 0 AND (not_before IS NULL OR not_before <= :now) "
            f"AND flow IN ({named(values, 'flow', flows)}) "
            "ORDER BY priority DESC, id",
            **values,
        )
        if run is None:
            return None
        claimed = run.model_copy(
            update={
                "status": RunStatus.RUNNING,
                "owner": worker_id,
                "fence": run.fence + 1,
                "claimed_at": now,
                "waiting_for": None,
                "wake_at": None,
            }
        )
        self.save_run(claimed)
        return claimed

    def save_step(self, step: StepRecord) -> StepRecord:
        refuse_long_keys(step)
        text = json_of(step)
        refuse_heavy(step, text)
        cleaned = self._clean(text)
        self._sql.execute(
            "INSERT INTO steps (run_id, key, ordinal, status, body) "
            "VALUES (:run, :key, :ordinal, :status, :body) "
            "ON CONFLICT (run_id, key) DO UPDATE SET ordinal = excluded.ordinal, "
            "status = excluded.status, body = excluded.body",
            {
                "run": step.run_id,
                "key": step.key,
                "ordinal": step.ordinal,
                "status": step.status,
                "body": cleaned,
            },
        )
        return step if cleaned is text else StepRecord.model_validate_json(cleaned)

    def drop_steps(self, run_id: str, keys: Sequence[str]) -> None:
        for key in keys:
            self._sql.execute(
                "DELETE FROM steps WHERE run_id = :run AND key = :key", {"run": run_id, "key": key}
            )
        for call in self.calls(run_id):
            if call.step_key in keys and call.status not in UNSETTLED:
                self._sql.execute("DELETE FROM calls WHERE key = :key", {"key": call.key})

    def add_signal(self, signal: Signal) -> None:
        refuse_long_keys(signal)
        self._sql.execute(
            "INSERT INTO signals (id, run_id, name, body) VALUES (:id, :run, :name, :body)",
            {
                "id": signal.id,
                "run": signal.run_id,
                "name": signal.name,
                "body": self._text(signal),
            },
        )
        run = self.run(signal.run_id)
        if (
            run is not None
            and run.queue is not None
            and run.owner is None
            and run.status is RunStatus.WAITING
        ):
            self.save_run(run.model_copy(update={"status": RunStatus.QUEUED, "not_before": None}))

    def drop_signals(self, run_id: str) -> None:
        self._sql.execute("DELETE FROM signals WHERE run_id = :run", {"run": run_id})

    def take_signal(self, run_id: str, name: str) -> Signal | None:
        waiting = self.signals(run_id, name)
        if not waiting:
            return None
        self._sql.execute(
            "DELETE FROM signals WHERE run_id = :run AND name = :name AND id = :id",
            {"run": run_id, "name": name, "id": waiting[0].id},
        )
        return waiting[0]

    def save_call(self, call: CallRecord) -> None:
        refuse_long_keys(call)
        self._sql.execute(
            "INSERT INTO calls (key, run_id, status, body) VALUES (:key, :run, :status, :body) "
            "ON CONFLICT (key) DO UPDATE SET status = excluded.status, body = excluded.body",
            {
                "key": call.key,
                "run": call.run_id,
                "status": call.status,
                "body": self._text(call),
            },
        )

    def save_approval(self, approval: Approval) -> None:
        refuse_long_keys(approval)
        self._sql.execute(
            "INSERT INTO approvals (id, tail, run_id, digest, status, body) "
            "VALUES (:id, :tail, :run, :digest, :status, :body) "
            "ON CONFLICT (id) DO UPDATE SET status = excluded.status, body = excluded.body",
            {
                "id": approval.id,
                "tail": tail_of(approval.id),
                "run": approval.run_id,
                "digest": approval.digest,
                "status": approval.status,
                "body": self._text(approval),
            },
        )

    def must_be_able_to_seal(self) -> None:
        self._check_seal()

    def add_receipt(self, draft: Receipt) -> Receipt:
        before = self.last_receipt(draft.run_id)
        # What is sealed is what is kept: secrets go first.
        redacted = Receipt.model_validate_json(self._text(draft))
        sealed = self._seal(
            redacted, before.seal if before else "", before.number + 1 if before else 1
        )
        self._sql.execute(
            "INSERT INTO receipts (run_id, number, body) VALUES (:run, :number, :body)",
            {"run": sealed.run_id, "number": sealed.number, "body": json_of(sealed)},
        )
        self.new_heads[sealed.run_id] = sealed
        return sealed

    def count(self, counter: str, at: datetime, amount: float = 1.0) -> None:
        refuse_long_key("counter", counter)
        self._sql.execute(
            "INSERT INTO counters (counter, at, amount) VALUES (:counter, :at, :amount) "
            "ON CONFLICT (counter, at) DO UPDATE SET amount = counters.amount + excluded.amount",
            {"counter": counter, "at": microseconds(at), "amount": amount},
        )

    def save_schedule(self, schedule: Schedule) -> None:
        refuse_long_keys(schedule)
        self._sql.execute(
            "INSERT INTO schedules (name, body) VALUES (:name, :body) "
            "ON CONFLICT (name) DO UPDATE SET body = excluded.body",
            {"name": schedule.name, "body": self._text(schedule)},
        )

    def drop_schedule(self, name: str) -> None:
        self._sql.execute("DELETE FROM schedules WHERE name = :name", {"name": name})

    def save_worker(self, heartbeat: WorkerHeartbeat) -> None:
        refuse_long_keys(heartbeat)
        self._sql.execute(
            "INSERT INTO workers (id, body) VALUES (:id, :body) "
            "ON CONFLICT (id) DO UPDATE SET body = excluded.body",
            {"id": heartbeat.id, "body": heartbeat.model_dump_json()},
        )

    def drop_worker(self, worker_id: str) -> None:
        self._sql.execute("DELETE FROM workers WHERE id = :id", {"id": worker_id})

    def _has_capacity(self, queue: QueueSpec, now: datetime) -> bool:
        if queue.concurrency is not None:
            running = self._sql.execute(
                "SELECT count(*) FROM runs WHERE status = 'running' AND queue = :queue",
                {"queue": queue.name},
            )
            if running.fetchone()[0] >= queue.concurrency:
                return False
        if queue.rate_limit is not None:
            since = microseconds(now - timedelta(seconds=queue.rate_seconds))
            started = self._sql.execute(
                "SELECT count(*) FROM runs WHERE queue = :queue AND claimed_at > :since",
                {"queue": queue.name, "since": since},
            )
            if started.fetchone()[0] >= queue.rate_limit:
                return False
        return True

    def _drop_some_runs(self, run_ids: Sequence[str]) -> None:
        values: dict[str, Any] = {}
        these = named(values, "run", run_ids)
        at_work = self._sql.execute(
            f"SELECT id, status FROM runs WHERE id IN ({these}) AND status IN ({UNENDED})",  # noqa: S608
            values,
        ).fetchone()
        if at_work is not None:
            raise NotPossibleNow(
                f"run {at_work[0]!r} is {at_work[1]} and cannot be deleted; "
                f"end it with `podium cancel {short_id(at_work[0])}`"
            )
        # A position never comes twice, or a follower would miss what comes next: of events at this
        # very moment the newest is left, by which the next one is numbered.
        self._sql.execute(
            f"DELETE FROM events WHERE run_id IN ({these}) "  # noqa: S608
            "AND (position < :now OR position < (SELECT max(position) FROM events))",
            values | {"now": self._now},
        )
        for table in ("steps", "signals", "calls"):
            self._sql.execute(f"DELETE FROM {table} WHERE run_id IN ({these})", values)  # noqa: S608
        self._sql.execute(f"DELETE FROM runs WHERE id IN ({these})", values)  # noqa: S608

    def _unfinished_twin(self, run: Run) -> Run | None:
        return self._one(
            Run,
            "SELECT body FROM runs WHERE dedup_key = :key "
            "AND (queue = :queue OR (queue IS NULL AND :queue IS NULL)) "
            "AND status NOT IN ('succeeded', 'failed', 'cancelled') LIMIT 1",
            key=run.dedup_key,
            queue=run.queue,
        )

    def _text(self, model: FrozenModel) -> str:
        text = json_of(model)
        refuse_heavy(model, text)
        return self._clean(text)


def _maybe(timestamp: datetime | None) -> int | None:
    return None if timestamp is None else microseconds(timestamp)

"""Views and transactions: the store's nouns as rows.

The statements are plain SQL with named parameters, understood by every database the schema is
made for; they go to the driver directly because most of a step's cost would otherwise be spent
in building them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple, Protocol, TypeVar

from pydantic import ValidationError

from podium.domain.errors import LeaseLost
from podium.domain.events import Event, EventBody, lifted, read_body
from podium.domain.gating import (
    Approval,
    ApprovalStatus,
    CallRecord,
    CallStatus,
    Receipt,
    Tier,
)
from podium.domain.ids import SHORTEST_TAIL, tail_of
from podium.domain.model import Noun
from podium.domain.work import (
    QueueSpec,
    Run,
    RunStatus,
    Schedule,
    Signal,
    StepRecord,
    WorkerBeat,
)
from podium.ports import EventQuery, RunQuery

N = TypeVar("N", bound=Noun)

OF_EVERY_STEP = frozenset({"step_started", "step_completed"})
"""Types of events that the index by type leaves out: there are too many of them."""

UNSETTLED = (CallStatus.REQUESTED, CallStatus.IN_DOUBT)
"""Calls nobody may forget: whether they happened is not known."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


class Rows(Protocol):
    """What a driver gives back."""

    def fetchone(self) -> Any: ...
    def fetchall(self) -> list[Any]: ...


class Connection(Protocol):
    """What is needed of a driver."""

    def execute(self, statement: str, parameters: Mapping[str, Any] = ..., /) -> Rows: ...


Clean = Callable[[str], str]
"""Takes a JSON text and gives it back without secrets."""

Seal = Callable[[Receipt, str, int], Receipt]
"""Numbers, chains and seals a receipt."""


class StoredEvent(NamedTuple):
    """An event whose body was not made into an object."""

    run_id: str
    seq: int
    at: int
    body: str

    def line(self) -> dict[str, Any]:
        """As `Event.line` gives it."""
        at = moment_of(self.at).isoformat()
        return {"run": self.run_id, "seq": self.seq, "at": at, **lifted(json.loads(self.body))}


class SqlView:
    """Reads. All answers are of the moment the transaction began."""

    def __init__(self, connection: Connection) -> None:
        self._sql = connection

    def events(self, query: EventQuery) -> list[Event]:
        wanted = ["position > :after"]
        values: dict[str, Any] = {"after": query.after_position, "limit": query.limit}
        if query.run_id is not None:
            wanted.append("run_id = :run AND seq > :seq")
            values |= {"run": query.run_id, "seq": query.after_seq}
        if query.types:
            wanted.append(f"type IN ({_named(values, 'type', query.types)})")
            if not OF_EVERY_STEP.intersection(query.types):
                # Said in the words of the index, which is not used otherwise.
                wanted.append("type NOT IN ('step_started', 'step_completed')")
        if query.since is not None:
            # A position is never less than its event's time, so the primary key finds the place.
            wanted.append("position >= :since AND at >= :since")
            values["since"] = microseconds(query.since)
        if query.until is not None:
            wanted.append("at <= :until")
            values["until"] = microseconds(query.until)
        order = "seq" if query.run_id is not None else "position"
        rows = self._sql.execute(
            "SELECT run_id, seq, position, at, body FROM events "  # noqa: S608 - fixed words; values are bound
            f"WHERE {' AND '.join(wanted)} ORDER BY {order} LIMIT :limit",
            values,
        )
        return [_event(row) for row in rows.fetchall()]

    def stored_events(self, run_id: str, after_seq: int, limit: int) -> list[StoredEvent]:
        """Events of a run as they lie in the database, for whoever only passes them on."""
        rows = self._sql.execute(
            "SELECT run_id, seq, at, body FROM events "
            "WHERE run_id = :run AND seq > :seq ORDER BY seq LIMIT :limit",
            {"run": run_id, "seq": after_seq, "limit": limit},
        )
        return [StoredEvent(*row) for row in rows.fetchall()]

    def last_position(self) -> int:
        return int(self._sql.execute("SELECT max(position) FROM events", {}).fetchone()[0] or 0)

    def last_seq(self, run_id: str) -> int:
        row = self._sql.execute("SELECT max(seq) FROM events WHERE run_id = :run", {"run": run_id})
        return int(row.fetchone()[0] or 0)

    def run(self, run_id: str) -> Run | None:
        return self._one(Run, "SELECT body FROM runs WHERE id = :id", id=run_id)

    def runs(self, query: RunQuery) -> list[Run]:
        wanted = ["1 = 1"]
        values: dict[str, Any] = {"limit": query.limit}
        if query.statuses:
            wanted.append(f"status IN ({_named(values, 'status', query.statuses)})")
        for column in ("flow", "queue", "parent_id"):
            if (value := getattr(query, column)) is not None:
                wanted.append(f"{column} = :{column}")
                values[column] = value
        if query.before_id is not None:
            wanted.append("id < :before")
            values["before"] = query.before_id
        return self._all(
            Run,
            "SELECT body FROM runs "  # noqa: S608 - fixed words; values are bound
            f"WHERE {' AND '.join(wanted)} ORDER BY id DESC LIMIT :limit",
            **values,
        )

    def find_ids(self, kind: str, text: str) -> list[str]:
        table = {"run": "runs", "approval": "approvals"}[kind]
        exact = self._sql.execute(f"SELECT id FROM {table} WHERE id = :id", {"id": text})  # noqa: S608
        if row := exact.fetchone():
            return [str(row[0])]
        tail = text.rsplit("_", 1)[-1].lower()
        if len(tail) < SHORTEST_TAIL:
            return []
        rows = self._sql.execute(
            f"SELECT id FROM {table} WHERE tail >= :low AND tail < :high ORDER BY id",  # noqa: S608
            {"low": tail, "high": tail + "\uffff"},
        )
        return [str(row[0]) for row in rows.fetchall()]

    def step(self, run_id: str, key: str) -> StepRecord | None:
        return self._one(
            StepRecord,
            "SELECT body FROM steps WHERE run_id = :run AND key = :key",
            run=run_id,
            key=key,
        )

    def steps(self, run_id: str) -> list[StepRecord]:
        return self._all(
            StepRecord, "SELECT body FROM steps WHERE run_id = :run ORDER BY ordinal", run=run_id
        )

    def signals(self, run_id: str, name: str | None = None) -> list[Signal]:
        if name is None:
            statement = "SELECT body FROM signals WHERE run_id = :run ORDER BY id"
            return self._all(Signal, statement, run=run_id)
        statement = "SELECT body FROM signals WHERE run_id = :run AND name = :name ORDER BY id"
        return self._all(Signal, statement, run=run_id, name=name)

    def call(self, key: str) -> CallRecord | None:
        return self._one(CallRecord, "SELECT body FROM calls WHERE key = :key", key=key)

    def calls(self, run_id: str, status: CallStatus | None = None) -> list[CallRecord]:
        if status is None:
            found = self._all(CallRecord, "SELECT body FROM calls WHERE run_id = :run", run=run_id)
        else:
            found = self._all(
                CallRecord,
                "SELECT body FROM calls WHERE run_id = :run AND status = :status",
                run=run_id,
                status=status,
            )
        return sorted(found, key=lambda call: call.requested_at)

    def approval(self, approval_id: str) -> Approval | None:
        return self._one(Approval, "SELECT body FROM approvals WHERE id = :id", id=approval_id)

    def approvals(
        self,
        *,
        run_id: str | None = None,
        statuses: Sequence[ApprovalStatus] = (),
        limit: int = 200,
    ) -> list[Approval]:
        wanted = ["1 = 1"]
        values: dict[str, Any] = {"limit": limit}
        if run_id is not None:
            wanted.append("run_id = :run")
            values["run"] = run_id
        if statuses:
            wanted.append(f"status IN ({_named(values, 'status', statuses)})")
        return self._all(
            Approval,
            "SELECT body FROM approvals "  # noqa: S608 - fixed words; values are bound
            f"WHERE {' AND '.join(wanted)} ORDER BY id DESC LIMIT :limit",
            **values,
        )

    def approval_for(self, digest: str, statuses: Sequence[ApprovalStatus]) -> Approval | None:
        values: dict[str, Any] = {"digest": digest}
        return self._one(
            Approval,
            "SELECT body FROM approvals WHERE digest = :digest "  # noqa: S608 - values are bound
            f"AND status IN ({_named(values, 'status', statuses)}) ORDER BY id DESC LIMIT 1",
            **values,
        )

    def receipts(self, run_id: str | None = None) -> list[Receipt]:
        statement = "SELECT run_id, number, body FROM receipts ORDER BY run_id, number"
        values = {}
        if run_id is not None:
            statement = (
                "SELECT run_id, number, body FROM receipts WHERE run_id = :run ORDER BY number"
            )
            values = {"run": run_id}
        return [_receipt(*row) for row in self._sql.execute(statement, values).fetchall()]

    def last_receipt(self, run_id: str) -> Receipt | None:
        return self._one(
            Receipt,
            "SELECT body FROM receipts WHERE run_id = :run ORDER BY number DESC LIMIT 1",
            run=run_id,
        )

    def counted(self, counter: str, since: datetime) -> float:
        row = self._sql.execute(
            "SELECT sum(amount) FROM counters WHERE counter = :counter AND at >= :since",
            {"counter": counter, "since": microseconds(since)},
        )
        return float(row.fetchone()[0] or 0.0)

    def owners(self) -> set[str]:
        rows = self._sql.execute(
            "SELECT DISTINCT owner FROM runs WHERE status IN ('running', 'waiting') "
            "AND queue IS NOT NULL AND owner IS NOT NULL",
            {},
        )
        return {str(row[0]) for row in rows.fetchall()}

    def untaken_signals(self) -> set[tuple[str, str]]:
        rows = self._sql.execute("SELECT DISTINCT run_id, name FROM signals", {}).fetchall()
        return {(str(run_id), str(name)) for run_id, name in rows}

    def cancel_wished(self) -> set[str]:
        rows = self._sql.execute(
            "SELECT id FROM runs WHERE status IN ('running', 'waiting') AND cancel_requested = 1",
            {},
        )
        return {str(row[0]) for row in rows.fetchall()}

    def due_waits(self, now: datetime) -> list[Run]:
        return self._all(
            Run,
            "SELECT body FROM runs WHERE status = 'waiting' AND queue IS NOT NULL "
            "AND owner IS NULL AND wake_at <= :now",
            now=microseconds(now),
        )

    def next_moment(self) -> datetime | None:
        row = self._sql.execute(
            "SELECT min(at) FROM ("
            "SELECT min(not_before) AS at FROM runs WHERE status = 'queued' "
            "UNION ALL SELECT min(wake_at) FROM runs "
            "WHERE status = 'waiting' AND queue IS NOT NULL AND owner IS NULL) AS moments",
            {},
        ).fetchone()
        moments = [schedule.next_at for schedule in self.schedules() if not schedule.paused]
        if row[0] is not None:
            moments.append(moment_of(row[0]))
        return min(moments, default=None)

    def schedules(self) -> list[Schedule]:
        return self._all(Schedule, "SELECT body FROM schedules ORDER BY name")

    def workers(self) -> list[WorkerBeat]:
        return self._all(WorkerBeat, "SELECT body FROM workers ORDER BY id")

    def _one(self, noun: type[N], statement: str, **values: Any) -> N | None:
        row = self._sql.execute(statement, values).fetchone()
        return None if row is None else noun.model_validate_json(row[0])

    def _all(self, noun: type[N], statement: str, **values: Any) -> list[N]:
        rows = self._sql.execute(statement, values).fetchall()
        return [noun.model_validate_json(row[0]) for row in rows]


class SqlTransaction(SqlView):
    """Writes. Whoever began the transaction commits it or rolls it back."""

    def __init__(
        self,
        connection: Connection,
        now: datetime,
        clean: Clean,
        seal: Seal,
        check_seal: Callable[[], object],
    ) -> None:
        super().__init__(connection)
        self._now = microseconds(now)
        self._clean = clean
        self._seal = seal
        self._check_seal = check_seal
        self._position: int | None = None
        self._seqs: dict[str, int] = {}
        self.touched_runs: set[str] = set()
        """Runs whose stream grew, for the listeners."""
        self.new_heads: dict[str, Receipt] = {}
        """The newest receipt of each run, for the anchors."""

    def mark(self) -> tuple[int | None, dict[str, int], set[str], dict[str, Receipt]]:
        """What is remembered beside the database, for `rewind` after a partial rollback."""
        return self._position, dict(self._seqs), set(self.touched_runs), dict(self.new_heads)

    def rewind(self, mark: tuple[int | None, dict[str, int], set[str], dict[str, Receipt]]) -> None:
        self._position, self._seqs, self.touched_runs, self.new_heads = mark

    def append(self, run_id: str, body: EventBody) -> int:
        last = self.last_position() if self._position is None else self._position
        self._position = max(last + 1, self._now)
        seq = self._seqs.get(run_id) or self.last_seq(run_id)
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
                "body": self._text(body),
            },
        )
        self.touched_runs.add(run_id)
        return seq

    def add_run(self, run: Run) -> Run:
        if run.dedup_key is not None and (same := self._unfinished_twin(run)) is not None:
            return same
        self.save_run(run)
        return run

    def save_run(self, run: Run) -> None:
        self._sql.execute(
            "INSERT INTO runs (id, tail, flow, status, queue, priority, dedup_key, parent_id, "
            "not_before, claimed_at, wake_at, owner, fence, cancel_requested, body) "
            "VALUES (:id, :tail, :flow, :status, :queue, :priority, :dedup_key, :parent_id, "
            ":not_before, :claimed_at, :wake_at, :owner, :fence, :cancel_requested, :body) "
            "ON CONFLICT (id) DO UPDATE SET status = excluded.status, queue = excluded.queue, "
            "priority = excluded.priority, not_before = excluded.not_before, "
            "claimed_at = excluded.claimed_at, wake_at = excluded.wake_at, "
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
                "owner": run.owner,
                "fence": run.fence,
                "cancel_requested": int(run.cancel_requested),
                "body": self._text(run),
            },
        )

    def guard(self, run_id: str, fence: int) -> None:
        row = self._sql.execute("SELECT fence, owner FROM runs WHERE id = :id", {"id": run_id})
        found = row.fetchone()
        if found is None or found[0] != fence or found[1] is None:
            raise LeaseLost(run_id)

    def claim(
        self, worker_id: str, queue: QueueSpec, flows: Sequence[str], now: datetime
    ) -> Run | None:
        if not flows or not self._has_room(queue, now):
            return None
        values: dict[str, Any] = {"queue": queue.name, "now": microseconds(now)}
        found = self._one(
            Run,
            "SELECT body FROM runs WHERE queue = :queue AND status = 'queued' "  # noqa: S608
            "AND cancel_requested = 0 AND (not_before IS NULL OR not_before <= :now) "
            f"AND flow IN ({_named(values, 'flow', flows)}) "
            "ORDER BY priority DESC, id LIMIT 1",
            **values,
        )
        if found is None:
            return None
        claimed = found.model_copy(
            update={
                "status": RunStatus.RUNNING,
                "owner": worker_id,
                "fence": found.fence + 1,
                "claimed_at": now,
                "waiting_for": None,
                "wake_at": None,
            }
        )
        self.save_run(claimed)
        return claimed

    def save_step(self, step: StepRecord) -> StepRecord:
        text = step.model_dump_json()
        kept = self._clean(text)
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
                "body": kept,
            },
        )
        return step if kept is text else StepRecord.model_validate_json(kept)

    def drop_steps(self, run_id: str, keys: Sequence[str]) -> None:
        for key in keys:
            self._sql.execute(
                "DELETE FROM steps WHERE run_id = :run AND key = :key", {"run": run_id, "key": key}
            )
        for call in self.calls(run_id):
            if call.step_key in keys and call.status not in UNSETTLED:
                self._sql.execute("DELETE FROM calls WHERE key = :key", {"key": call.key})

    def add_signal(self, signal: Signal) -> None:
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
        kept = Receipt.model_validate_json(self._text(draft))
        sealed = self._seal(kept, before.seal if before else "", before.number + 1 if before else 1)
        self._sql.execute(
            "INSERT INTO receipts (run_id, number, body) VALUES (:run, :number, :body)",
            {"run": sealed.run_id, "number": sealed.number, "body": sealed.model_dump_json()},
        )
        self.new_heads[sealed.run_id] = sealed
        return sealed

    def count(self, counter: str, at: datetime, amount: float = 1.0) -> None:
        self._sql.execute(
            "INSERT INTO counters (counter, at, amount) VALUES (:counter, :at, :amount) "
            "ON CONFLICT (counter, at) DO UPDATE SET amount = counters.amount + excluded.amount",
            {"counter": counter, "at": microseconds(at), "amount": amount},
        )

    def save_schedule(self, schedule: Schedule) -> None:
        self._sql.execute(
            "INSERT INTO schedules (name, body) VALUES (:name, :body) "
            "ON CONFLICT (name) DO UPDATE SET body = excluded.body",
            {"name": schedule.name, "body": self._text(schedule)},
        )

    def drop_schedule(self, name: str) -> None:
        self._sql.execute("DELETE FROM schedules WHERE name = :name", {"name": name})

    def save_worker(self, beat: WorkerBeat) -> None:
        self._sql.execute(
            "INSERT INTO workers (id, body) VALUES (:id, :body) "
            "ON CONFLICT (id) DO UPDATE SET body = excluded.body",
            {"id": beat.id, "body": beat.model_dump_json()},
        )

    def drop_worker(self, worker_id: str) -> None:
        self._sql.execute("DELETE FROM workers WHERE id = :id", {"id": worker_id})

    def _has_room(self, queue: QueueSpec, now: datetime) -> bool:
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

    def _unfinished_twin(self, run: Run) -> Run | None:
        return self._one(
            Run,
            "SELECT body FROM runs WHERE dedup_key = :key "
            "AND (queue = :queue OR (queue IS NULL AND :queue IS NULL)) "
            "AND status NOT IN ('succeeded', 'failed', 'cancelled') LIMIT 1",
            key=run.dedup_key,
            queue=run.queue,
        )

    def _text(self, noun: Noun) -> str:
        return self._clean(noun.model_dump_json())


def microseconds(moment: datetime) -> int:
    return (moment - _EPOCH) // _MICROSECOND


def moment_of(value: int) -> datetime:
    return _EPOCH + timedelta(microseconds=value)


def _maybe(moment: datetime | None) -> int | None:
    return None if moment is None else microseconds(moment)


def _named(values: dict[str, Any], name: str, items: Sequence[str]) -> str:
    """Bind each item and give the list of placeholders for an IN clause."""
    names = [f"{name}_{number}" for number in range(len(items))]
    values.update(zip(names, items, strict=True))
    return ", ".join(f":{each}" for each in names)


def _receipt(run_id: str, number: int, body: str) -> Receipt:
    """A receipt as it lies there: in its place, whatever it says of itself, and so found out.

    One that cannot be read any more is given without a seal.
    """
    try:
        receipt = Receipt.model_validate_json(body)
    except ValidationError:
        receipt = Receipt(
            run_id=run_id,
            number=number,
            call_key="",
            tool="unreadable",
            digest="",
            status="in_doubt",
            tier=Tier.T4,
            rule="",
            requested_at=_EPOCH,
            settled_at=_EPOCH,
        )
    if (receipt.run_id, receipt.number) == (run_id, number):
        return receipt
    return receipt.model_copy(update={"run_id": run_id, "number": number})


def _event(row: Sequence[Any]) -> Event:
    run_id, seq, position, at, body = row
    return Event.model_construct(
        run_id=run_id,
        seq=seq,
        position=position,
        at=moment_of(at),
        body=read_body(json.loads(body)),
    )

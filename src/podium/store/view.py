"""Views: what lies in the database, as nouns.

The statements are plain SQL with named parameters, understood by every database the schema is
made for; they go to the driver directly because most of a step's cost would otherwise be spent
in building them. The classes of events are loaded with the first event that is read: there are many,
and a list of runs needs none of them.
"""

from __future__ import annotations

import json
from itertools import count, islice
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from pydantic import ValidationError

from podium.core.decisions import Approval, CallRecord, Receipt, Tier, UsageSums
from podium.core.ids import SHORTEST_TAIL
from podium.core.model import FrozenModel
from podium.core.work import (
    APPROVAL_SIGNAL,
    PULL_SIGNAL,
    QueueCounts,
    Run,
    Schedule,
    Signal,
    StepRecord,
    WorkerHeartbeat,
)
from podium.store.rows import (
    EPOCH,
    datetime_of,
    microseconds,
    named,
    portions,
    read_or_refuse,
    readable,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence
    from datetime import datetime

    from podium.core.decisions import ApprovalStatus, CallStatus
    from podium.core.events import Event
    from podium.ports import EventQuery, RunQuery
    from podium.store.rows import Report, StoreConnection

N = TypeVar("N", bound=FrozenModel)

OF_EVERY_STEP = frozenset({"step_started", "step_completed"})
"""Types of events that the index by type leaves out: there are too many of them."""

UNENDED = "'queued', 'running', 'waiting', 'needs_human'"
"""The statuses that are no end, as SQL lists them."""

MAX_ROWS = 2**62
"""A number that stands for no limit in every database."""

TASK_WITHIN = 20_000
"""Characters of a run's body in which words of its task are looked for."""


class StoredEvent(NamedTuple):
    """An event whose body was not made into an object."""

    run_id: str
    seq: int
    at: int
    body: str

    def line(self) -> dict[str, Any]:
        """As `Event.line` gives it."""
        from podium.core.events import lifted

        at = datetime_of(self.at).isoformat()
        return {"run": self.run_id, "seq": self.seq, "at": at, **lifted(json.loads(self.body))}


class SqlView:
    """Reads. All answers are of the moment the transaction began."""

    def __init__(
        self, connection: StoreConnection, now: datetime, report: Report | None = None
    ) -> None:
        """`now` is the transaction's moment, by the clock that all processes on the database share.

        `report` is told of rows that lists leave out because they cannot be read.
        """
        self._sql = connection
        self._at = now
        self._report = report or (lambda what, problem: None)

    def now(self) -> datetime:
        return self._at

    def ask(self, statement: str, **values: Any) -> list[Any]:
        """Rows of a statement of this room's own, as of this view."""
        return self._sql.execute(statement, values).fetchall()

    def events(self, query: EventQuery) -> list[Event]:
        conditions = ["position > :after"]
        values: dict[str, Any] = {"after": query.after_position, "limit": query.limit}
        if query.run_id is not None:
            conditions.append("run_id = :run AND seq > :seq")
            values |= {"run": query.run_id, "seq": query.after_seq}
            if query.until_seq is not None:
                conditions.append("seq <= :until_seq")
                values["until_seq"] = query.until_seq
        if query.types:
            conditions.append(f"type IN ({named(values, 'type', query.types)})")
            if not OF_EVERY_STEP.intersection(query.types):
                # Said in the words of the index, which is not used otherwise.
                conditions.append("type NOT IN ('step_started', 'step_completed')")
        if query.since is not None:
            # A position is never less than its event's time, so the primary key finds the place.
            conditions.append("position >= :since AND at >= :since")
            values["since"] = microseconds(query.since)
        if query.until is not None:
            conditions.append("at <= :until")
            values["until"] = microseconds(query.until)
        order = "seq" if query.run_id is not None else "position"
        rows = self._sql.execute(
            "SELECT run_id, seq, position, at, body FROM events "  # noqa: S608 - fixed words; values are bound
            f"WHERE {' AND '.join(conditions)} ORDER BY {order} LIMIT :limit",
            values,
        )
        return [_event(row) for row in rows.fetchall()]

    def last_position(self) -> int:
        return int(self._sql.execute("SELECT max(position) FROM events", {}).fetchone()[0] or 0)

    def last_seq(self, run_id: str) -> int:
        row = self._sql.execute("SELECT max(seq) FROM events WHERE run_id = :run", {"run": run_id})
        return int(row.fetchone()[0] or 0)

    def run(self, run_id: str) -> Run | None:
        return self._one(Run, "SELECT body FROM runs WHERE id = :id", id=run_id)

    def runs(self, query: RunQuery) -> list[Run]:
        conditions = ["1 = 1"]
        values: dict[str, Any] = {}
        if query.statuses:
            conditions.append(f"status IN ({named(values, 'status', query.statuses)})")
        for column in ("flow", "queue", "parent_id", "owner"):
            if (value := getattr(query, column)) is not None:
                conditions.append(f"{column} = :{column}")
                values[column] = value
        if query.before_id is not None:
            conditions.append("id < :before")
            values["before"] = query.before_id
        if query.from_id is not None:
            conditions.append("id >= :from")
            values["from"] = query.from_id
        if query.text:
            # A task stands before all that may be long.
            conditions.append(f"lower(substr(body, 1, {TASK_WITHIN})) LIKE :text ESCAPE '!'")
            values["text"] = _task_pattern(query.text)
        return self._page(
            Run,
            "SELECT id, body FROM runs "  # noqa: S608 - fixed words; values are bound
            f"WHERE {' AND '.join(conditions)} ORDER BY id DESC",
            query.limit,
            **values,
        )

    def run_back(self, run_id: str | None, many: int) -> str | None:
        older, values = ("WHERE id < :id ", {"id": run_id}) if run_id is not None else ("", {})
        row = self._sql.execute(
            f"SELECT id FROM runs {older}ORDER BY id DESC LIMIT 1 OFFSET :skip",  # noqa: S608 - fixed words
            {**values, "skip": many - 1},
        ).fetchone()
        return None if row is None else str(row[0])

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

    def steps(self, run_id: str, *, after: int = -1, limit: int | None = None) -> list[StepRecord]:
        return self._all(
            StepRecord,
            "SELECT body FROM steps WHERE run_id = :run AND ordinal > :after "
            "ORDER BY ordinal LIMIT :limit",
            run=run_id,
            after=after,
            limit=MAX_ROWS if limit is None else limit,
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
            records = self._all(
                CallRecord, "SELECT body FROM calls WHERE run_id = :run", run=run_id
            )
        else:
            records = self._all(
                CallRecord,
                "SELECT body FROM calls WHERE run_id = :run AND status = :status",
                run=run_id,
                status=status,
            )
        return sorted(records, key=lambda call: call.requested_at)

    def approval(self, approval_id: str) -> Approval | None:
        return self._one(Approval, "SELECT body FROM approvals WHERE id = :id", id=approval_id)

    def approvals(
        self,
        *,
        run_id: str | None = None,
        statuses: Sequence[ApprovalStatus] = (),
        before_id: str | None = None,
        limit: int = 200,
    ) -> list[Approval]:
        conditions = ["1 = 1"]
        values: dict[str, Any] = {}
        if run_id is not None:
            conditions.append("run_id = :run")
            values["run"] = run_id
        if statuses:
            conditions.append(f"status IN ({named(values, 'status', statuses)})")
        if before_id is not None:
            conditions.append("id < :before")
            values["before"] = before_id
        return self._page(
            Approval,
            "SELECT id, body FROM approvals "  # noqa: S608 - fixed words; values are bound
            f"WHERE {' AND '.join(conditions)} ORDER BY id DESC",
            limit,
            **values,
        )

    def approval_for(self, digest: str, statuses: Sequence[ApprovalStatus]) -> Approval | None:
        values: dict[str, Any] = {"digest": digest}
        return self._one(
            Approval,
            "SELECT body FROM approvals WHERE digest = :digest "  # noqa: S608 - values are bound
            f"AND status IN ({named(values, 'status', statuses)}) ORDER BY id DESC LIMIT 1",
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

    def untaken_signals(self, run_ids: Collection[str]) -> set[tuple[str, str]]:
        pairs: set[tuple[str, str]] = set()
        for some in portions(run_ids):
            values: dict[str, Any] = {}
            rows = self._sql.execute(
                "SELECT DISTINCT run_id, name FROM signals "  # noqa: S608 - values are bound
                f"WHERE run_id IN ({named(values, 'run', some)})",
                values,
            )
            pairs.update((str(run_id), str(name)) for run_id, name in rows.fetchall())
        return pairs

    def cancel_wished(self) -> set[str]:
        rows = self._sql.execute(
            "SELECT id FROM runs WHERE status IN ('running', 'waiting', 'needs_human') AND cancel_requested = 1",
            {},
        )
        return {str(row[0]) for row in rows.fetchall()}

    def due_waits(self, now: datetime) -> list[Run]:
        return self._readable(
            Run,
            "SELECT id, body FROM runs WHERE status = 'waiting' AND queue IS NOT NULL "
            "AND owner IS NULL AND wake_at <= :now",
            now=microseconds(now),
        )

    def answered_waits(self) -> list[Run]:
        return self._readable(
            Run,
            "SELECT id, body FROM runs WHERE status = 'waiting' AND queue IS NULL AND id IN "
            "(SELECT run_id FROM signals WHERE name LIKE :answers OR name LIKE :news)",
            answers=f"{APPROVAL_SIGNAL}%",
            news=f"{PULL_SIGNAL}%",
        )

    def due_follow_ups(self, now: datetime) -> list[Run]:
        waits = self._readable(
            Run,
            "SELECT id, body FROM runs WHERE status = 'waiting' AND queue IS NULL AND wake_at <= :now",
            now=microseconds(now),
        )
        return [run for run in waits if run.follows_pull_request]

    def next_due_at(self) -> datetime | None:
        row = self._sql.execute(
            "SELECT min(at) FROM ("
            "SELECT min(not_before) AS at FROM runs WHERE status = 'queued' "
            "UNION ALL SELECT min(wake_at) FROM runs "
            "WHERE status = 'waiting' AND queue IS NOT NULL AND owner IS NULL) AS moments",
            {},
        ).fetchone()
        timestamps = [schedule.next_at for schedule in self.schedules() if not schedule.paused]
        if row[0] is not None:
            timestamps.append(datetime_of(row[0]))
        return min(timestamps, default=None)

    def tallies(self) -> list[QueueCounts]:
        rows = self._sql.execute(
            "SELECT queue, CASE WHEN status = 'queued' AND not_before > :now THEN 'delayed' "  # noqa: S608 - fixed words
            f"ELSE status END AS stands, count(*), min(id) FROM runs WHERE status IN ({UNENDED}) "
            "AND queue IS NOT NULL GROUP BY queue, stands",
            {"now": microseconds(self._at)},
        ).fetchall()
        oldest = {queue: run_id for queue, state, _, run_id in rows if state == "queued"}
        made = self._made_at(list(oldest.values())) if oldest else {}
        by_queue: dict[str, dict[str, Any]] = {}
        for queue, state, number, _ in rows:
            by_queue.setdefault(queue, {})[state] = number
        return [
            QueueCounts(queue=queue, oldest_queued_at=made.get(oldest.get(queue)), **counts)
            for queue, counts in sorted(by_queue.items())
        ]

    def spent(self, since: datetime, after_position: int, limit: int) -> list[UsageSums]:
        rows = self._sql.execute(
            "SELECT e.position, e.at, r.flow, e.body FROM events AS e JOIN runs AS r ON r.id = e.run_id "
            # Said in the words of the index by type, which is not used otherwise.
            "WHERE e.type = 'usage_recorded' AND e.type NOT IN ('step_started', 'step_completed') "
            "AND e.position > :after AND e.position >= :since AND e.at >= :since "
            "ORDER BY e.position LIMIT :limit",
            {"after": after_position, "since": microseconds(since), "limit": limit},
        )
        return [_spent(row) for row in rows.fetchall()]

    def ended_since(self, timestamp: datetime) -> dict[str, int]:
        rows = self._sql.execute(
            "SELECT queue, count(*) FROM runs WHERE finished_at >= :moment "
            "AND queue IS NOT NULL GROUP BY queue",
            {"moment": microseconds(timestamp)},
        )
        return {str(queue): int(count) for queue, count in rows.fetchall()}

    def ended_before(self, timestamp: datetime, limit: int) -> list[str]:
        rows = self._sql.execute(
            "SELECT id FROM runs WHERE finished_at < :moment "  # noqa: S608 - fixed words
            f"AND status NOT IN ({UNENDED}) "
            "AND NOT EXISTS (SELECT 1 FROM runs AS parent WHERE parent.id = runs.parent_id "
            f"AND parent.status IN ({UNENDED})) "
            "AND NOT EXISTS (SELECT 1 FROM runs AS child WHERE child.parent_id = runs.id "
            f"AND child.status IN ({UNENDED})) "
            "ORDER BY finished_at, id LIMIT :limit",
            {"moment": microseconds(timestamp), "limit": limit},
        )
        return [str(row[0]) for row in rows.fetchall()]

    def schedules(self) -> list[Schedule]:
        return self._readable(Schedule, "SELECT name, body FROM schedules ORDER BY name")

    def workers(self) -> list[WorkerHeartbeat]:
        return self._readable(WorkerHeartbeat, "SELECT id, body FROM workers ORDER BY id")

    def _made_at(self, run_ids: Sequence[str]) -> dict[str | None, datetime]:
        values: dict[str, Any] = {}
        these = named(values, "run", run_ids)
        statement = f"SELECT id, body FROM runs WHERE id IN ({these})"  # noqa: S608
        runs = self._readable(Run, statement, **values)
        return {run.id: run.created_at for run in runs}

    def _one(self, model: type[N], statement: str, **values: Any) -> N | None:
        row = self._sql.execute(statement, values).fetchone()
        return None if row is None else read_or_refuse(model, row[0], values)

    def _all(self, model: type[N], statement: str, **values: Any) -> list[N]:
        """Rows that belong together: nothing of it is left out, so that all of it must be readable."""
        rows = self._sql.execute(statement, values).fetchall()
        return [read_or_refuse(model, row[0], values) for row in rows]

    def _first(self, model: type[N], statement: str, **values: Any) -> N | None:
        return next(self._paged(model, statement, 1, **values), None)

    def _page(self, model: type[N], statement: str, limit: int, **values: Any) -> list[N]:
        # Those that cannot be read do not count: a page that is not full is taken for the last.
        return list(islice(self._paged(model, statement, limit, **values), limit))

    def _paged(self, model: type[N], statement: str, size: int, **values: Any) -> Iterator[N]:
        """Readable ones of a statement that selects keys and bodies, looked up so many at a time."""
        for start in count(0, size):
            rows = self._sql.execute(
                f"{statement} LIMIT :size OFFSET :start", values | {"size": size, "start": start}
            ).fetchall()
            yield from readable(model, rows, self._report)
            if len(rows) < size:
                return

    def _readable(self, model: type[N], statement: str, **values: Any) -> list[N]:
        """Independent rows: one that cannot be read must not hide the others."""
        rows = self._sql.execute(statement, values).fetchall()
        return list(readable(model, rows, self._report))


def stored_events(
    connection: StoreConnection, run_id: str, after_seq: int, limit: int
) -> list[StoredEvent]:
    """Events of a run as they lie in the database, for whoever only passes them on."""
    rows = connection.execute(
        "SELECT run_id, seq, at, body FROM events "
        "WHERE run_id = :run AND seq > :seq ORDER BY seq LIMIT :limit",
        {"run": run_id, "seq": after_seq, "limit": limit},
    )
    return [StoredEvent(*row) for row in rows.fetchall()]


def _task_pattern(text: str) -> str:
    """A pattern for the beginning of a run's body whose task has these words."""
    plain = text.encode(errors="replace").decode()
    written = "".join(
        f"!{char}" if char in "!%_" else char
        for char in json.dumps(plain, ensure_ascii=False)[1:-1]
    )
    # Databases lower plain letters alone.
    lowered = "".join(char.lower() if char.isascii() else char for char in written)
    return f'%"task":"%{lowered}%","input":%'


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
            requested_at=EPOCH,
            settled_at=EPOCH,
        )
    if (receipt.run_id, receipt.number) == (run_id, number):
        return receipt
    return receipt.model_copy(update={"run_id": run_id, "number": number})


def _spent(row: Sequence[Any]) -> UsageSums:
    # Plain, since there may be hundreds of thousands: a noun for each would take seconds.
    from podium.core.events import lifted

    position, at, flow, body = row
    document = lifted(json.loads(body))
    usage = document["usage"]
    tokens = usage.get("input_tokens", 0) + usage.get("output_tokens", 0)
    usd, complete = usage.get("usd", 0.0), usage.get("complete", True)
    return UsageSums(position, datetime_of(at), flow, document["source"], usd, tokens, complete)


def _event(row: Sequence[Any]) -> Event:
    from podium.core.events import Event, read_body

    run_id, seq, position, at, body = row
    return Event.model_construct(
        run_id=run_id,
        seq=seq,
        position=position,
        at=datetime_of(at),
        body=read_body(json.loads(body)),
    )

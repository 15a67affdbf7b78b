"""Check of a whole database for records that are not as they were written."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from typing import Any, NamedTuple

from pydantic import ValidationError

from podium.core.decisions import Approval, CallRecord, Receipt
from podium.core.events import read_body
from podium.core.model import FrozenModel
from podium.core.work import Run, Schedule, Signal, StepRecord, WorkerHeartbeat
from podium.store.database_copy import (
    ProgressCallback,
    ReceiptKeys,
    current_version,
    find_chain_problems,
)
from podium.store.database_snapshot import (
    Row,
    SnapshotReader,
    WholeDatabase,
    selection,
)
from podium.store.rows import microseconds
from podium.store.schema import TABLES, Table

MAX_PROBLEMS = 200
"""Faults that are named one by one; the rest is counted."""

_RESTORE = "restore it from a backup, or move the project without it (`podium db copy`)"


class DatabaseProblem(FrozenModel):
    """Something that is not as Podium writes it."""

    table: str
    """Empty: the database as a whole."""
    row: str
    problem: str
    remedy: str


class DatabaseCheck(FrozenModel):
    """Result of a check of the database."""

    database: str
    version: int
    rows: int
    faults: tuple[DatabaseProblem, ...] = ()
    more_faults: int = 0
    """Faults beyond those that are named."""

    @property
    def sound(self) -> bool:
        return not self.faults


class _TableCheck(NamedTuple):
    """The check of a table: its model, the columns that name a row, and those that repeat parts of its body."""

    read: Callable[[str], Any]
    key: tuple[str, ...]
    repeated: tuple[str, ...]


def _event(body: str) -> Any:
    return read_body(json.loads(body))


_TIMES_OF_RUNS = ("not_before", "claimed_at", "wake_at", "finished_at")
_OF_RUNS = ("id", "status", "priority", "owner", "fence", "cancel_requested", *_TIMES_OF_RUNS)

# Columns that may hold what people type are left out: bodies are kept without secrets, they are not.
_KINDS = {
    "events": _TableCheck(_event, ("run_id", "seq"), ("type",)),
    "runs": _TableCheck(Run.model_validate_json, ("id",), _OF_RUNS),
    "steps": _TableCheck(
        StepRecord.model_validate_json,
        ("run_id", "key"),
        ("run_id", "ordinal", "status"),
    ),
    "signals": _TableCheck(Signal.model_validate_json, ("run_id", "name", "id"), ("run_id", "id")),
    "calls": _TableCheck(CallRecord.model_validate_json, ("key",), ("run_id", "status")),
    "approvals": _TableCheck(
        Approval.model_validate_json, ("id",), ("id", "run_id", "digest", "status")
    ),
    "receipts": _TableCheck(
        Receipt.model_validate_json, ("run_id", "number"), ("run_id", "number")
    ),
    "schedules": _TableCheck(Schedule.model_validate_json, ("name",), ()),
    "workers": _TableCheck(WorkerHeartbeat.model_validate_json, ("id",), ("id",)),
}

_RULES = (
    (
        "events",
        "SELECT run_id, min(seq), max(seq), count(*) FROM events GROUP BY run_id "
        "HAVING min(seq) <> 1 OR max(seq) <> count(*) ORDER BY run_id",
        "events are missing: they are numbered {1} to {2}, but there are only {3}",
    ),
    (
        "events",
        "SELECT run_id, seq FROM (SELECT run_id, seq, position, "
        "lag(position) OVER (PARTITION BY run_id ORDER BY seq) AS earlier FROM events) AS beside "
        "WHERE earlier >= position ORDER BY run_id, seq",
        "event {1} was committed before its predecessor",
    ),
    (
        "steps",
        "SELECT run_id, ordinal, count(*) FROM steps GROUP BY run_id, ordinal "
        "HAVING count(*) > 1 ORDER BY run_id, ordinal",
        "{2} steps have the same position, {1}",
    ),
    (
        "steps",
        "SELECT DISTINCT run_id FROM steps WHERE NOT EXISTS "
        "(SELECT 1 FROM runs WHERE runs.id = steps.run_id) ORDER BY run_id",
        "it has steps, but the run does not exist",
    ),
    (
        "signals",
        "SELECT DISTINCT run_id FROM signals WHERE NOT EXISTS "
        "(SELECT 1 FROM runs WHERE runs.id = signals.run_id) ORDER BY run_id",
        "it has signals, but the run does not exist",
    ),
)
"""Table, statement that finds what breaks a rule (the run first), words for one finding."""


def check_database(
    database: WholeDatabase,
    proof: ReceiptKeys | None,
    *,
    progress: ProgressCallback = lambda doing, rows, of: None,
) -> DatabaseCheck:
    """Read everything. Changes nothing, and work may go on meanwhile.

    `proof` holds the key of the receipts; None: there is none here, so their chains are not proved.
    """
    version = current_version(database)
    problems = _ProblemList()
    for damage in database.damage():
        problems.add("", "", damage.problem, damage.remedy)
    with database.reading() as reading:
        rows = sum(_check_table(reading, table, problems, progress) for table in TABLES)
        _check_rules(reading, problems)
        for run_id, problem in find_chain_problems(reading, proof):
            problems.add("receipts", run_id, problem, "see `podium receipts verify`")
    return DatabaseCheck(
        database=database.name,
        version=version,
        rows=rows,
        faults=tuple(problems.items),
        more_faults=problems.more,
    )


class _ProblemList:
    """The first faults, and how many there are beyond them."""

    def __init__(self) -> None:
        self.items: list[DatabaseProblem] = []
        self.more = 0

    def add(self, table: str, row: str, problem: str, remedy: str = _RESTORE) -> None:
        if len(self.items) < MAX_PROBLEMS:
            database_problem = DatabaseProblem(table=table, row=row, problem=problem, remedy=remedy)
            self.items.append(database_problem)
        else:
            self.more += 1


def _check_table(
    reading: SnapshotReader, table: Table, problems: _ProblemList, progress: ProgressCallback
) -> int:
    checked_rows = 0
    counted = reading.execute(f"SELECT count(*) FROM {table.name}").fetchone()[0]  # noqa: S608 - our own names
    kind, columns = _KINDS.get(table.name), table.columns
    for batch in reading.batches(selection(table)):
        if kind is not None:
            for row, problem in _unlike(kind, columns, batch):
                problems.add(table.name, row, problem)
        checked_rows += len(batch)
        progress(f"checking {table.name}", checked_rows, counted)
    return checked_rows


def _unlike(
    kind: _TableCheck, columns: tuple[str, ...], rows: Iterable[Row]
) -> Iterator[tuple[str, str]]:
    """Rows whose body cannot be read, or says something else than the columns beside it."""
    for row in rows:
        values = dict(zip(columns, row, strict=True))
        name = " ".join(str(values[column]) for column in kind.key)
        try:
            model = kind.read(values["body"])
        except (ValidationError, ValueError, TypeError, RecursionError) as error:
            yield name, f"it cannot be read ({_first_line(error)})"
            continue
        for column in kind.repeated:
            if _plain(getattr(model, column)) != values[column]:
                yield (
                    name,
                    f"its column {column} is {values[column]!r}, but its body has another value",
                )


def _plain(value: Any) -> Any:
    return microseconds(value) if isinstance(value, datetime) else value


def _first_line(error: Exception) -> str:
    if isinstance(error, ValidationError):
        first = error.errors(include_url=False, include_input=False)[0]
        return f"{'.'.join(map(str, first['loc']))}: {first['msg']}".removeprefix(": ")
    return str(error).partition("\n")[0][:200]


def _check_rules(reading: SnapshotReader, problems: _ProblemList) -> None:
    for table, statement, template in _RULES:
        for batch in reading.batches(statement):
            for row in batch:
                problems.add(table, str(row[0]), template.format(*row))

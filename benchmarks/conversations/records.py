"""Records of a corpus in a project: rows of the roofing pack's database, and runs of Podium itself."""

from __future__ import annotations

import hashlib
import re
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from datetime import datetime, timedelta
from pathlib import Path

from podium.core.ids import short_id
from podium.core.model import Json
from podium.core.work import Failure, Run, RunStatus
from podium.ports import Store

_TABLES = {
    "lead": "leads", "inspection": "inspections", "item": "inspection_items", "asset": "media_assets",
    "quote": "quotes", "line": "quote_lines", "job": "jobs", "invoice": "invoices", "payment": "payments",
    "task": "tasks", "note": "notes", "snapshot": "snapshots",
}  # fmt: skip
_REASONS = {"job": "cancelled_because", "inspection": "cancelled_because", "quote": "declined_because",
            "invoice": "voided_because", "lead": "archived_because"}  # fmt: skip
_OWNED = {"inspections": "inspection", "jobs": "job"}
_REFERENCE = re.compile(r"\$([a-z]+\.[a-z0-9_]+)(?:\.([a-z_]+))?")
Row = dict[str, Json]


class World:
    """The records of one session, by their keys."""

    def __init__(self, records: Sequence[Mapping[str, Json]]) -> None:
        self.records = {str(record["key"]): dict(record) for record in records}

    def id_of(self, key: str) -> str:
        """The id under which a record is stored."""
        record = self.records[key]
        kind = str(record["kind"])
        digest = hashlib.sha256(key.encode()).hexdigest()
        if kind == "run":
            # Time, version and variant of a UUIDv7, then the part that people see.
            return f"run_01a1e0e5600973338812{record['id']}{digest[:4]}"
        return f"{kind}_{digest[:10]}"

    def resolved(self, value: Json) -> Json:
        """A value with `$lead.sarah` as its id and `$lead.sarah.phone` as its field; others as they are."""
        match = _REFERENCE.fullmatch(value) if isinstance(value, str) else None
        if match is None or match[1] not in self.records:
            return value
        return self.records[match[1]][match[2]] if match[2] else self.id_of(match[1])

    def owner_of(self, record_id: str, name: str) -> Json:
        """The id of the record that a record names under `job` or `lead`; None for no such record or name."""
        key = next((key for key in self.records if self.id_of(key) == record_id), "")
        value = self.records.get(key, {}).get(name.removesuffix("_id"))
        return self.resolved(value) if isinstance(value, str) and value.startswith("$") else None

    def rows(self, now: datetime) -> Iterable[tuple[str, Row]]:
        """The rows of the pack's database, parents first, each made a minute after the one before."""
        made = now - timedelta(days=30)
        ordered = sorted(self.records.values(), key=lambda record: list(_TABLES).index(record["kind"]) if record["kind"] in _TABLES else 99)  # fmt: skip
        for record in ordered:
            table = _TABLES.get(str(record["kind"]))
            if table is None:
                continue
            made += timedelta(minutes=1)
            stamp = made.isoformat()
            yield table, {**self._row(record), "created_at": stamp, "updated_at": stamp}
        lined = {record["quote"] for record in ordered if record["kind"] == "line"}
        for record in ordered:
            if record["kind"] == "quote" and f"${record['key']}" not in lined:
                yield "quote_lines", self._only_line(record, made.isoformat())

    def _row(self, record: Mapping[str, Json]) -> Row:
        kind = str(record["kind"])
        row: Row = {"id": self.id_of(str(record["key"]))}
        for name, value in record.items():
            if name in ("key", "kind", "created", "received_on", "id"):
                continue
            if isinstance(value, str) and value.startswith("$"):
                row[f"{name}_id"] = self.resolved(value)
            elif name == "kind_of":
                row["kind"] = value
            elif name in ("total", "amount", "unit_price"):
                row[f"{name}_cents"] = round(value * 100)
            elif name == "balance":
                row["paid_cents"] = round((record["amount"] - value) * 100)
            elif name == "reason":
                row[_REASONS[kind]] = value
            else:
                row[name] = value
        return row | self._derived(kind, row)

    def _derived(self, kind: str, row: Row) -> Row:
        """Columns that the corpus leaves out because they follow from others."""
        derived: Row = {}
        if kind == "asset":
            derived = {"media_type": "image/jpeg", "bytes": 1, "sha256": "0" * 64, "stored_as": "00/0.jpg"}  # fmt: skip
        elif kind == "line":
            derived["total_cents"] = round(row["unit_price_cents"] * row.get("quantity", 1))
        elif kind == "snapshot":
            derived = {"file_name": f"{row['id']}.json", "sha256": "0" * 64, "bytes": 1}
        elif kind == "lead" and row.get("stage") == "archived":
            derived["stage_before"] = "new"
        elif kind in ("job", "inspection") and row.get("status") == "cancelled":
            derived["status_before"] = "scheduled"
        elif kind == "invoice" and row.get("status") == "void":
            derived["status_before"] = "open"
        return derived

    def _only_line(self, quote: Mapping[str, Json], stamp: str) -> Row:
        cents = round(quote["total"] * 100)
        return {
            "id": f"line_{hashlib.sha256(str(quote['key']).encode()).hexdigest()[:10]}",
            "quote_id": self.id_of(str(quote["key"])), "description": quote["title"], "quantity": 1,
            "unit_price_cents": cents, "total_cents": cents, "created_at": stamp, "updated_at": stamp,
        }  # fmt: skip

    def runs(self) -> Iterable[Run]:
        """Podium's own runs."""
        for key, record in self.records.items():
            if record["kind"] != "run":
                continue
            created = datetime.fromisoformat(str(record["created"]))
            status = RunStatus(record["status"])
            ended = status in (RunStatus.FAILED, RunStatus.SUCCEEDED)
            yield Run(
                id=self.id_of(key), flow="pipeline", task=str(record["task"]), status=status,
                queue="default", created_at=created, finished_at=created if ended else None,
                failure=Failure(kind="Failed", message=record["reason"]) if record.get("reason") else None,
            )  # fmt: skip


def same_run(expected: str, actual: str) -> bool:
    """Return whether two ids mean one run: the whole id or its short form."""
    return actual in (expected, short_id(expected))


def write_rows(database: Path, rows: Iterable[tuple[str, Row]]) -> None:
    """Replace everything in the pack's database by these rows."""
    with closing(sqlite3.connect(database)) as connection:
        for table in reversed([*dict.fromkeys(_TABLES.values()), "messages", "performed"]):
            connection.execute(f"DELETE FROM {table}")
        columns = {
            table: {row[1] for row in connection.execute(f"PRAGMA table_info({table})")}
            for table in _TABLES.values()
        }
        for table, row in rows:
            known = {name: value for name, value in row.items() if name in columns[table]}
            marks = ", ".join("?" for _ in known)
            connection.execute(
                f"INSERT INTO {table} ({', '.join(known)}) VALUES ({marks})",
                tuple(known.values()),
            )
        connection.commit()


async def write_runs(store: Store, runs: Sequence[Run]) -> None:
    await store.write(lambda tx: [tx.add_run(run) for run in runs])

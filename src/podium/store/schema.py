"""The one schema, in SQLAlchemy Core, for every database Podium runs on.

Columns are what is searched for; `body` holds the whole noun as JSON. Times are integers:
microseconds since 1970, UTC.
"""

from __future__ import annotations

from collections.abc import Iterator

from sqlalchemy import (
    BigInteger,
    Column,
    Double,
    Index,
    Integer,
    MetaData,
    PrimaryKeyConstraint,
    Table,
    Text,
    UniqueConstraint,
    text,
)
from sqlalchemy.engine.interfaces import Dialect
from sqlalchemy.schema import CreateIndex, CreateTable

METADATA = MetaData()

TEXT = Text().with_variant(Text(collation="C"), "postgresql")
"""Compared byte by byte: ids sort by time, and a database sorts by some language's rules otherwise."""

_NOT_OF_EVERY_STEP = text("type NOT IN ('step_started', 'step_completed')")

_UNFINISHED_WITH_KEY = text(
    "dedup_key IS NOT NULL AND status NOT IN ('succeeded', 'failed', 'cancelled')"
)

EVENTS = Table(
    "events",
    METADATA,
    # On SQLite an INTEGER primary key is the row's own address: no second tree to write.
    Column(
        "position",
        BigInteger().with_variant(Integer, "sqlite"),
        primary_key=True,
        autoincrement=False,
    ),
    Column("run_id", TEXT, nullable=False),
    Column("seq", Integer, nullable=False),
    Column("type", TEXT, nullable=False),
    Column("at", BigInteger, nullable=False),
    Column("body", TEXT, nullable=False),
    UniqueConstraint("run_id", "seq", name="events_in_run"),
    # The two that every step writes are left out: a page less to write for each of them.
    Index(
        "events_by_type",
        "type",
        "position",
        sqlite_where=_NOT_OF_EVERY_STEP,
        postgresql_where=_NOT_OF_EVERY_STEP,
    ),
)

RUNS = Table(
    "runs",
    METADATA,
    Column("id", TEXT, primary_key=True),
    Column("tail", TEXT, nullable=False),
    Column("flow", TEXT, nullable=False),
    Column("status", TEXT, nullable=False),
    Column("queue", TEXT),
    Column("priority", Integer, nullable=False),
    Column("dedup_key", TEXT),
    Column("parent_id", TEXT),
    Column("not_before", BigInteger),
    Column("claimed_at", BigInteger),
    Column("wake_at", BigInteger),
    Column("finished_at", BigInteger),
    Column("owner", TEXT),
    Column("fence", Integer, nullable=False),
    Column("cancel_requested", Integer, nullable=False),
    Column("body", TEXT, nullable=False),
    Index("runs_by_tail", "tail"),
    Index("runs_by_status", "status", "id"),
    Index(
        "runs_by_queue",
        "queue",
        "status",
        "priority",
        sqlite_where=text("queue IS NOT NULL"),
        postgresql_where=text("queue IS NOT NULL"),
    ),
    Index("runs_by_flow", "flow", "id"),
    Index(
        "runs_by_claim",
        "queue",
        "claimed_at",
        sqlite_where=text("queue IS NOT NULL"),
        postgresql_where=text("queue IS NOT NULL"),
    ),
    Index(
        "runs_by_dedup",
        text("coalesce(queue, '')"),
        "dedup_key",
        unique=True,
        sqlite_where=_UNFINISHED_WITH_KEY,
        postgresql_where=_UNFINISHED_WITH_KEY,
    ),
    Index(
        "runs_by_parent",
        "parent_id",
        sqlite_where=text("parent_id IS NOT NULL"),
        postgresql_where=text("parent_id IS NOT NULL"),
    ),
    Index(
        "runs_by_end",
        "finished_at",
        "id",
        sqlite_where=text("finished_at IS NOT NULL"),
        postgresql_where=text("finished_at IS NOT NULL"),
    ),
    sqlite_with_rowid=False,
)

STEPS = Table(
    "steps",
    METADATA,
    Column("run_id", TEXT, nullable=False),
    Column("key", TEXT, nullable=False),
    Column("ordinal", Integer, nullable=False),
    Column("status", TEXT, nullable=False),
    Column("body", TEXT, nullable=False),
    PrimaryKeyConstraint("run_id", "key"),
    sqlite_with_rowid=False,
)

SIGNALS = Table(
    "signals",
    METADATA,
    Column("id", TEXT, nullable=False),
    Column("run_id", TEXT, nullable=False),
    Column("name", TEXT, nullable=False),
    Column("body", TEXT, nullable=False),
    PrimaryKeyConstraint("run_id", "name", "id"),
    sqlite_with_rowid=False,
)

CALLS = Table(
    "calls",
    METADATA,
    Column("key", TEXT, primary_key=True),
    Column("run_id", TEXT, nullable=False),
    Column("status", TEXT, nullable=False),
    Column("body", TEXT, nullable=False),
    Index("calls_by_run", "run_id", "status"),
    sqlite_with_rowid=False,
)

APPROVALS = Table(
    "approvals",
    METADATA,
    Column("id", TEXT, primary_key=True),
    Column("tail", TEXT, nullable=False),
    Column("run_id", TEXT, nullable=False),
    Column("digest", TEXT, nullable=False),
    Column("status", TEXT, nullable=False),
    Column("body", TEXT, nullable=False),
    Index("approvals_by_tail", "tail"),
    Index("approvals_by_status", "status", "id"),
    Index("approvals_by_digest", "digest"),
    Index("approvals_by_run", "run_id"),
    sqlite_with_rowid=False,
)

RECEIPTS = Table(
    "receipts",
    METADATA,
    Column("run_id", TEXT, nullable=False),
    Column("number", Integer, nullable=False),
    Column("body", TEXT, nullable=False),
    PrimaryKeyConstraint("run_id", "number"),
    sqlite_with_rowid=False,
)

COUNTERS = Table(
    "counters",
    METADATA,
    Column("counter", TEXT, nullable=False),
    Column("at", BigInteger, nullable=False),
    Column("amount", Double, nullable=False),
    PrimaryKeyConstraint("counter", "at"),
    sqlite_with_rowid=False,
)

SCHEDULES = Table(
    "schedules",
    METADATA,
    Column("name", TEXT, primary_key=True),
    Column("body", TEXT, nullable=False),
    sqlite_with_rowid=False,
)

WORKERS = Table(
    "workers",
    METADATA,
    Column("id", TEXT, primary_key=True),
    Column("body", TEXT, nullable=False),
    sqlite_with_rowid=False,
)


def creation_statements(dialect: Dialect) -> Iterator[str]:
    """The statements that make an empty database of this schema."""
    for table in METADATA.sorted_tables:
        yield str(CreateTable(table).compile(dialect=dialect))
        for index in sorted(table.indexes, key=lambda index: str(index.name)):
            yield str(CreateIndex(index).compile(dialect=dialect))

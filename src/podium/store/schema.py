"""Schema of the database: one set of tables for SQLite and PostgreSQL, written as each of them wants it.

Columns are what is searched for; `body` holds the whole model as JSON. Times are integers: microseconds since 1970, UTC.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple


class SqlDialect(NamedTuple):
    """A database's way of writing the column types below."""

    types: Mapping[str, str]
    key_table: str
    """The clause behind a table whose key is no row number."""


SQLITE = SqlDialect(
    # An INTEGER primary key is the row's own address: no second tree to write.
    {"TEXT": "TEXT", "POSITION": "INTEGER", "DOUBLE": "DOUBLE"},
    key_table=" WITHOUT ROWID",
)
POSTGRESQL = SqlDialect(
    # Compared byte by byte: ids sort by time, and a database sorts by some language's rules otherwise.
    {"TEXT": 'TEXT COLLATE "C"', "POSITION": "BIGINT", "DOUBLE": "DOUBLE PRECISION"},
    key_table="",
)


class Table(NamedTuple):
    name: str
    definitions: tuple[str, ...]
    """Columns in their order, each as `name TYPE` and its constraint."""
    constraints: tuple[str, ...]
    """The primary key, then others."""
    indexes: tuple[str, ...] = ()
    """Statements without their `CREATE`."""
    has_rowid: bool = False
    """On SQLite the key is the row's own number."""

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(definition.split()[0] for definition in self.definitions)

    def statements(self, dialect: SqlDialect) -> Iterator[str]:
        """Statements that make the table and its indexes."""
        columns = (
            " ".join(dialect.types.get(token, token) for token in definition.split())
            for definition in self.definitions
        )
        lines = ",\n  ".join((*columns, *self.constraints))
        ending = "" if self.has_rowid else dialect.key_table
        yield f"CREATE TABLE {self.name} (\n  {lines}\n){ending}"
        yield from (f"CREATE {index}" for index in self.indexes)


TABLES = (
    Table(
        "approvals",
        (
            "id TEXT NOT NULL",
            "tail TEXT NOT NULL",
            "run_id TEXT NOT NULL",
            "digest TEXT NOT NULL",
            "status TEXT NOT NULL",
            "body TEXT NOT NULL",
        ),
        ("PRIMARY KEY (id)",),
        (
            "INDEX approvals_by_digest ON approvals (digest)",
            "INDEX approvals_by_run ON approvals (run_id)",
            "INDEX approvals_by_status ON approvals (status, id)",
            "INDEX approvals_by_tail ON approvals (tail)",
        ),
    ),
    Table(
        "calls",
        (
            "key TEXT NOT NULL",
            "run_id TEXT NOT NULL",
            "status TEXT NOT NULL",
            "body TEXT NOT NULL",
        ),
        ("PRIMARY KEY (key)",),
        ("INDEX calls_by_run ON calls (run_id, status)",),
    ),
    Table(
        "counters",
        (
            "counter TEXT NOT NULL",
            "at BIGINT NOT NULL",
            "amount DOUBLE NOT NULL",
        ),
        ("PRIMARY KEY (counter, at)",),
    ),
    Table(
        "events",
        (
            "position POSITION NOT NULL",
            "run_id TEXT NOT NULL",
            "seq INTEGER NOT NULL",
            "type TEXT NOT NULL",
            "at BIGINT NOT NULL",
            "body TEXT NOT NULL",
        ),
        ("PRIMARY KEY (position)", "CONSTRAINT events_in_run UNIQUE (run_id, seq)"),
        (
            # The two types that every step writes are left out: a page less to write for each of them.
            "INDEX events_by_type ON events (type, position) "
            "WHERE type NOT IN ('step_started', 'step_completed')",
        ),
        has_rowid=True,
    ),
    Table(
        "receipts",
        (
            "run_id TEXT NOT NULL",
            "number INTEGER NOT NULL",
            "body TEXT NOT NULL",
        ),
        ("PRIMARY KEY (run_id, number)",),
    ),
    Table(
        "runs",
        (
            "id TEXT NOT NULL",
            "tail TEXT NOT NULL",
            "flow TEXT NOT NULL",
            "status TEXT NOT NULL",
            "queue TEXT",
            "priority INTEGER NOT NULL",
            "dedup_key TEXT",
            "parent_id TEXT",
            "not_before BIGINT",
            "claimed_at BIGINT",
            "wake_at BIGINT",
            "finished_at BIGINT",
            "owner TEXT",
            "fence INTEGER NOT NULL",
            "cancel_requested INTEGER NOT NULL",
            "body TEXT NOT NULL",
        ),
        ("PRIMARY KEY (id)",),
        (
            "INDEX runs_by_claim ON runs (queue, claimed_at) WHERE queue IS NOT NULL",
            "UNIQUE INDEX runs_by_dedup ON runs (coalesce(queue, ''), dedup_key) "
            "WHERE dedup_key IS NOT NULL AND status NOT IN ('succeeded', 'failed', 'cancelled')",
            "INDEX runs_by_end ON runs (finished_at, id) WHERE finished_at IS NOT NULL",
            "INDEX runs_by_flow ON runs (flow, id)",
            "INDEX runs_by_parent ON runs (parent_id) WHERE parent_id IS NOT NULL",
            "INDEX runs_by_queue ON runs (queue, status, priority) WHERE queue IS NOT NULL",
            "INDEX runs_by_status ON runs (status, id)",
            "INDEX runs_by_tail ON runs (tail)",
        ),
    ),
    Table(
        "schedules",
        ("name TEXT NOT NULL", "body TEXT NOT NULL"),
        ("PRIMARY KEY (name)",),
    ),
    Table(
        "signals",
        (
            "id TEXT NOT NULL",
            "run_id TEXT NOT NULL",
            "name TEXT NOT NULL",
            "body TEXT NOT NULL",
        ),
        ("PRIMARY KEY (run_id, name, id)",),
    ),
    Table(
        "steps",
        (
            "run_id TEXT NOT NULL",
            "key TEXT NOT NULL",
            "ordinal INTEGER NOT NULL",
            "status TEXT NOT NULL",
            "body TEXT NOT NULL",
        ),
        ("PRIMARY KEY (run_id, key)",),
    ),
    Table("workers", ("id TEXT NOT NULL", "body TEXT NOT NULL"), ("PRIMARY KEY (id)",)),
)
"""Every table, in the order of their names."""


def creation_statements(dialect: SqlDialect) -> Iterator[str]:
    """Statements that make an empty database of this schema."""
    for table in TABLES:
        yield from table.statements(dialect)

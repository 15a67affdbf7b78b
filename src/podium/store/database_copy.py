"""Copy of a project from one database to another, with proof of all receipt chains."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import NamedTuple

from podium.core.decisions import Receipt
from podium.core.errors import BadInput, NotPossibleNow, StoreUnusable
from podium.core.model import FrozenModel
from podium.core.work import Run, WorkerHeartbeat
from podium.store.database_snapshot import (
    Row,
    SnapshotReader,
    SnapshotWriter,
    SqliteFile,
    WholeDatabase,
    selection,
)
from podium.store.receipts import Anchors, ChainHead, Sealer, load_or_create_key, verify
from podium.store.rows import StoreConnection
from podium.store.schema import TABLES, Table
from podium.store.sqlite import SCHEMA_VERSION
from podium.store.view import SqlView


class ReceiptKeys(NamedTuple):
    """The keys that receipts are proved with."""

    sealer: Sealer
    anchors: Anchors
    alone: bool
    """No other machine seals: a chain without a head beside it lost the file that held it."""


def proof_with(key: Path, key_dir: Path, *, alone: bool) -> ReceiptKeys | None:
    """The key in this file with the heads in `vault`; None when there is no key yet."""
    return (
        ReceiptKeys(Sealer(load_or_create_key(key)), Anchors(key_dir), alone)
        if key.exists()
        else None
    )


def fitting(proof: ReceiptKeys | None, reading: SnapshotReader) -> ReceiptKeys | None:
    """The proof, unless the database says that another key sealed its receipts."""
    print_ = reading.key_print()
    return proof if proof and print_ in ("", proof.sealer.fingerprint) else None


def count_chains(reading: SnapshotReader) -> int:
    """Runs that have receipts."""
    return int(reading.execute("SELECT count(DISTINCT run_id) FROM receipts").fetchone()[0])


def find_chain_problems(
    reading: SnapshotReader, proof: ReceiptKeys | None
) -> Iterator[tuple[str, str]]:
    """Run and problem of everything that is wrong with a chain. Memory holds one chain at a time."""
    proof = fitting(proof, reading)
    if proof is None:
        if count_chains(reading):
            yield "", "the key they were sealed with is missing, so none can be verified"
        return
    run_ids: set[str] = set()
    for run_id, receipts in _chains(reading):
        run_ids.add(run_id)
        heads = _PartialAnchors(proof.anchors, ())
        for finding in verify({run_id: receipts}, proof.sealer, heads, alone=proof.alone):
            number = "" if finding.number is None else f"receipt {finding.number}: "
            yield finding.run_id, f"{finding.kind}: {number}{finding.problem}"
    emptied = _PartialAnchors(
        proof.anchors, [run for run in proof.anchors.runs() if run not in run_ids]
    )
    for finding in verify({}, proof.sealer, emptied):
        yield finding.run_id, f"{finding.kind}: {finding.problem}"


def anchor_chains(
    reading: SnapshotReader, proof: ReceiptKeys, unproved: Collection[str]
) -> Iterator[OSError]:
    """Note the end of every chain but the unproved, where this machine knows none or an earlier one.

    Gives what could not be written.
    """
    view = SqlView(reading, reading.now())
    for batch in reading.batches("SELECT DISTINCT run_id FROM receipts"):
        for (run_id,) in batch:
            last, head = view.last_receipt(run_id), proof.anchors.head(run_id)
            if run_id in unproved or last is None or (head and head.number >= last.number):
                continue
            try:
                proof.anchors.write(run_id, last.number, last.seal)
            except OSError as error:
                yield error


def _chains(reading: SnapshotReader) -> Iterator[tuple[str, list[Receipt]]]:
    view = SqlView(reading, reading.now())
    for batch in reading.batches("SELECT DISTINCT run_id FROM receipts"):
        for (run_id,) in batch:
            yield run_id, view.receipts(run_id)


class _PartialAnchors(Anchors):
    """The anchored heads, with only some runs counted among those that must have receipts."""

    def __init__(self, anchors: Anchors, runs: Sequence[str]) -> None:
        self._anchors = anchors
        self._runs = list(runs)

    def heads(self, run_id: str) -> list[ChainHead]:
        return self._anchors.heads(run_id)

    def runs(self) -> list[str]:
        return self._runs


STILL_ALIVE = timedelta(seconds=30)
"""A worker that was heard of so recently may still write: twice the lease of a run."""

_HEARTBEATS = "workers"
"""The one table that stays behind: it says who is alive in this database now."""

ProgressCallback = Callable[[str, int, int], None]
"""Takes what is being done with a table, rows so far and rows in all."""

Enqueue = Callable[[StoreConnection, Run, datetime], None]
"""Hands a queued run to whoever dispatches the queues of the target."""


_one_text = json.JSONEncoder(ensure_ascii=True, separators=(",", ":")).encode
"""The same text for the same row, whichever database it comes from."""


class TableCopy(FrozenModel):
    """A table that is the same on both sides."""

    name: str
    rows: int
    digest: str
    """Of all rows, whatever their order, in hex."""


class DatabaseCopy(FrozenModel):
    """Result of a copy; all of it was read back and compared before it was committed."""

    source: str
    target: str
    tables: tuple[TableCopy, ...]
    chains: int = 0
    """Runs that have receipts."""
    proved: bool = False
    """True if the chains were checked with the key of the receipts, in the target."""
    chain_faults: tuple[str, ...] = ()
    """Problems of receipt chains, which were there before: every row is the same."""

    @property
    def rows(self) -> int:
        return sum(table.rows for table in self.tables)


def copy_database(
    source: WholeDatabase,
    target: WholeDatabase,
    *,
    progress: ProgressCallback = lambda doing, rows, of: None,
    enqueue: Enqueue | None = None,
    proof: ReceiptKeys | None = None,
    anchor: bool = False,
) -> DatabaseCopy:
    """Copy everything into an empty database, in one transaction.

    Raises `NotPossibleNow` when somebody works in either, or when the target holds anything, and
    `StoreUnusable` when what arrived is not what was sent. The target is then as it was, and so it
    is after a kill. `enqueue` is called for every run of a queue that waits for its turn; `proof` holds
    the key of the receipts, to prove their chains once more where they have arrived. With `anchor` the
    ends of those that were proved are noted beside that key: other machines may have kept them before.
    """
    _refuse_itself(source, target)
    current_version(source)
    with source.reading() as reading:
        _refuse_workers(reading, source)
        target.migrate()
        with target.filling() as filling:
            _refuse_filled(filling, target)
            filling.execute(f"DELETE FROM {_HEARTBEATS}")  # noqa: S608 - our own name
            tables = [table for table in TABLES if table.name != _HEARTBEATS]
            sent = [_copy_table(reading, filling, table, progress) for table in tables]
            _compare(filling, target, tables, sent, progress)
            chains = count_chains(filling)
            proof = fitting(proof, reading)
            chain_problems = list(find_chain_problems(filling, proof)) if proof else []
            if print_ := reading.key_print() or (proof.sealer.fingerprint if proof else ""):
                filling.keep_key_print(print_)
            if enqueue is not None:
                _enqueue_waiting(filling, enqueue)
    if proof and anchor:
        with target.reading() as arrived:
            unproved = {run_id for run_id, _ in chain_problems}
            for error in anchor_chains(arrived, proof, unproved):
                chain_problems.append(
                    ("", f"copied, but the end of a chain could not be anchored: {error}")
                )
    return DatabaseCopy(
        source=source.name,
        target=target.name,
        tables=tuple(sent),
        chains=chains,
        proved=proof is not None,
        chain_faults=tuple(
            f"run {run_id}: {problem}" if run_id else problem for run_id, problem in chain_problems
        ),
    )


class RowDigest:
    """A count and a digest of rows that do not depend on the order they come in.

    Databases sort text by different rules, so that order is no part of what must agree.
    """

    def __init__(self) -> None:
        self.rows = 0
        self._sum = 0

    def add(self, rows: Iterable[Row]) -> None:
        for row in rows:
            # Every row's hash counts as a number, and a number twice is not the number once.
            text = _one_text(row).encode("ascii")
            self._sum += int.from_bytes(hashlib.sha256(text).digest())
            self.rows += 1

    def hex(self) -> str:
        return f"{self._sum % 2**256:064x}"


def _refuse_itself(source: WholeDatabase, target: WholeDatabase) -> None:
    if source.name == target.name:
        raise NotPossibleNow(f"{source.name!r} cannot be copied to itself; name another target")


def current_version(database: WholeDatabase) -> int:
    """The version of its schema, which is this Podium's. Raises `StoreUnusable` when it is not."""
    version = database.version()
    if version == 0:
        raise StoreUnusable(
            database.name, "it contains no Podium project", "name a database that does"
        )
    if version < SCHEMA_VERSION:
        raise StoreUnusable(
            database.name,
            f"its schema is version {version}, but this Podium needs {SCHEMA_VERSION}",
            "run `podium db migrate` on it first",
        )
    return version


def _refuse_workers(reading: SnapshotReader, database: WholeDatabase) -> None:
    since = reading.now() - STILL_ALIVE
    heartbeats = [
        WorkerHeartbeat.model_validate_json(row[0])
        for row in reading.execute("SELECT body FROM workers ORDER BY id").fetchall()
    ]
    alive = [heartbeat for heartbeat in heartbeats if heartbeat.beat_at > since]
    if alive:
        who = ", ".join(f"{heartbeat.host} (pid {heartbeat.pid})" for heartbeat in alive[:5])
        more = f" and {len(alive) - 5} more" if len(alive) > 5 else ""
        raise NotPossibleNow(
            f"{database.name} is in use by {who}{more}; stop them (Ctrl-C or TERM leaves every run at "
            f"its checkpoint). A process that was killed counts as running for {STILL_ALIVE.seconds} s"
        )


def _refuse_filled(filling: SnapshotWriter, target: WholeDatabase) -> None:
    _refuse_workers(filling, target)
    for table in TABLES:
        statement = f"SELECT 1 FROM {table.name} LIMIT 1"  # noqa: S608 - our own names
        if table.name != _HEARTBEATS and filling.execute(statement).fetchone() is not None:
            raise NotPossibleNow(
                f"{target.name} is not empty (it contains {table.name}) and was not changed; "
                f"to empty it: {target.to_empty}"
            )


def _copy_table(
    reading: SnapshotReader, filling: SnapshotWriter, table: Table, progress: ProgressCallback
) -> TableCopy:
    digest = RowDigest()
    passing = _passing(reading, table, digest, f"copying {table.name}", progress)
    filling.insert(table.name, table.columns, passing)
    return TableCopy(name=table.name, rows=digest.rows, digest=digest.hex())


def _compare(
    filling: SnapshotWriter,
    target: WholeDatabase,
    tables: list[Table],
    sent: list[TableCopy],
    progress: ProgressCallback,
) -> None:
    """Read everything back before it is committed."""
    for table, expected in zip(tables, sent, strict=True):
        digest = RowDigest()
        for _ in _passing(filling, table, digest, f"comparing {table.name}", progress):
            pass
        if (digest.rows, digest.hex()) != (expected.rows, expected.digest):
            raise StoreUnusable(
                target.name,
                f"{table.name} differ from the source ({expected.rows} rows sent, {digest.rows} read back); "
                "nothing was copied",
                "check the source with `podium db check`, then try again",
            )


def _passing(
    reading: SnapshotReader, table: Table, digest: RowDigest, doing: str, progress: ProgressCallback
) -> Iterator[Row]:
    """Every row of a table, taken down in `digest` on its way."""
    counted = reading.execute(f"SELECT count(*) FROM {table.name}").fetchone()[0]  # noqa: S608 - our own names
    for batch in reading.batches(selection(table)):
        digest.add(batch)
        yield from batch
        progress(doing, digest.rows, counted)


def _enqueue_waiting(filling: SnapshotWriter, enqueue: Enqueue) -> None:
    statement = "SELECT body FROM runs WHERE queue IS NOT NULL AND status = 'queued' ORDER BY id"
    now = filling.now()
    for batch in filling.batches(statement):
        for (body,) in batch:
            enqueue(filling, Run.model_validate_json(body), now)


def database_named(text: str) -> WholeDatabase:
    """The database a person means by a path or a URL. Raises `BadInput` for any other kind."""
    scheme, separator, rest = text.partition("://")
    if not separator:
        return SqliteFile(_file(Path(text).expanduser()))
    if scheme in ("postgresql", "postgres"):
        from podium.store.postgres_snapshot import PostgresDatabase

        return PostgresDatabase(text)
    if scheme == "sqlite" and rest.startswith("/"):
        return SqliteFile(_file(Path(rest[1:])))
    raise BadInput(
        f"{scheme!r} is not a supported kind of database; use postgresql://USER@HOST/NAME, "
        "or the path of a SQLite file or of a project"
    )


def _file(path: Path) -> Path:
    """The file itself: a project and a state folder stand for the one inside."""
    from podium.store.sqlite_store import DATABASE_NAME

    if (path / ".podium").is_dir():
        return path / ".podium" / DATABASE_NAME
    return path / DATABASE_NAME if path.is_dir() else path

"""SQLite files: opened safely, with a disk reserve for the ends of runs, and errors that say plainly why one cannot be used."""

from __future__ import annotations

import json
import os
import sqlite3
import sys
import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import datetime
from functools import wraps
from pathlib import Path
from typing import Concatenate, ParamSpec, TypeVar
from urllib.parse import quote

from podium.core.errors import (
    NO_SPACE,
    PodiumError,
    StoreBusy,
    StoreCorrupt,
    StoreForeign,
    StoreFull,
    StoreNewer,
    StoreReadOnly,
    StoreUnusable,
)
from podium.platform import make_private_folder
from podium.platform.safe_open import open_or_create, open_plain
from podium.store.rows import microseconds
from podium.store.schema import SQLITE, creation_statements

RESERVE_NAME = "reserve"
RESERVE_BYTES = 2 * 1024 * 1024
"""About 500 pages of SQLite's log: more than the end of a run and its answer take."""
SLICE_BYTES = 128 * 1024
LAST_BYTES = 512 * 1024
"""Not given to ordinary writes, which a tree that fills the disk may outrun: for ends of runs alone."""
LOOK_SECONDS = 0.5
"""Seconds for which a full disk is taken to be still full."""


class DiskReserve:
    """A file of nothing that is shortened when the disk is full, and made whole when there is room again.

    Processes that share the folder share it. Every method may be called from any thread.
    """

    def __init__(self, folder: Path) -> None:
        self._path = folder / RESERVE_NAME
        self._lock = threading.Lock()
        self._whole = True
        """Cleared by the first release; nothing is looked at before that."""
        self._looked = 0.0

    def fill(self) -> None:
        """Make it as large as it should be, and on a small disk half of what is free."""
        with self._lock:
            self._whole = self._is_filled()

    def is_whole(self) -> bool:
        """False once it had to be used, or could not be made, and while there is no room to make it."""
        if self._whole:
            return True
        with self._lock:
            now = time.monotonic()
            if now - self._looked >= LOOK_SECONDS:
                self._looked = now
                self._whole = self._is_filled()
            return self._whole

    def release(self, *, last: bool = False) -> bool:
        """Free some space; with `last` also what is kept for ends. False when none is left to free."""
        with self._lock:
            self._whole = False
            self._looked = time.monotonic()
            size = _size_of(self._path)
            least = 0 if last else LAST_BYTES
            if size <= least:
                return False
            return _shorten(self._path, max(least, size - SLICE_BYTES))

    def _is_filled(self) -> bool:
        size = _size_of(self._path)
        if size >= RESERVE_BYTES:
            return True
        try:
            target_bytes = min(RESERVE_BYTES, (size + free_bytes(self._path.parent)) // 2)
            if target_bytes < size or target_bytes <= LAST_BYTES:
                return size > LAST_BYTES
            _allocate(self._path, target_bytes)
        except OSError as error:
            # Where it cannot be made for another reason, nobody is kept from working.
            return error.errno not in NO_SPACE
        return True


def free_bytes(folder: Path) -> int:
    """Bytes that this user may still write in the folder's file system."""
    about = os.statvfs(folder)
    if not about.f_blocks:
        return sys.maxsize  # it does not say
    return about.f_bavail * about.f_frsize


def _size_of(path: Path) -> int:
    try:
        return path.lstat().st_size
    except OSError:
        return 0


def _shorten(path: Path, size: int) -> bool:
    """Cut the file down. False where it cannot be done, or the file is a link to something else."""
    try:
        handle = open_plain(path, single_name=True, flags=os.O_RDWR)
    except OSError:
        return False
    try:
        os.ftruncate(handle, size)
    except OSError:
        return False
    finally:
        os.close(handle)
    return True


def _allocate(path: Path, size: int) -> None:
    handle = open_or_create(path)
    try:
        if hasattr(os, "posix_fallocate"):
            os.posix_fallocate(handle, 0, size)
        else:  # macOS
            os.pwrite(handle, bytes(size), 0)
    finally:
        os.close(handle)


SCHEMA_VERSION = 2
APPLICATION_ID = 0x506F6469
"""`Podi`: marks the file as ours."""

BUSY_SECONDS = 20.0

FULL_BYTES = 256 * 1024
"""With less than this free, an I/O error is taken for a full disk: the log's index alone grows by 32 KB."""

P = ParamSpec("P")
T = TypeVar("T")
Migration = Callable[[sqlite3.Connection], None]

_PAGE = 500
_ENDS = ("-wal", "-shm", "-journal", "")
"""Endings of a database's file names. The file itself is the last: a log without it is nobody's."""


def _keep_when_runs_ended(connection: sqlite3.Connection) -> None:
    """1 → 2: a column by which runs that ended long ago are found without reading them all."""
    connection.execute("ALTER TABLE runs ADD COLUMN finished_at BIGINT")
    connection.execute(
        "CREATE INDEX runs_by_end ON runs (finished_at, id) WHERE finished_at IS NOT NULL"
    )
    last = ""
    while rows := connection.execute(
        "SELECT id, body FROM runs WHERE id > ? ORDER BY id LIMIT ?", (last, _PAGE)
    ).fetchall():
        connection.executemany(
            "UPDATE runs SET finished_at = ? WHERE id = ?",
            [(_finished_at(body), run_id) for run_id, body in rows],
        )
        last = rows[-1][0]


MIGRATIONS: Mapping[int, Migration] = {1: _keep_when_runs_ended}
"""Schema version → what lifts a file of that version to the next one."""


def _with_reserve(work: Callable[Concatenate[Path, P], T]) -> Callable[Concatenate[Path, P], T]:
    """Give up a slice of the reserve, once, where a file cannot be opened on a full disk: reading takes a little too."""

    @wraps(work)
    def done(path: Path, /, *args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return work(path, *args, **kwargs)
        except StoreFull:
            if not DiskReserve(path.parent).release():
                raise
        return work(path, *args, **kwargs)

    return done


def connect(path: Path) -> sqlite3.Connection:
    """A connection that commits durably: WAL, synchronous=FULL. The file exists and is of our version."""
    with explained(path):
        connection = _open(path)
        connection.execute("PRAGMA synchronous=FULL")
        return connection


@_with_reserve
def prepare(path: Path, migrations: Mapping[int, Migration] = MIGRATIONS) -> None:
    """Make sure the file exists, is ours, and has today's schema.

    Creating and upgrading are one transaction each, so that a process killed at any instant
    leaves a file that the next one opens. Nothing is changed in a file that is not ours or newer.
    """
    _make_private(path)
    with explained(path):
        connection = _open(path)
        try:
            if _version(connection, path) != SCHEMA_VERSION:
                _build(connection, path, migrations)
            # Switching takes the file for itself for a moment, so only do it when it is needed.
            mode = connection.execute("PRAGMA journal_mode").fetchone()[0]
            if mode != "wal" and not _is_read_only(path):
                connection.execute("PRAGMA journal_mode=WAL")
        finally:
            connection.close()


@_with_reserve
def is_empty(path: Path) -> bool:
    """Tell whether the file is missing or holds neither a run nor a receipt. It is not made, nor changed."""
    if not path.exists() or not path.stat().st_size:
        return True
    with explained(path):
        connection = _open(path)
        try:
            tables = connection.execute(
                "SELECT name FROM sqlite_master WHERE type = 'table' AND name IN ('runs', 'receipts')"
            ).fetchall()
            statement = "SELECT 1 FROM {} LIMIT 1"
            return not any(connection.execute(statement.format(*row)).fetchone() for row in tables)
        finally:
            connection.close()


def archive(path: Path, now: datetime) -> Path | None:
    """Move the file away, with its log. Returns where it is; None: there was none."""
    there = [end for end in _ENDS if os.path.lexists(f"{path}{end}")]
    if not there:
        return None
    backup = path.with_name(f"{path.name}-{now:%Y%m%dT%H%M%SZ}")
    if any(os.path.lexists(f"{backup}{end}") for end in _ENDS):
        raise StoreUnusable(str(backup), "it already exists", "try again in a second")
    for end in there:
        Path(f"{path}{end}").rename(f"{backup}{end}")
    return backup


@_with_reserve
def chain_ends(path: Path, run_ids: Collection[str]) -> dict[str, int]:
    """Numbers of the last receipts of those of these runs that have any in the file. It is not made, nor changed."""
    if not run_ids or not path.exists() or not path.stat().st_size:
        return {}
    with explained(path):
        connection = _open(path)
        try:
            if not connection.execute(
                "SELECT 1 FROM sqlite_master WHERE name = 'receipts'"
            ).fetchone():
                return {}
            statement = "SELECT max(number) FROM receipts WHERE run_id = ?"
            ends = {run: connection.execute(statement, (run,)).fetchone()[0] for run in run_ids}
            return {run: number for run, number in ends.items() if number is not None}
        finally:
            connection.close()


def run_statuses(path: Path) -> dict[str, str]:
    """Status of every run in the file, by id. Nothing is written, also where the file could be."""
    if not path.exists() or not path.stat().st_size:
        return {}
    with explained(path):
        connection = sqlite3.connect(_reading_address(path), uri=True, timeout=BUSY_SECONDS)
        try:
            if not connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'runs'").fetchone():
                return {}
            return dict(connection.execute("SELECT id, status FROM runs").fetchall())
        finally:
            connection.close()


def seals_of(path: Path, run_id: str) -> dict[int, str]:
    """The seals of a run's receipts in the file, by number; none where there is no such file."""
    if not path.exists():
        return {}
    with explained(path):
        connection = _open(path)
        try:
            rows = connection.execute(
                "SELECT number, body FROM receipts WHERE run_id = ?", (run_id,)
            ).fetchall()
        finally:
            connection.close()
    return {number: json.loads(body)["seal"] for number, body in rows}


def quick_check(path: Path) -> str:
    """SQLite's own look at the file: `ok`, or what is broken."""
    with explained(path):
        connection = _open(path)
        try:
            return str(connection.execute("PRAGMA quick_check(1)").fetchone()[0])
        finally:
            connection.close()


@contextmanager
def explained(path: Path) -> Iterator[None]:
    """Turn SQLite's errors into ours."""
    try:
        yield
    except sqlite3.Error as error:
        raise explain(error, path) from error


def explain(error: sqlite3.Error, path: Path) -> PodiumError:
    """The error of the tree that says what to do about this one."""
    code = _primary_code(error)
    name = str(path)
    match code:
        case sqlite3.SQLITE_CORRUPT | sqlite3.SQLITE_NOTADB:
            return StoreCorrupt(
                name,
                f"the file is damaged ({error})",
                "move it away and restore a backup; `sqlite3 FILE .recover` saves what is readable",
            )
        case _ if is_full(error, path):
            return disk_full(path)
        case sqlite3.SQLITE_READONLY | sqlite3.SQLITE_CANTOPEN | sqlite3.SQLITE_PERM:
            return StoreReadOnly(
                name,
                f"it cannot be written ({error})",
                "give this user write permission on the file and its folder",
            )
        case sqlite3.SQLITE_BUSY | sqlite3.SQLITE_LOCKED:
            return StoreBusy(
                f"{name}: another process kept it locked for {BUSY_SECONDS:.0f} s; "
                "nothing was lost, run the same command again"
            )
        case _:
            return StoreUnusable(
                name, f"the database failed ({error})", "check it with `podium doctor`"
            )


def is_full(error: BaseException, path: Path) -> bool:
    """Tell whether SQLite failed for want of space, which it also calls an I/O error or a file it cannot open."""
    code = _primary_code(error)
    if code in (sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN):
        with suppress(OSError):
            return free_bytes(path.parent) < FULL_BYTES
    return code == sqlite3.SQLITE_FULL


def disk_full(path: Path) -> StoreFull:
    """The error that says so, and where to make room."""
    return StoreFull(
        str(path),
        "the disk is full; this write failed, all earlier ones are safe",
        f"free space in {str(path.parent)!r} and run the same command again",
    )


def _primary_code(error: BaseException) -> int:
    """SQLite's result code: in the low byte; the rest refines it."""
    return int(getattr(error, "sqlite_errorcode", 0)) & 0xFF


def _open(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(
        _address(path),
        uri=True,
        timeout=BUSY_SECONDS,
        isolation_level=None,
        check_same_thread=False,
        cached_statements=256,
    )
    # One page of cache is never worth an fsync less; temp tables stay in memory.
    connection.execute("PRAGMA temp_store=MEMORY")
    return connection


def _address(path: Path) -> str:
    """The file as SQLite opens it: also where nothing may be written, so that a record can still be read."""
    return _reading_address(path) if _is_read_only(path) else f"file:{quote(str(path))}"


def _reading_address(path: Path) -> str:
    address = f"file:{quote(str(path))}"
    log = path.with_name(f"{path.name}-wal")
    # Without a log nobody is at work in it, and SQLite needs no files beside it.
    return f"{address}?{'mode=ro' if log.exists() and log.stat().st_size else 'immutable=1'}"


def _is_read_only(path: Path) -> bool:
    if not path.exists():
        return False
    return not (os.access(path, os.W_OK) and os.access(path.parent, os.W_OK))


def _make_private(path: Path) -> None:
    try:
        make_private_folder(path.parent)
        # Only a file that is new is touched here: closing any other descriptor of a database drops
        # every lock that this process holds on it through SQLite.
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_CLOEXEC, 0o600))
    except FileExistsError:
        return
    except OSError as error:
        if error.errno in NO_SPACE:
            raise disk_full(path) from error
        raise StoreReadOnly(
            str(path),
            f"it cannot be opened for writing ({error.strerror})",
            "give this user write permission on the file and its folder",
        ) from error


def _version(connection: sqlite3.Connection, path: Path) -> int:
    """The schema version of our own file; 0 for an empty one. Raises for anybody else's."""
    tables = int(connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0])
    version = int(connection.execute("PRAGMA user_version").fetchone()[0])
    # Last, for another process may make the file meanwhile, with tables, version and mark in one commit.
    application_id = int(connection.execute("PRAGMA application_id").fetchone()[0])
    if application_id != APPLICATION_ID and (application_id or version or tables):
        raise StoreForeign(
            str(path), "this database belongs to another program", "name another file or folder"
        )
    if version > SCHEMA_VERSION:
        raise StoreNewer(
            str(path),
            f"a newer Podium made it (schema {version}, this one knows {SCHEMA_VERSION})",
            "upgrade Podium",
        )
    return version


def _build(connection: sqlite3.Connection, path: Path, migrations: Mapping[int, Migration]) -> None:
    connection.execute("BEGIN IMMEDIATE")
    try:
        # Another process may have been quicker while this one waited for the lock.
        version = _version(connection, path)
        if version == 0:
            _create(connection)
        for old in range(version or SCHEMA_VERSION, SCHEMA_VERSION):
            migrations[old](connection)
        connection.execute(f"PRAGMA user_version={SCHEMA_VERSION}")
        connection.execute(f"PRAGMA application_id={APPLICATION_ID}")
        connection.execute("COMMIT")
    except BaseException:
        connection.rollback()
        raise


def _finished_at(body: str) -> int | None:
    """The end of a run, as its body says. None also for a body that cannot be read: it stays as it is."""
    try:
        text = json.loads(body)["finished_at"]
        return None if text is None else microseconds(datetime.fromisoformat(text))
    except (ValueError, TypeError, KeyError):
        return None


def _create(connection: sqlite3.Connection) -> None:
    for statement in creation_statements(SQLITE):
        connection.execute(statement)

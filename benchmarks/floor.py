"""The floor: a bare SQLite insert and commit, with the settings the store uses."""

from __future__ import annotations

import sqlite3
import time
from pathlib import Path


class BareSqlite:
    """One table, one row a commit, WAL, synchronous=FULL. Nothing durable can cost less."""

    def __init__(self, path: Path) -> None:
        self._connection = sqlite3.connect(path, isolation_level=None)
        self._connection.execute("PRAGMA journal_mode=WAL")
        self._connection.execute("PRAGMA synchronous=FULL")
        self._connection.execute("CREATE TABLE rows (id INTEGER PRIMARY KEY, body TEXT)")

    def insert(self, body: str) -> float:
        """Insert and commit one row; gives the seconds it took."""
        began = time.perf_counter()
        self._connection.execute("BEGIN IMMEDIATE")
        self._connection.execute("INSERT INTO rows (body) VALUES (?)", (body,))
        self._connection.execute("COMMIT")
        return time.perf_counter() - began

    def close(self) -> None:
        self._connection.close()

"""Databases the contract suites run on, each with as many handles as a test wants."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Protocol

import pytest

from podium.ports import Clock, Store
from podium.store import SqlStore
from podium.store.postgres_store import PostgresStore
from podium.store.transaction import Queued
from podium.testing import MemoryStore, SteadyIds


class Database(Protocol):
    """One database and the handles on it."""

    async def open(self) -> Store:
        """A handle of its own, as another process would have."""
        ...

    async def close(self) -> None: ...


class MemoryDatabase:
    def __init__(self, folder: Path, clock: Clock) -> None:
        self._clock = clock
        self._opened: list[MemoryStore] = []

    async def open(self) -> Store:
        beside = self._opened[0] if self._opened else None
        self._opened.append(MemoryStore(self._clock, beside=beside))
        return self._opened[-1]

    async def close(self) -> None:
        for store in self._opened:
            await store.close()


class SqlDatabase:
    def __init__(self, folder: Path, clock: Clock) -> None:
        self._folder = folder
        self._clock = clock
        self._opened: list[SqlStore] = []

    async def open(self) -> Store:
        ids = SteadyIds(seed=len(self._opened))
        self._opened.append(await SqlStore.open(self._folder, clock=self._clock, ids=ids))
        return self._opened[-1]

    async def close(self) -> None:
        for store in self._opened:
            await store.close()


class PostgresDatabase:
    def __init__(self, url: str, folder: Path, clock: Clock, queued: Queued | None = None) -> None:
        """`queued` is told of runs that are queued, within the transaction."""
        self._queued = queued
        self._url = url
        self._folder = folder
        self._clock = clock
        self._opened: list[PostgresStore] = []

    async def open(self) -> Store:
        store = await PostgresStore.open(
            self._url,
            folder=self._folder,
            clock=self._clock,
            ids=SteadyIds(seed=len(self._opened)),
            queued=self._queued,
            database_time=False,
        )
        self._opened.append(store)
        return store

    async def close(self) -> None:
        for store in self._opened:
            await store.close()


def _in_memory(request: pytest.FixtureRequest, folder: Path, clock: Clock) -> Database:
    return MemoryDatabase(folder, clock)


def _on_sqlite(request: pytest.FixtureRequest, folder: Path, clock: Clock) -> Database:
    return SqlDatabase(folder, clock)


def _on_postgresql(request: pytest.FixtureRequest, folder: Path, clock: Clock) -> Database:
    return PostgresDatabase(request.getfixturevalue("store_url"), folder, clock)


DATABASES: dict[str, Callable[[pytest.FixtureRequest, Path, Clock], Database]] = {
    "memory": _in_memory,
    "sqlite": _on_sqlite,
    "postgresql": _on_postgresql,
}
"""Which implementations each contract suite runs on. A new one is one more line in a table."""

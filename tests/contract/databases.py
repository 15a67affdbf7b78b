"""Databases the contract suites run on, each with as many handles as a test wants."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from podium.journal import SqlStore
from podium.ports import Clock, Store
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


DATABASES: list[Callable[[Path, Clock], Database]] = [MemoryDatabase, SqlDatabase]

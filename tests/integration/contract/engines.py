"""Engines on one database, for the engine's contract tests: each as a process of its own would be."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple, Protocol

import psycopg
import pytest

from podium.core.events import Event
from podium.core.work import Run, RunStatus, WorkerHeartbeat
from podium.engine import EngineSettings, FlowDefinition, FolderPresence, LocalEngine, RunEngine
from podium.engine.distributed import DbosEngine, enqueue
from podium.ports import Clock, Engine, EventQuery, Ids, Store, StoreView
from podium.store.postgres_presence import PostgresPresence
from podium.store.postgres_store import PostgresStore
from podium.testing import SteadyIds, retry_until
from tests.integration.contract.clocks import SharedClock
from tests.integration.contract.databases import (
    Database,
    MemoryDatabase,
    PostgresDatabase,
    SqlDatabase,
)


class MortalEngine(Engine, Protocol):
    """An engine that can die in the middle of a test."""

    async def abandon(self) -> None:
        """Stop hosting without writing anything, as `kill -9` would."""
        ...


def freeze(engine: MortalEngine) -> None:
    """Stop an engine's own clockwork, as SIGSTOP would: it holds its lock and says nothing more."""
    if not isinstance(engine, RunEngine):
        raise TypeError(f"say here how {type(engine).__name__} is frozen")
    # Nothing outside of tests stops an engine like this, so it has no door for it.
    for task in engine._watching:
        task.cancel()


MakeEngine = Callable[[Store, Clock, Ids, Path], MortalEngine]


def local_engine(store: Store, clock: Clock, ids: Ids, folder: Path) -> MortalEngine:
    # Tests hold the clock still; a short tick lets the engine see soon that it was moved.
    quick = EngineSettings(tick_seconds=0.02)
    return LocalEngine(store, clock=clock, ids=ids, presence=FolderPresence(folder), settings=quick)


class PresenceOfEngines(PostgresPresence):
    """One process stands for several here, so that its own life says nothing of an engine's."""

    def is_gone(self, view: StoreView, worker: WorkerHeartbeat | None) -> bool:
        return worker is None or not self.present(view, [worker])


def dbos_engine(store: Store, clock: Clock, ids: Ids, folder: Path) -> MortalEngine:
    if not isinstance(store, PostgresStore):
        raise TypeError(f"DBOS works on PostgreSQL alone, not on {type(store).__name__}")
    quick = EngineSettings(tick_seconds=0.02)
    return DbosEngine(
        store,
        url=store.url,
        clock=clock,
        ids=ids,
        presence=PresenceOfEngines(store.url, young_seconds=0.0),
        settings=quick,
    )


class DispatchedDatabase(PostgresDatabase):
    """A PostgreSQL whose queued runs are handed to DBOS."""

    def __init__(self, url: str, folder: Path, clock: Clock) -> None:
        super().__init__(url, folder, clock, enqueue)

    def move(self, seconds: float) -> None:
        """Let time pass for DBOS: whatever it dates happened so much earlier."""
        with psycopg.connect(self._url) as connection:
            connection.execute(
                "UPDATE dbos.workflow_status SET "
                "delay_until_epoch_ms = delay_until_epoch_ms - %(ms)s, "
                "started_at_epoch_ms = started_at_epoch_ms - %(ms)s",
                {"ms": int(seconds * 1000)},
            )


class Setup(NamedTuple):
    """An engine and the database it is tried on."""

    engine: MakeEngine
    database: Callable[[pytest.FixtureRequest, Path, SharedClock], Database]


def _in_memory(request: pytest.FixtureRequest, folder: Path, clock: SharedClock) -> Database:
    return MemoryDatabase(folder, clock)


def _in_a_file(request: pytest.FixtureRequest, folder: Path, clock: SharedClock) -> Database:
    return SqlDatabase(folder, clock)


def _dispatched(request: pytest.FixtureRequest, folder: Path, clock: SharedClock) -> Database:
    made = DispatchedDatabase(request.getfixturevalue("dispatched_url"), folder, clock)
    clock.others.append(made.move)
    return made


SETUPS = {
    "local-memory": Setup(local_engine, _in_memory),
    "local-sqlite": Setup(local_engine, _in_a_file),
    "dbos-postgresql": Setup(dbos_engine, _dispatched),
}


class EngineRoom:
    """Makes engines on one database and looks at what they left there."""

    def __init__(self, make: MakeEngine, database: Database, clock: Clock, folder: Path) -> None:
        self._make = make
        self._database = database
        self._clock = clock
        self._folder = folder
        self._ids = SteadyIds(seed=7)
        self._engines: list[MortalEngine] = []
        self._own_store: Store | None = None

    async def open(self, *flows: FlowDefinition) -> MortalEngine:
        """An engine that knows these flows, with its own handle on the database."""
        engine = self._make(await self._database.open(), self._clock, self._ids, self._folder)
        self._engines.append(engine)
        for flow in flows:
            engine.register(flow)
        return engine

    async def close(self) -> None:
        for engine in self._engines:
            await engine.close()

    async def store(self) -> Store:
        """A handle that belongs to no engine."""
        if self._own_store is None:
            self._own_store = await self._database.open()
        return self._own_store

    async def run(self, run_id: str) -> Run:
        found = await (await self.store()).read(lambda view: view.run(run_id))
        assert found is not None
        return found

    async def until(self, run_id: str, status: RunStatus) -> Run:
        """The run, once it has this status."""

        async def look() -> Run | None:
            run = await self.run(run_id)
            return run if run.status is status else None

        found = await retry_until(look)
        assert found is not None
        return found

    async def until_nobody_hosts(self, run_id: str) -> Run:
        async def look() -> Run | None:
            run = await self.run(run_id)
            return run if run.owner is None else None

        found = await retry_until(look)
        assert found is not None
        return found

    async def events(self, run_id: str) -> list[Event]:
        query = EventQuery(run_id=run_id)
        return await (await self.store()).read(lambda view: view.events(query))

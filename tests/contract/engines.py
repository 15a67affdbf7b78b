"""Engines on one database, for the engine's contract tests: each as a process of its own would be."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from podium.domain.events import Event
from podium.domain.work import Run, RunStatus
from podium.engine import EngineSettings, FlowDefinition, LocalEngine
from podium.ports import Clock, Engine, EventQuery, Ids, Store
from podium.testing import SteadyIds, retry_until
from tests.contract.databases import Database


class MortalEngine(Engine, Protocol):
    """An engine that can die in the middle of a test."""

    async def abandon(self) -> None:
        """Stop hosting without writing anything, as `kill -9` would."""
        ...


def freeze(engine: MortalEngine) -> None:
    """Stop an engine's own clockwork, as SIGSTOP would: it holds its lock and says nothing more."""
    if not isinstance(engine, LocalEngine):
        raise TypeError(f"say here how {type(engine).__name__} is frozen")
    # Nothing outside of tests stops an engine like this, so it has no door for it.
    for task in engine._watching:
        task.cancel()


MakeEngine = Callable[[Store, Clock, Ids, Path], MortalEngine]


def local_engine(store: Store, clock: Clock, ids: Ids, folder: Path) -> MortalEngine:
    # Tests hold the clock still; a short tick lets the engine see soon that it was moved.
    quick = EngineSettings(tick_seconds=0.02)
    return LocalEngine(store, clock=clock, ids=ids, worker_folder=folder, settings=quick)


ENGINES: list[MakeEngine] = [local_engine]


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

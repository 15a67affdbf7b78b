"""Implementations that each contract suite runs on. A new one is one more line in a list."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import pytest

from podium.ports import Journal, Store
from podium.store import StoreJournal
from podium.store.postgres import prepare
from podium.testing import FixedClock, MemoryJournal
from tests.integration.contract.clocks import SharedClock
from tests.integration.contract.databases import DATABASES, Database
from tests.integration.contract.engines import SETUPS, EngineRoom
from tests.postgres import PostgresServer

JOURNALS: list[Callable[[Store], Journal]] = [MemoryJournal, StoreJournal]


def _name(made: type | Callable[..., object]) -> str:
    return made.__name__


@pytest.fixture
def clock() -> SharedClock:
    return SharedClock()


@pytest.fixture(scope="session")
def prepared_database(postgres_server: PostgresServer) -> str:
    """The name of a database with Podium's tables, to make others from."""
    name = postgres_server.create_database()
    prepare(postgres_server.url(name))
    return name


@pytest.fixture
def store_url(postgres_server: PostgresServer, prepared_database: str) -> Iterator[str]:
    """The address of a PostgreSQL database of this test's own with Podium's tables."""
    name = postgres_server.create_database(template=prepared_database)
    yield postgres_server.url(name)
    postgres_server.drop_database(name)


@pytest.fixture(params=DATABASES)
async def database(
    request: pytest.FixtureRequest, tmp_path: Path, clock: FixedClock
) -> AsyncIterator[Database]:
    database = DATABASES[request.param](request, tmp_path / "store", clock)
    yield database
    await database.close()


@pytest.fixture
async def store(database: Database) -> Store:
    return await database.open()


@pytest.fixture(params=JOURNALS, ids=_name)
def journal(request: pytest.FixtureRequest, store: Store) -> Journal:
    made: Journal = request.param(store)
    return made


@pytest.fixture(params=SETUPS)
async def room(
    request: pytest.FixtureRequest, tmp_path: Path, clock: SharedClock
) -> AsyncIterator[EngineRoom]:
    """Engines on one database."""
    setup = SETUPS[request.param]
    database = setup.database(request, tmp_path / "store", clock)
    room = EngineRoom(setup.engine, database, clock, tmp_path / "workers")
    yield room
    await room.close()
    await database.close()


FAKES = {"MemoryJournal", "ScriptedToolDoor"}
DIFFERS = {"store", "store_queues", "engine", "engine_owners", "engine_queues"}
"""Suites of what PostgreSQL does in its own way: transactions, locks, notifications, claims."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The dear third database is asked every time where it differs, and all else by `make soak`."""
    for item in items:
        parts = set(item.callspec.id.split("-")) if hasattr(item, "callspec") else set()
        suite = item.path.stem.removeprefix("test_").removesuffix("_contract")
        if "postgresql" in parts and (parts & FAKES or suite not in DIFFERS):
            item.add_marker(pytest.mark.soak)

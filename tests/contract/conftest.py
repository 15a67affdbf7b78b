"""Which implementations each contract suite runs on. A new one is one more line in a list."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from podium.journal import StoreJournal
from podium.ports import Journal, Store
from podium.testing import FixedClock, MemoryJournal
from tests.contract.databases import DATABASES, Database
from tests.contract.engines import ENGINES, EngineRoom

JOURNALS: list[Callable[[Store], Journal]] = [MemoryJournal, StoreJournal]


def _name(made: type | Callable[..., object]) -> str:
    return made.__name__


@pytest.fixture
def clock() -> FixedClock:
    return FixedClock()


@pytest.fixture(params=DATABASES, ids=_name)
async def database(
    request: pytest.FixtureRequest, tmp_path: Path, clock: FixedClock
) -> AsyncIterator[Database]:
    database: Database = request.param(tmp_path / "store", clock)
    yield database
    await database.close()


@pytest.fixture
async def store(database: Database) -> Store:
    return await database.open()


@pytest.fixture(params=JOURNALS, ids=_name)
def journal(request: pytest.FixtureRequest, store: Store) -> Journal:
    made: Journal = request.param(store)
    return made


@pytest.fixture(params=ENGINES, ids=_name)
async def room(
    request: pytest.FixtureRequest, database: Database, tmp_path: Path, clock: FixedClock
) -> AsyncIterator[EngineRoom]:
    """Engines on one database."""
    room = EngineRoom(request.param, database, clock, tmp_path / "workers")
    yield room
    await room.close()

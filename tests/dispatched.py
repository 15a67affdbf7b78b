"""Databases that are ready for work on many machines, cloned from one that was made ready once."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from tests.postgres import PostgresServer

ENGINE = os.environ.get("PODIUM_TEST_ENGINE", "local")
"""`local` or `dbos`: the engine that the tests of flows run on."""


@pytest.fixture(scope="session")
def ready_database(postgres_server: PostgresServer) -> Iterator[str]:
    """The name of a database with Podium's and DBOS's tables and nothing in them."""
    from podium.engine.distributed.database import migrate
    from podium.store.postgres import prepare

    name = postgres_server.create_database()
    url = postgres_server.url(name)
    prepare(url)
    migrate(url)
    yield name
    postgres_server.drop_database(name)


@pytest.fixture
def dispatched_url(postgres_server: PostgresServer, ready_database: str) -> Iterator[str]:
    """A database of this test's own, ready for an engine."""
    name = postgres_server.create_database(template=ready_database)
    yield postgres_server.url(name)
    postgres_server.drop_database(name)


@pytest.fixture(autouse=True)
def chosen_engine(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """With PODIUM_TEST_ENGINE=dbos the tests of flows find their record on PostgreSQL."""
    if ENGINE == "dbos" and request.path.parts[-2] in ("pipeline", "flows", "core", "sense"):
        monkeypatch.setenv("PODIUM_DATABASE_URL", request.getfixturevalue("dispatched_url"))

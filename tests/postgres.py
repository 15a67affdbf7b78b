"""PostgreSQL for tests: one server for the whole session, one database for each test.

A pytest plugin, named in `tests/conftest.py`. The first test that asks for it starts the server, on
loopback and a free port; it ends with the session, also when pytest is killed. What it keeps is
sorted by a language's rules (ICU, en-US) where the build can, because people's servers do so too.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.postgres_server import TO_INSTALL, Lifeline, PostgresServer, server_programs

__all__ = ["TO_INSTALL", "Lifeline", "PostgresServer", "server_programs"]

FOLDER_KEY = "podium_postgres_folder"

LIFELINE = pytest.StashKey[Lifeline]()


def pytest_configure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput"):
        config.stash[LIFELINE] = Lifeline()


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    node.workerinput[FOLDER_KEY] = str(node.config.stash[LIFELINE].folder)


def pytest_unconfigure(config: pytest.Config) -> None:
    lifeline = config.stash.get(LIFELINE, None)
    if lifeline is not None:
        lifeline.cut(server_programs())


@pytest.fixture(scope="session")
def postgres_server(request: pytest.FixtureRequest) -> PostgresServer:
    """The session's server, shared by all its tests and workers: never stop or restart this one."""
    workerinput = getattr(request.config, "workerinput", None)
    named = workerinput[FOLDER_KEY] if workerinput else request.config.stash[LIFELINE].folder
    server = PostgresServer(Path(named), _programs_or_skip())
    server.ensure_started()
    return server


@pytest.fixture
def postgres_url(postgres_server: PostgresServer) -> Iterator[str]:
    """The address of an empty database of this test's own, which its role may do anything in."""
    name = postgres_server.create_database()
    yield postgres_server.url(name)
    postgres_server.drop_database(name)


@pytest.fixture
def own_postgres() -> Iterator[PostgresServer]:
    """A server of this test's own, to be stopped and restarted at will. It takes a second or two."""
    programs = _programs_or_skip()
    lifeline = Lifeline()
    server = PostgresServer(lifeline.folder, programs)
    try:
        server.ensure_started()
        yield server
    finally:
        lifeline.cut(programs)


def _programs_or_skip() -> Path:
    pytest.importorskip(
        "psycopg", reason="psycopg is not installed: pip install 'podium[distributed]'"
    )
    programs = server_programs()
    if programs is None:
        pytest.skip(TO_INSTALL)
    return programs

"""The PostgreSQL that tests run on: one for a session, a database for each test, and none left behind."""

from __future__ import annotations

import socket
import subprocess
import sys
from pathlib import Path

import pytest

from podium.testing import retry_until_blocking
from tests.postgres import TO_INSTALL, PostgresServer, server_programs

psycopg = pytest.importorskip("psycopg")


@pytest.mark.parametrize("word", ["first", "second"])
def test_every_test_has_its_own_empty_database(postgres_url: str, word: str) -> None:
    with psycopg.connect(postgres_url) as connection:
        connection.execute("CREATE TABLE words (word text)")
        connection.execute("INSERT INTO words VALUES (%s)", (word,))
        found = connection.execute("SELECT word, current_user::text FROM words").fetchall()
    assert found == [(word, "podium")]


def test_what_was_committed_is_there_after_a_crash_and_a_restart(
    own_postgres: PostgresServer,
) -> None:
    url = own_postgres.url(own_postgres.create_database())
    with psycopg.connect(url) as connection:
        connection.execute("CREATE TABLE words AS SELECT 'kept'::text AS word")
    before = own_postgres.pid
    own_postgres.restart("immediate")
    with psycopg.connect(url) as connection:
        assert connection.execute("SELECT word FROM words").fetchone() == ("kept",)
    assert own_postgres.pid != before


def test_a_server_ends_with_the_process_that_wanted_it_even_when_that_one_is_killed() -> None:
    program = (
        "from tests.postgres import Lifeline, PostgresServer, server_programs\n"
        "server = PostgresServer(Lifeline().folder, server_programs())\n"
        "server.ensure_started()\n"
        "print(server.folder, server.port, flush=True)\n"
        "input()\n"
    )
    if server_programs() is None:
        pytest.skip(TO_INSTALL)
    asked = [sys.executable, "-c", program]
    with subprocess.Popen(asked, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        folder, port = child.stdout.readline().split()
        socket.create_connection(("127.0.0.1", int(port))).close()
        child.kill()
    retry_until_blocking(lambda: not Path(folder).exists())
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", int(port)))

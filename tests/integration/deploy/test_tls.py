"""A server that takes TLS connections only, with certificates made as the docs say."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest

from podium.core.errors import StoreUnusable
from podium.store.postgres import connect, prepare
from podium.testing import retry_until_blocking
from tests.integration.deploy.deploy_harness import (
    make_certificates,
    started_server,
    take_tls_alone,
    use_certificate,
)
from tests.postgres import PostgresServer

psycopg = pytest.importorskip(
    "psycopg", reason="psycopg is not installed: pip install 'podium[distributed]'"
)


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_certificates(tmp_path_factory.mktemp("certificates"), "localhost")


@pytest.fixture(scope="module")
def server(certificates: Path) -> Iterator[PostgresServer]:
    with started_server() as server:
        take_tls_alone(server, certificates)
        yield server


def address(server: PostgresServer, certificates: Path, *, host: str = "localhost") -> str:
    """As a worker has it: certificate and name are both checked."""
    url = server.url().replace("127.0.0.1", host)
    return f"{url}?sslmode=verify-full&sslrootcert={quote(str(certificates / 'ca.crt'))}"


def password_of(url: str) -> str:
    return url.partition("://podium:")[2].partition("@")[0]


def refusal(url: str) -> str:
    """Return the error that a person sees when Podium cannot use this address."""
    with pytest.raises(StoreUnusable) as refused:
        prepare(url)
    text = str(refused.value)
    assert "\n" not in text
    assert password_of(url) not in text
    return text


@pytest.mark.soak
def test_a_worker_that_checks_certificate_and_name_gets_in_and_talks_tls(
    server: PostgresServer, certificates: Path
) -> None:
    connection = connect(address(server, certificates))
    try:
        output = connection.execute(
            "SELECT ssl, version FROM pg_stat_ssl WHERE pid = pg_backend_pid()"
        )
        assert output.fetchone() == (True, "TLSv1.3")
    finally:
        connection.close()


def test_the_engine_gets_in_with_the_same_address(
    server: PostgresServer, certificates: Path
) -> None:
    dbos = pytest.importorskip("dbos", reason="dbos is not installed: 'podium[distributed]'")
    logging.getLogger("dbos").addHandler(logging.NullHandler())
    name = server.create_database()
    url = address(server, certificates).replace("/postgres?", f"/{name}?")
    dbos.DBOS.migrate(url)
    client = dbos.DBOSClient(system_database_url=url)
    try:
        assert client.list_workflows() == []
    finally:
        client.destroy()


def test_another_authority_is_not_believed(server: PostgresServer, tmp_path: Path) -> None:
    others = make_certificates(tmp_path / "others", "localhost")
    refusal_message = refusal(address(server, others))
    assert "certificate verify failed" in refusal_message
    assert "sslrootcert" in refusal_message


def test_a_certificate_for_another_host_is_not_believed(
    server: PostgresServer, certificates: Path
) -> None:
    refusal_message = refusal(address(server, certificates, host="127.0.0.1"))
    assert 'does not match host name "127.0.0.1"' in refusal_message


def test_a_plain_connection_is_refused(server: PostgresServer) -> None:
    refusal_message = refusal(f"{server.url()}?sslmode=disable")
    assert "no encryption" in refusal_message
    assert "sslmode" in refusal_message


def test_a_certificate_authority_that_is_not_there_is_named(
    server: PostgresServer, tmp_path: Path
) -> None:
    refusal_message = refusal(address(server, tmp_path))
    assert str(tmp_path / "ca.crt") in refusal_message


def test_a_renewed_certificate_is_taken_without_a_restart(
    server: PostgresServer, certificates: Path
) -> None:
    data = server.folder / "cluster" / "data"
    before = (data / "server.crt").read_bytes()
    use_certificate(data, make_certificates(certificates, "localhost", "127.0.0.1"))
    assert (data / "server.crt").read_bytes() != before
    server.administer("SELECT pg_reload_conf()")
    new = address(server, certificates, host="127.0.0.1")
    retry_until_blocking(lambda: gets_in(new))


def gets_in(url: str) -> bool:
    try:
        connect(url).close()
    except psycopg.OperationalError:
        return False
    return True

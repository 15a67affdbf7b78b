"""A server with the roles of `deploy/roles.sql`, as an administrator would set it up."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.integration.docs.command_line import usage_problem
from tests.postgres import TO_INSTALL, Lifeline, PostgresServer, server_programs

ROOT = Path(__file__).parents[3]
DEPLOY = ROOT / "deploy"
TLS_SETTINGS = """
ssl = on
ssl_min_protocol_version = 'TLSv1.3'
ssl_cert_file = 'server.crt'
ssl_key_file = 'server.key'
"""
ROLES = ("podium_owner", "podium_worker", "podium_viewer")


def postgres_programs() -> Path:
    """The folder of the server's programs; a test that needs them skips where there are none."""
    pytest.importorskip(
        "psycopg", reason="psycopg is not installed: pip install 'podium[distributed]'"
    )
    programs = server_programs()
    if programs is None:
        pytest.skip(TO_INSTALL)
    return programs


@contextmanager
def started_server() -> Iterator[PostgresServer]:
    """A server apart from the session's: roles belong to all databases of a server."""
    programs, lifeline = postgres_programs(), Lifeline()
    try:
        server = PostgresServer(lifeline.folder, programs)
        server.ensure_started()
        yield server
    finally:
        lifeline.cut(programs)


def run_roles_sql(url: str) -> None:
    """As the head of the file says."""
    psql = str(postgres_programs() / "psql")
    options = ["--no-psqlrc", "--quiet", "--single-transaction", "-v", "ON_ERROR_STOP=1"]
    command = [psql, *options, "-d", url, "-f", str(DEPLOY / "roles.sql")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def url_as(server: PostgresServer, role: str, database: str) -> str:
    """The address of the database for a role whose password is its name."""
    return f"postgresql://{role}:{role}@127.0.0.1:{server.port}/{database}"


def give_passwords(server: PostgresServer) -> None:
    for role in ROLES:
        server.administer(f"ALTER ROLE {role} PASSWORD '{role}'")


def linter(name: str, package: str) -> str:
    """The path of a linter, from this environment or the machine; a test skips where it is missing."""
    beside = Path(sys.executable).parent / name
    found = str(beside) if beside.exists() else shutil.which(name)
    if found is None:
        pytest.skip(f"{name} is not installed: {package}")
    return found


def podium_words(words: Sequence[object]) -> None:
    """Assert that these words after `podium` name a command and options that it has."""
    assert usage_problem([str(word) for word in words]) == ""


def make_certificates(folder: Path, *names: str) -> Path:
    if shutil.which("openssl") is None:
        pytest.skip("openssl is not installed, which certificates.sh makes certificates with")
    script = str(DEPLOY / "certificates.sh")
    subprocess.run(["sh", script, str(folder), *names], check=True, capture_output=True)
    return folder


def use_certificate(data: Path, certificates: Path) -> None:
    """Put it where the server looks, as the user it runs as."""
    owner = data.stat()
    for name in ("server.crt", "server.key"):
        copy = data / name
        shutil.copy(certificates / name, copy)
        shutil.chown(copy, owner.st_uid, owner.st_gid)
        copy.chmod(0o600)


def take_tls_alone(server: PostgresServer, certificates: Path) -> None:
    """Have the server refuse whoever comes without TLS."""
    data = server.folder / "cluster" / "data"
    use_certificate(data, certificates)
    with (data / "postgresql.conf").open("a") as conf:
        conf.write(TLS_SETTINGS)
    (data / "pg_hba.conf").write_text("hostssl all all all scram-sha-256\n")
    server.restart()

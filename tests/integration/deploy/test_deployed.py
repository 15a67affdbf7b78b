"""A deployment as the docs describe it, through the command line: TLS, three roles, two hosts, one key."""

from __future__ import annotations

import json
import os
import secrets
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

import pytest

from tests.integration.deploy.deploy_harness import (
    ROLES,
    give_passwords,
    make_certificates,
    run_roles_sql,
    started_server,
    take_tls_alone,
)

pytest.importorskip("dbos", reason="dbos is not installed: pip install 'podium[distributed]'")


class CommandResult(NamedTuple):
    code: int
    out: str
    err: str

    @property
    def answer(self) -> Any:
        return json.loads(self.out)


class Host:
    """A machine with a checkout, a home and an environment of its own."""

    def __init__(self, folder: Path, url: str, key: Path) -> None:
        self.project = folder / "project"
        self.project.mkdir(parents=True)
        self.url = url
        self._key = key
        self._home = folder / "home"
        self._home.mkdir()
        passwords = self._home / ".pgpass"
        passwords.write_text("".join(f"*:*:*:{role}:{role}\n" for role in ROLES))
        passwords.chmod(0o600)

    def podium(self, *words: str, role: str = "podium_worker") -> CommandResult:
        kept = {name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ}
        environ = kept | {
            "HOME": str(self._home),
            "PODIUM_HOME": str(self._home),
            "PODIUM_PROJECT": str(self.project),
            "PODIUM_DATABASE_URL": self.url.replace("ROLE", role),
            "PODIUM_RECEIPT_KEY": str(self._key),
        }
        command = [sys.executable, "-m", "podium", *words]
        done = subprocess.run(
            command, env=environ, cwd=self.project, capture_output=True, text=True, check=False
        )
        return CommandResult(done.returncode, done.stdout, done.stderr)


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The database's, with ROLE for who comes."""
    certificates = make_certificates(tmp_path_factory.mktemp("certificates"), "localhost")
    with started_server() as server:
        server.administer("CREATE DATABASE podium")
        run_roles_sql(server.admin_url("podium"))
        give_passwords(server)
        take_tls_alone(server, certificates)
        checked = f"sslmode=verify-full&sslrootcert={quote(str(certificates / 'ca.crt'))}"
        yield f"postgresql://ROLE@localhost:{server.port}/podium?{checked}"


@pytest.fixture
def key(tmp_path: Path) -> Path:
    """As a secret is mounted: only to be read, in a folder that is only to be read."""
    path = tmp_path / "secret" / "receipt.key"
    path.parent.mkdir()
    path.write_bytes(secrets.token_bytes(32))
    path.chmod(0o400)
    path.parent.chmod(0o500)
    return path


@pytest.mark.soak
def test_two_hosts_share_one_record_once_the_owner_has_made_the_schema(
    address: str, key: Path, tmp_path: Path
) -> None:
    one, two = Host(tmp_path / "one", address, key), Host(tmp_path / "two", address, key)
    assert one.podium("db", "migrate", "--check").code == 1
    refused = one.podium("worker", "--once")
    assert refused.code == 1
    assert "podium db migrate" in refused.err
    assert "Traceback" not in refused.err

    migrated = one.podium("db", "migrate", role="podium_owner")
    assert migrated.code == 0, migrated.err
    assert two.podium("db", "migrate", "--check").code == 0

    assert one.podium("init", "--example").code == 0
    rehearsed = one.podium("rehearse", "--json")
    seen = two.podium("runs", "--json")
    assert [run["id"] for run in seen.answer["runs"]] == [rehearsed.answer["run"]["id"]]
    verified = one.podium("receipts", "verify")
    assert verified.code == 0, verified.out
    assert two.podium("receipts", "verify").code == 0
    served = two.podium("worker", "--once", "--json")
    assert served.code == 0, served.err
    assert two.podium("workers", "--json").code == 0

    other_key = tmp_path / "other.key"
    other_key.write_bytes(secrets.token_bytes(32))
    stranger = Host(tmp_path / "stranger", address, other_key)
    refused = stranger.podium("receipts", "verify")
    assert refused.code == 1
    assert "PODIUM_RECEIPT_KEY" in refused.err

"""A home without settings, and no proxy between the tests and their server."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.forge import description
from tests.integration.forge.github_server import GitHubServer, serving
from tests.integration.forge.remote_project import RemoteProject

_OF_THE_MACHINE = (
    "GIT_CONFIG_GLOBAL",
    "GIT_SSH",
    "GIT_SSH_COMMAND",
    "GIT_SSL_CAINFO",
    "XDG_CONFIG_HOME",
)


@pytest.fixture(autouse=True)
def _alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    for name in _OF_THE_MACHINE:
        monkeypatch.delenv(name, raising=False)


@pytest.fixture(scope="session")
def described() -> None:
    description.load()


@pytest.fixture
def github(described: None) -> Iterator[GitHubServer]:
    with serving() as server:
        yield server


@pytest.fixture
def remote_project(tmp_path: Path) -> RemoteProject:
    return RemoteProject(tmp_path)

"""Fixtures of the command-line tests."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.integration.cli.command_runner import CommandRunner


@pytest.fixture
def cli(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> CommandRunner:
    cli = CommandRunner(tmp_path, capsys)
    for name in ("PODIUM_DEBUG", "PODIUM_MODE", "PODIUM_PROJECT", "PODIUM_DATABASE_URL"):
        monkeypatch.delenv(name, raising=False)
    for name in ("PODIUM_HOME", "PODIUM_USER"):
        monkeypatch.setenv(name, cli.environ[name])
    # Who runs the tests is not for them to choose, and the operating system is who says it.
    users = SimpleNamespace(getpwuid=lambda uid: SimpleNamespace(pw_name="ann"))
    monkeypatch.setattr("podium.config.os_user.pwd", users)
    monkeypatch.chdir(cli.project)
    return cli


@pytest.fixture
def roofing(cli: CommandRunner) -> None:
    """The user's own settings choose the roofing pack for `podium ask`."""
    cli.choose_pack("roofing")

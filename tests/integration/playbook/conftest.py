"""A desk in a project of its own, with nothing of the person's settings."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.integration.cli.command_runner import CommandRunner


@pytest.fixture
def cli(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> CommandRunner:
    cli = CommandRunner(tmp_path, capsys)
    for name in ("PODIUM_DEBUG", "PODIUM_MODE", "PODIUM_PROJECT", "PODIUM_DATABASE_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PODIUM_HOME", str(cli.home))
    monkeypatch.chdir(cli.project)
    return cli

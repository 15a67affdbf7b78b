from __future__ import annotations

from pathlib import Path

import pytest

from tests.integration.cli.command_runner import CommandRunner


@pytest.fixture
def cli(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> CommandRunner:
    cli = CommandRunner(tmp_path, capsys)
    for name in ("PODIUM_MODE", "PODIUM_PROJECT", "PODIUM_DATABASE_URL", "PODIUM_MCP_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    for name in ("PODIUM_HOME", "PODIUM_USER"):
        monkeypatch.setenv(name, cli.environ[name])
    cli.choose_pack("roofing")
    return cli

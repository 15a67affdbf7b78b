from __future__ import annotations

from pathlib import Path

import pytest

from tests.integration.cli.desk import Desk


@pytest.fixture
def desk(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Desk:
    desk = Desk(tmp_path, capsys)
    for name in ("PODIUM_MODE", "PODIUM_PROJECT", "PODIUM_DATABASE_URL", "PODIUM_MCP_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    for name in ("PODIUM_HOME", "PODIUM_USER"):
        monkeypatch.setenv(name, desk.environ[name])
    desk.choose_pack("roofing")
    return desk

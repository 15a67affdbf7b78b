"""A desk in a project of its own, with nothing of the person's settings."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.integration.cli.desk import Desk


@pytest.fixture
def desk(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Desk:
    desk = Desk(tmp_path, capsys)
    for name in ("PODIUM_DEBUG", "PODIUM_MODE", "PODIUM_PROJECT", "PODIUM_DATABASE_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PODIUM_HOME", str(desk.home))
    monkeypatch.chdir(desk.project)
    return desk

"""Fixtures of the command-line tests."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.integration.cli.desk import Desk


@pytest.fixture
def desk(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Desk:
    desk = Desk(tmp_path, capsys)
    for name in ("PODIUM_DEBUG", "PODIUM_MODE", "PODIUM_PROJECT", "PODIUM_DATABASE_URL"):
        monkeypatch.delenv(name, raising=False)
    for name in ("PODIUM_HOME", "PODIUM_USER"):
        monkeypatch.setenv(name, desk.environ[name])
    # Who runs the tests is not for them to choose, and the operating system is who says it.
    users = SimpleNamespace(getpwuid=lambda uid: SimpleNamespace(pw_name="ann"))
    monkeypatch.setattr("podium.config.os_user.pwd", users)
    monkeypatch.chdir(desk.project)
    return desk


@pytest.fixture
def roofing(desk: Desk) -> None:
    """The user's own settings choose the roofing pack for `podium ask`."""
    desk.choose_pack("roofing")

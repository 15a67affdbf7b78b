from __future__ import annotations

from pathlib import Path

import pytest

from tests.integration.cli.desk import Desk
from tests.integration.duet.stage import Hall


@pytest.fixture
def hall(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Hall:
    desk = Desk(tmp_path, capsys)
    for name, value in desk.environ.items():
        monkeypatch.setenv(name, value)
    for name in ("PLANNER_CMD", "EXECUTER_CMD", "POLI_PLAN_TIMEOUT", "POLI_EXEC_TIMEOUT"):
        monkeypatch.delenv(name, raising=False)
    return Hall(desk)

from __future__ import annotations

from pathlib import Path

import pytest

from tests.integration.cli.command_runner import CommandRunner
from tests.integration.duet.duet_harness import Hall


@pytest.fixture
def hall(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Hall:
    cli = CommandRunner(tmp_path, capsys)
    for name, value in cli.environ.items():
        monkeypatch.setenv(name, value)
    for name in ("PLANNER_CMD", "EXECUTER_CMD", "POLI_PLAN_TIMEOUT", "POLI_EXEC_TIMEOUT"):
        monkeypatch.delenv(name, raising=False)
    return Hall(cli)

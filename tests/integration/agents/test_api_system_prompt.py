"""System prompt of an API agent."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from podium.agents.api.turn import system_prompt
from podium.testing import MemoryTranscripts
from tests.unit.contract.function_calling_harness import CallingHarness


async def test_the_python_behind_a_shim_is_the_one_that_starts_in_the_workspace(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    harness, shims = CallingHarness(tmp_path), tmp_path / "shims"
    shims.mkdir()
    shim = shims / "python3"
    shim.write_text('#!/bin/sh\nread -r version < .python-version; echo "Python $version"\n')
    shim.chmod(0o755)
    (Path(harness.turn().workspace) / ".python-version").write_text("3.42.1\n")
    path = f"{shims}{os.pathsep}{os.environ['PATH']}"
    monkeypatch.setenv("PATH", path)
    deps = replace(harness.deps(MemoryTranscripts()), environ={"PATH": path})
    last_prompt = await system_prompt(harness.turn(), deps, tools=["read_file"])
    assert "`python3` is Python 3.42." in last_prompt

"""Parts of Podium that are started alone."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from podium.sandbox import isolated
from tests.unit.sandbox.trees import ROOT

START = (sys.executable, "-IS", isolated.__file__)


def test_a_part_that_cannot_be_loaded_ends_as_a_denial_does() -> None:
    """A hook that ends with 1 is passed over by every CLI."""
    part = "podium.sandbox.no_such_part"
    ended = subprocess.run([*START, part], capture_output=True, check=False)
    assert (ended.returncode, ended.stdout) == (2, b"")
    assert ended.stderr.startswith(b"podium: 'podium.sandbox.no_such_part' could not be started")


def test_no_part_named_is_a_denial_too() -> None:
    assert subprocess.run(START, capture_output=True, check=False).returncode == 2


def test_the_parts_load_nothing_that_is_slow() -> None:
    slow = {"re", "enum", "json", "socket", "signal", "subprocess", "typing", "pydantic"}
    for part in ("podium.sandbox.hook_client", "podium.sandbox.guard.fork"):
        assert slow & _loaded_by(part) == set()


def _loaded_by(part: str) -> set[str]:
    folder = Path(isolated.__file__).parent
    code = f"""
import sys
sys.modules["podium.sandbox"] = sandbox = type(sys)("podium.sandbox")
sys.modules["podium"] = podium = type(sys)("podium")
sandbox.__path__, podium.__path__ = [{str(folder)!r}], [{str(folder.parent)!r}]
import {part}
print(*sys.modules)
"""
    command = (sys.executable, "-IS", "-c", code)
    ended = subprocess.run(command, capture_output=True, check=True, text=True, cwd=ROOT)
    return set(ended.stdout.split())

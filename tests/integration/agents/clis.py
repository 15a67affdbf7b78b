"""Locations of the real agent CLIs that `scripts/agent-clis` installed; a test that needs one skips without it."""

from __future__ import annotations

import shutil
import subprocess
from functools import cache
from pathlib import Path

import pytest

from tests.live import skip_unless_wanted

SCRIPTS = Path(__file__).parents[3] / "scripts"


def gemini() -> tuple[str, ...]:
    """Return the command that starts Gemini CLI."""
    node = shutil.which("node")
    if node is None:
        pytest.skip("gemini: Node.js is not installed")
    return (node, _program("gemini"))


def codex() -> str:
    """The native program: npm's own start script would be one more process in between."""
    return _program("codex")


def claude() -> str:
    return _program("claude")


def opencode() -> str:
    return _program("opencode")


@cache
def versions() -> dict[str, str]:
    """The pinned version of each CLI."""
    lines = (SCRIPTS / "agent-clis.versions").read_text().splitlines()
    pins = [line.split() for line in lines if line and not line.startswith("#")]
    return {name: version for name, _, version in pins}


def _program(name: str) -> str:
    skip_unless_wanted(name)
    folder = _cache() / f"{name}-{versions()[name]}"
    try:
        return str(folder / (folder / "program").read_text().strip())
    except OSError:
        pytest.skip(f"{name} {versions()[name]}: {_why_not(folder)}")


def _why_not(folder: Path) -> str:
    failed = folder.with_name(f"{folder.name}.failed")
    if failed.exists():
        return failed.read_text().strip()
    return "not installed; `sh scripts/agent-clis` does it where Node.js 20 and npm are"


@cache
def _cache() -> Path:
    where = subprocess.run(
        ["sh", str(SCRIPTS / "agent-clis"), "--where"], capture_output=True, text=True, check=True
    )
    return Path(where.stdout.strip())

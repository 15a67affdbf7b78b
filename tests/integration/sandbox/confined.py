"""Confined starts for tests: a place that is given, a place that is not, and programs that try."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest

from podium.core.processes import Confinement, Mount, ProcessExit, ProcessSpec
from podium.sandbox import LauncherSettings, ProcessLauncher
from podium.sandbox.confining.canary import Mechanism, candidates

PREFIX = os.path.realpath(sys.base_prefix)
PYTHON = os.path.realpath(sys.executable)

ATTEMPT = """
import ctypes, json, os, signal, socket, struct, subprocess, sys, time
libc = ctypes.CDLL(None, use_errno=True)
done = []
def attempt(name, act):
    try:
        result = act()
    except OSError as error:
        return
    if result is not False:
        done.append(name)
def write(path, text="changed"):
    with open(path, "a") as file:
        file.write(text)
given, outside = sys.argv[1:3]
"""
REPORT = "\nprint(json.dumps(done))"


def mechanisms() -> dict[str, Mechanism]:
    """The best of each name that this machine may have."""
    found: dict[str, Mechanism] = {}
    for mechanism in candidates():
        found.setdefault(mechanism.name, mechanism)
    return found


def mechanism_here(name: str) -> Mechanism:
    """The mechanism of this name, or the test is skipped."""
    found = mechanisms().get(name)
    if found is None:
        pytest.skip(f"no {name} on this machine")
    return found


def launcher_by(mechanism: Mechanism, **more: object) -> ProcessLauncher:
    settings = LauncherSettings(grace_seconds=2.0, linger_seconds=0.01)
    return ProcessLauncher(settings, mechanism=mechanism, **more)  # type: ignore[arg-type]


class Place:
    """A folder that a tree may change, one it may see, and one it should not know of."""

    def __init__(self, folder: Path) -> None:
        self.given = folder / "given"
        self.seen = folder / "seen"
        self.outside = folder / "outside"
        for made in (self.given, self.seen, self.outside):
            made.mkdir()
            (made / "file").write_text("as it was")

    def confinement(self, **more: object) -> Confinement:
        fields: dict[str, object] = {
            "kind": "kernel",
            "network": "none",
            "mounts": (
                Mount(source=PREFIX, target=PREFIX),
                Mount(source=str(self.seen), target=str(self.seen)),
                Mount(source=str(self.given), target=str(self.given), writable=True),
                *more.pop("mounts", ()),  # type: ignore[misc]
            ),
            **more,
        }
        return Confinement.model_validate(fields)

    def spawn(self, *argv: str, **more: object) -> ProcessSpec:
        confinement = more.pop("confinement", None) or self.confinement()
        fields = {"argv": argv, "cwd": str(self.given), "confinement": confinement, **more}
        return ProcessSpec.model_validate(fields)

    def sh(self, script: str, **more: object) -> ProcessSpec:
        return self.spawn("sh", "-c", script, **more)

    def python(self, code: str, *arguments: str, **more: object) -> ProcessSpec:
        return self.spawn(PYTHON, "-IS", "-c", code, *arguments, **more)

    def attempts(self, code: str, *arguments: str, **more: object) -> ProcessSpec:
        """A program that calls `attempt(name, act)`; `achieved` gives what it managed to do."""
        places = (str(self.given), str(self.outside))
        return self.python(ATTEMPT + code + REPORT, *places, *arguments, **more)


def achieved(ended: ProcessExit) -> list[str]:
    assert ended.exit_code == 0, ended
    found = json.loads(ended.stdout)
    assert isinstance(found, list)
    return found


def picture(folder: Path) -> dict[str, tuple[object, ...]]:
    """Names, content, modes, times and attributes of all that lies in a folder."""
    seen: dict[str, tuple[object, ...]] = {}
    for path in sorted(folder.rglob("*")):
        about = path.lstat()
        content = path.read_bytes() if path.is_file() else b""
        attributes = tuple(sorted(os.listxattr(path, follow_symlinks=False)))
        seen[path.name] = (content, about.st_mode, about.st_mtime_ns, about.st_nlink, attributes)
    return seen

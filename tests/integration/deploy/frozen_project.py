"""A project and its home, mounted at the paths that are recorded in them."""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

FROZEN = Path(__file__).parent / "frozen"
PROJECT, HOME = "/mnt/project", "/mnt/home"
NO_VARIABLES: Mapping[str, str] = MappingProxyType({})
PODIUM = str(Path(sys.executable).with_name("podium"))


class FrozenProject:
    """Runs programs that see the project in `/mnt/project` and the user's home in `/mnt/home`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.project = folder / "project"
        self.home = folder / "home"

    def extract(self, version: str) -> None:
        with tarfile.open(FROZEN / f"podium-{version}.tar.xz") as archive:
            archive.extractall(self.folder, filter="data")

    @property
    def environ(self) -> dict[str, str]:
        path = os.environ["PATH"]
        return {"PATH": path, "LANG": "C.UTF-8", "HOME": HOME, "PODIUM_HOME": HOME}

    def command(self, *argv: str) -> list[str]:
        mounts = ("--dev-bind", "/", "/", "--bind", str(self.folder), "/mnt")
        # Runs are pinned to the host that has their workspace.
        host = ("--unshare-uts", "--hostname", "frozen")
        return ["bwrap", "--die-with-parent", *mounts, *host, "--chdir", PROJECT, *argv]

    def run(
        self, *argv: str, stdin: str = "", variables: Mapping[str, str] = NO_VARIABLES
    ) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            self.command(*argv),
            env={**self.environ, **variables},
            input=stdin,
            capture_output=True,
            text=True,
            check=False,
            timeout=1000,
        )

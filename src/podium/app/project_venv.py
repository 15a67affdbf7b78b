"""The virtual environment in a project's folder, used in the sandbox as if a person had activated it."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from podium.core.errors import PodiumError

if TYPE_CHECKING:
    from podium.git.git_command import Git

VENV_NAMES = (".venv", "venv")
_LOOK_SECONDS = 30.0


class ProjectVenv:
    """Finds it. An activated one wins: then PATH has it already, and there is nothing to add."""

    def __init__(self, project: Path, environ: Mapping[str, str], git: Git) -> None:
        self._project = project
        self._environ = environ
        self._git = git
        self._until = 0.0
        self._programs = ""

    async def programs(self) -> str:
        """The folder of its programs, for the front of PATH. Empty: there is none that may be used."""
        if time.monotonic() >= self._until:
            self._programs = await self._find()
            self._until = time.monotonic() + _LOOK_SECONDS
        return self._programs

    async def _find(self) -> str:
        if self._environ.get("VIRTUAL_ENV"):
            return ""
        for name in VENV_NAMES:
            folder = self._project / name
            if is_venv(folder) and not await self._is_tracked(name):
                return str(folder / "bin")
        return ""

    async def _is_tracked(self, name: str) -> bool:
        """True when it came with the repository: its programs would then be chosen by the repository's authors.

        Where git cannot say, it is taken to be so.
        """
        try:
            listing = await self._git.run(
                "-C", str(self._project), "ls-files", "-z", "--", name, output_bytes=1_000, cut=True
            )
        except PodiumError:
            return True
        return bool(listing.stdout)


def is_venv(folder: Path) -> bool:
    """True for a virtual environment. A link is none: it leads elsewhere."""
    if folder.is_symlink() or not (folder / "pyvenv.cfg").is_file():
        return False
    return (folder / "bin/python").exists()

"""Folders for tests of the grounds that playbooks work in."""

from __future__ import annotations

import asyncio
import os
import stat
import subprocess
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from podium.core.folder_snapshots import FolderRestore
from podium.core.processes import ProcessExit, ProcessSpec
from podium.git import FolderRestorer, GitWorkingFolders
from podium.git.folder_copy import FolderLimits
from podium.git.git_command import Git
from podium.ports.launcher import Process
from podium.sandbox import ProcessLauncher

RUN = "run_0199f3c2a7b87c3e9d1f5a6b7c8d9e0f"
NOT_KEPT = (b".git", b".podium")

Image = dict[bytes, tuple[object, ...]]


def grounds_in(place: Path, limits: FolderLimits | None = None) -> GitWorkingFolders:
    return GitWorkingFolders(Git(ProcessLauncher()), place / "grounds", limits)


def folder_in(place: Path, files: dict[str, bytes]) -> Path:
    """The folder with these files, and those that it has already."""
    root = place / "folder"
    root.mkdir(exist_ok=True)
    for name, content in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(content)
    return root


def git(root: Path, *words: str) -> str:
    who = ("-c", "user.name=A", "-c", "user.email=a@b.c", "-c", "init.defaultBranch=main")
    done = subprocess.run(["git", *who, *words], cwd=root, check=True, capture_output=True)
    return done.stdout.decode(errors="surrogateescape").strip()


def image(root: Path, never: Sequence[bytes] = NOT_KEPT) -> Image:
    """Everything there: kind, permission bits, and content or where a link leads."""
    found: Image = {}
    for folder, inner, files in os.walk(os.fsencode(root)):
        inner[:] = [name for name in inner if name not in never]
        for name in inner + files:
            path = os.path.join(folder, name)
            found[path] = _about(path)
    return found


def _about(path: bytes) -> tuple[object, ...]:
    mode = os.lstat(path).st_mode
    if stat.S_ISLNK(mode):
        return ("link", os.readlink(path))
    if stat.S_ISREG(mode):
        return ("file", stat.S_IMODE(mode), Path(os.fsdecode(path)).read_bytes())
    return (stat.S_IFMT(mode), stat.S_IMODE(mode))


async def restored(
    grounds: GitWorkingFolders, *, undo: bool = False, over: bool = False
) -> FolderRestore:
    """Look, then do it."""
    restoring = FolderRestorer(grounds, RUN, datetime.now(UTC))
    return await restoring.put_back(await restoring.look(undo=undo), undo=undo, over=over)


class DyingLauncher:
    """Starts so many programs, and is then killed together with its Podium."""

    def __init__(self, starts: int) -> None:
        self._left = starts
        self._inner = ProcessLauncher()

    async def start(self, spawn: ProcessSpec) -> Process:
        return await self._inner.start(spawn)

    async def run(self, spawn: ProcessSpec) -> ProcessExit:
        self._left -= 1
        if self._left < 0:
            raise asyncio.CancelledError
        return await self._inner.run(spawn)

    async def on_terminal(self, spawn: ProcessSpec) -> tuple[str, ...]:
        return await self._inner.on_terminal(spawn)

"""Launcher that starts agents' commands confined as the settings say, with the project's virtual environment on PATH."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from podium.config.settings import SandboxSettings
from podium.core.errors import PodiumError, ToolMissing
from podium.core.processes import Confinement, Mount, ProcessExit, ProcessLimits, ProcessSpec
from podium.ports import Launcher, Process

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


_MEGABYTE = 1_000_000
_CACHE_SECONDS = 30.0

LookupKey = tuple[tuple[str, ...], tuple[str, ...], str]
"""Programs, the folders that they can write, and the search path."""


async def no_venv() -> str:
    """For a launcher without a project."""
    return ""


class ConfiningLauncher:
    """Completes confinements by what the settings say, and leaves the starting to another launcher.

    That one refuses what it cannot enforce, so a confinement that is asked for is never left out.
    Programs of Podium's own ask for none and get none.
    """

    def __init__(
        self,
        inner: Launcher,
        settings: SandboxSettings,
        environ: Mapping[str, str],
        *,
        needed_folders: Callable[[Sequence[str], Sequence[str], str], tuple[str, ...]],
        venv: Callable[[], Awaitable[str]] = no_venv,
    ) -> None:
        """`shown` gives the folders that have to be seen for programs to start, from the files of those
        that a person configured, the folders that the tree can write, which it must not go by, and the
        search path. `venv` gives a folder of programs that comes first on the search path of confined trees."""
        self._inner = inner
        self._settings = settings
        self._environ = environ
        self._needed_folders = needed_folders
        self._venv = venv
        self._cache: dict[LookupKey, tuple[float, tuple[str, ...]]] = {}

    async def start(self, spawn: ProcessSpec) -> Process:
        with self._missing_in_short(spawn):
            return await self._inner.start(await self._fitted(spawn))

    async def run(self, spawn: ProcessSpec) -> ProcessExit:
        with self._missing_in_short(spawn):
            return await self._inner.run(await self._fitted(spawn))

    async def on_terminal(self, spawn: ProcessSpec) -> tuple[str, ...]:
        with self._missing_in_short(spawn):
            return await self._inner.on_terminal(await self._fitted(spawn))

    async def _fitted(self, spawn: ProcessSpec) -> ProcessSpec:
        if spawn.confinement.kind == "kernel":
            return self._completed(spawn, await self._venv())
        # Without a fence only its variables are left, which lead to the private copies.
        env = {**spawn.confinement.unmounted_env, **_home(spawn), **spawn.env}
        update: dict[str, object] = {"confinement": Confinement(), "env": env}
        if self._settings.kind == "none" and not spawn.leaves_server:
            # Nothing tells agents' programs from Podium's own there, and the limits are wide.
            update["limits"] = self._limited(spawn.limits)
        return spawn.model_copy(update=update)

    def _completed(self, spawn: ProcessSpec, venv: str) -> ProcessSpec:
        confinement = spawn.confinement
        read = (str(Path(path).expanduser()) for path in self._settings.read)
        writable = [mount.source for mount in confinement.mounts if mount.writable]
        # An environment that the tree can write would be the tree's own choice of programs.
        env = {} if not venv or _lies_in(venv, writable) else {"PATH": self._behind(venv)}
        search_path = env.get("PATH") or self._environ.get("PATH", "")
        needed = self._folders_for((confinement.programs, tuple(writable), search_path))
        paths = dict.fromkeys((*needed, *read))
        mounts = [Mount(source=path, target=path) for path in paths if os.path.lexists(path)]
        return spawn.model_copy(
            update={
                # First, so that whatever is mounted for the tree itself covers them.
                "confinement": confinement.model_copy(
                    update={"mounts": (*mounts, *confinement.mounts)}
                ),
                "env": {**env, **_home(spawn), **spawn.env},
                "limits": self._limited(spawn.limits),
            }
        )

    def _behind(self, venv: str) -> str:
        return os.pathsep.join((venv, self._environ.get("PATH") or os.defpath))

    def _folders_for(self, key: LookupKey) -> tuple[str, ...]:
        """Folders that these programs need. Cached for a short time: the lookup is slow."""
        now = time.monotonic()
        until, folders = self._cache.get(key, (0.0, ()))
        if now >= until:
            folders = self._needed_folders(*key)
            self._cache[key] = (now + _CACHE_SECONDS, folders)
        return folders

    def _limited(self, limits: ProcessLimits) -> ProcessLimits:
        settings = self._settings
        return limits.model_copy(
            update={
                "tree_memory_bytes": limits.tree_memory_bytes or _bytes(settings.memory_mb),
                "processes": limits.processes or settings.processes or None,
                "file_bytes": limits.file_bytes or _bytes(settings.file_mb),
                "temporary_bytes": limits.temporary_bytes or _bytes(settings.temporary_mb),
            }
        )

    def _search_path(self, spawn: ProcessSpec) -> str:
        return spawn.env.get("PATH") or self._environ.get("PATH", "")

    @contextmanager
    def _missing_in_short(self, spawn: ProcessSpec) -> Iterator[None]:
        """Every folder that was searched is more than a person wants to read."""
        try:
            yield
        except ToolMissing as missing:
            program = spawn.argv[0]
            path = shutil.which(program, os.F_OK, self._search_path(spawn))
            if "/" in program or path is not None:
                raise
            raise ToolMissing(
                f"program {program!r} not found on PATH; install it, or name it by its full path"
            ) from missing


def _bytes(megabytes: int | None) -> int | None:
    """0 and None: no limit."""
    return megabytes * _MEGABYTE if megabytes else None


def _lies_in(path: str, folders: Sequence[str]) -> bool:
    real = os.path.realpath(path)
    return any(Path(real).is_relative_to(os.path.realpath(folder)) for folder in folders)


def _home(spawn: ProcessSpec) -> dict[str, str]:
    return {"HOME": spawn.confinement.home} if spawn.confinement.home else {}

"""Folders that playbooks work in: stored before, compared after, copied for a rehearsal."""

from __future__ import annotations

import asyncio
import os
import re
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from podium.core.errors import BadInput, NotPossibleNow
from podium.core.folder_snapshots import FolderChanges, WorkingFolder
from podium.git.folder_copy import STATE, FolderCopies, FolderLimits, printable
from podium.git.folder_snapshot import REFS, SCRATCH, FolderContent, FolderShadow, difference
from podium.git.git_command import Git
from podium.git.worktree_files import closed_paths, is_memory
from podium.platform import make_private_folder
from podium.platform.folder_tree import clear_away

START, LEFT = "start", "left"
MAX_DIFF_BYTES = 200_000
_RUNS_TO_KEEP = 20
_SECONDS_TO_KEEP = 14 * 86_400
_SCRATCH_SECONDS = 86_400
_RUN = re.compile(r"[A-Za-z0-9_-]{1,100}")
_CUT = "\n… cut here: the whole difference is longer\n"


class GitWorkingFolders:
    """Keeps folders under one of Podium's own, which no agent can reach."""

    def __init__(self, git: Git, folder: Path, limits: FolderLimits | None = None) -> None:
        self._limits = limits or FolderLimits()
        self._folder = folder
        self.shadow = FolderShadow(git, folder, self._limits)
        self._copies = FolderCopies(git, folder, self._limits)

    async def prepare(
        self,
        run_id: str,
        root: str,
        is_closed: Callable[[str], bool] = lambda path: False,
        *,
        as_copy: bool = False,
    ) -> WorkingFolder:
        """Store the folder's content, or make a copy. A second call of the same run returns the same folder.

        Content that cannot be stored is no error: the result says why. Raises `NotPossibleNow` when a copy cannot be
        made.
        """
        _check_run(run_id)
        folder = await self._copies.make(run_id, Path(root)) if as_copy else Path(root)
        working_folder = WorkingFolder(root=str(folder), is_copy=as_copy)
        try:
            closed = await _guarded(folder, is_closed)
            working_folder = working_folder.model_copy(update={"closed": closed})
            content = await self._start_content(run_id, folder)
        except (NotPossibleNow, OSError) as error:
            return working_folder.model_copy(update={"why_none": f"nothing was kept: {error}"})
        left_out = tuple(map(printable, content.left_out))
        return working_folder.model_copy(
            update={"snapshot": ref_of(run_id, START), "left_out": left_out}
        )

    async def _start_content(self, run_id: str, folder: Path) -> FolderContent:
        """Return the content at the run's first call, stored once: later calls and restarts reuse it."""
        ref = ref_of(run_id, START)
        if (before := await self.shadow.stored(ref)) is not None:
            return before
        index = self.index_of(run_id)
        await asyncio.to_thread(_begin_anew, index)
        content = await self.shadow.read(folder, index)
        await self.shadow.keep(content, ref, f"before {run_id}")
        return content

    async def changes(
        self,
        working_folder: WorkingFolder,
        root: str,
        is_closed: Callable[[str], bool] = lambda path: False,
    ) -> FolderChanges:
        """Compare with the stored content. The present one is stored too, to tell later changes from the run's own."""
        # An ignore list may be of the agent's making and a folder too large to be kept: new ones are looked for apart.
        try:
            closed = await _guarded(Path(working_folder.root), is_closed)
        except (NotPossibleNow, OSError) as error:
            return FolderChanges(unknown=f"{error}")
        planted = tuple(path for path in closed if path not in working_folder.closed)
        if not working_folder.snapshot:
            unknown = working_folder.why_none or f"nothing was kept of {root!r}"
            return FolderChanges(trespasses=planted, unknown=unknown)
        run_id = run_of(working_folder.snapshot)
        try:
            then = await self.shadow.stored(working_folder.snapshot)
            if then is None:
                return FolderChanges(
                    trespasses=planted, unknown=f"what was kept of {root!r} is gone"
                )
            now = await self.shadow.read(Path(working_folder.root), self.index_of(run_id))
            await self.shadow.keep(now, ref_of(run_id, LEFT), f"after {run_id}")
            diff, whole = await self.shadow.difference(then, now, MAX_DIFF_BYTES)
            is_ignored = await self.shadow.ignores(Path(working_folder.root))
        except (NotPossibleNow, OSError) as error:
            return FolderChanges(trespasses=planted, unknown=f"{error}")
        paths = difference(then, now).paths
        trespasses = {*planted, *(printable(path) for path in paths if is_closed(path))}
        return FolderChanges(
            paths=tuple(printable(path) for path in paths if not is_ignored(path)),
            ignored=tuple(printable(path) for path in paths if is_ignored(path)),
            trespasses=tuple(sorted(trespasses)),
            diff=diff if whole else f"{diff}{_CUT}",
        )

    async def leave(self, working_folder: WorkingFolder) -> None:
        """Remove a copy and its stored content. A second call does nothing."""
        if not working_folder.is_copy:
            return
        run_id = await self._copies.remove(Path(working_folder.root))
        await self.forget(run_id)

    async def forget(self, run_id: str) -> None:
        """Drop everything that is stored for a run."""
        await self.shadow.forget(run_id)
        await asyncio.to_thread(self.index_of(run_id).unlink, True)

    def runs(self) -> list[str]:
        """All runs that a folder was kept or copied for."""
        return sorted({*self._copies.runs(), *self._indexed()})

    async def tidy(self, is_over: Callable[[str], bool]) -> None:
        """Remove copies of runs that are over, and what was kept for old ones.

        Those of the last runs stay, and those of the last days.
        """
        if not self._folder.is_dir():
            return
        for run_id in filter(is_over, self._copies.runs()):
            await self._copies.drop(run_id)
            await self.forget(run_id)
        old = await asyncio.to_thread(self._old)
        gone = list(filter(is_over, old))
        for run_id in gone:
            await self.forget(run_id)
        if gone:
            await self.shadow.sweep()
        await asyncio.to_thread(self._clear_scratch)

    def index_of(self, run_id: str) -> Path:
        """Path of the git index for the run's folder."""
        return self._folder / "indexes" / _check_run(run_id)

    def _old(self) -> list[str]:
        """Runs beyond the last ones, of which something was kept long ago."""
        indexes = self._folder / "indexes"
        before = self._indexed()[:-_RUNS_TO_KEEP]
        return [name for name in before if _age_seconds(indexes / name) > _SECONDS_TO_KEEP]

    def _indexed(self) -> list[str]:
        """Oldest first."""
        indexes = self._folder / "indexes"
        names = os.listdir(indexes) if indexes.is_dir() else []  # noqa: PTH208 — names alone
        return sorted(name for name in names if _RUN.fullmatch(name))

    def _clear_scratch(self) -> None:
        """Remove scratch folders of killed processes."""
        for path in self._folder.glob(f"{SCRATCH}*"):
            if _age_seconds(path) > _SCRATCH_SECONDS:
                clear_away(path)


async def _guarded(root: Path, is_closed: Callable[[str], bool]) -> tuple[str, ...]:
    """Return the paths that nobody may change or plant, as printable text."""

    def guarded(path: str) -> bool:
        return (is_memory(path) and not _is_placeholder(root, path)) or is_closed(path)

    return tuple(map(printable, await asyncio.to_thread(closed_paths, root, guarded)))


def _is_placeholder(root: Path, path: str) -> bool:
    """Check for the empty folder that a confinement makes so that nobody else takes the name."""
    folder = root / path
    if path != STATE or folder.is_symlink() or not folder.is_dir():
        return False
    return not any(folder.iterdir())


def ref_of(run_id: str, name: str) -> str:
    return f"{REFS}/{_check_run(run_id)}/{name}"


def run_of(ref: str) -> str:
    """Return the run that a ref belongs to. Raises `BadInput` for any other ref."""
    above, _, rest = ref.removeprefix(f"{REFS}/").partition("/")
    if not ref.startswith(f"{REFS}/") or not rest:
        raise BadInput(f"{ref[:100]!r} names nothing that was kept of a folder")
    return _check_run(above)


def _check_run(run_id: str) -> str:
    if not _RUN.fullmatch(run_id):
        raise BadInput(f"{run_id[:100]!r} is no id of a run; see `podium runs`")
    return run_id


def _begin_anew(index: Path) -> None:
    """Drop the index of a killed attempt: the folder may have changed since."""
    make_private_folder(index.parent)
    index.unlink(missing_ok=True)


def _age_seconds(path: Path) -> float:
    with suppress(OSError):
        return time.time() - path.lstat().st_mtime
    return 0.0

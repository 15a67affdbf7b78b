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
from podium.git.folder_copy import STATE, FolderCopies, FolderLimits, shown
from podium.git.folder_snapshot import REFS, SCRATCH, FolderContent, FolderShadow, difference
from podium.git.git_command import Git
from podium.git.worktree_files import closed_places, is_memory
from podium.platform import make_private_folder
from podium.platform.folder_tree import clear_away

START, LEFT = "start", "left"
MAX_DIFF_BYTES = 200_000
KEPT_RUNS = 20
_KEPT_SECONDS = 14 * 86_400
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
        """Keep what is there, or copy it away. The same run gets the same ground when it asks again.

        What cannot be kept is no error: the ground says why. Raises `NotPossibleNow` when a copy cannot be
        made.
        """
        _check_run(run_id)
        place = await self._copies.make(run_id, Path(root)) if as_copy else Path(root)
        ground = WorkingFolder(root=str(place), is_copy=as_copy)
        try:
            closed = await _guarded(place, is_closed)
            ground = ground.model_copy(update={"closed": closed})
            kept = await self._kept(run_id, place)
        except (NotPossibleNow, OSError) as error:
            return ground.model_copy(update={"why_none": f"nothing was kept: {error}"})
        left_out = tuple(map(shown, kept.left_out))
        return ground.model_copy(update={"snapshot": ref_of(run_id, START), "left_out": left_out})

    async def _kept(self, run_id: str, place: Path) -> FolderContent:
        """What was there when the run asked first: after a kill nothing else is taken for that."""
        ref = ref_of(run_id, START)
        if (before := await self.shadow.known(ref)) is not None:
            return before
        index = self.index_of(run_id)
        await asyncio.to_thread(_begin_anew, index)
        kept = await self.shadow.read(place, index)
        await self.shadow.keep(kept, ref, f"before {run_id}")
        return kept

    async def changes(
        self,
        ground: WorkingFolder,
        root: str,
        is_closed: Callable[[str], bool] = lambda path: False,
    ) -> FolderChanges:
        """What is different now. It is kept too, so that later changes can be told from the run's own."""
        # An ignore list may be of the agent's making and a folder too large to be kept: new ones are looked for apart.
        try:
            closed = await _guarded(Path(ground.root), is_closed)
        except (NotPossibleNow, OSError) as error:
            return FolderChanges(unknown=f"{error}")
        planted = tuple(path for path in closed if path not in ground.closed)
        if not ground.snapshot:
            unknown = ground.why_none or f"nothing was kept of {root!r}"
            return FolderChanges(trespasses=planted, unknown=unknown)
        run_id = run_of(ground.snapshot)
        try:
            then = await self.shadow.known(ground.snapshot)
            if then is None:
                return FolderChanges(
                    trespasses=planted, unknown=f"what was kept of {root!r} is gone"
                )
            now = await self.shadow.read(Path(ground.root), self.index_of(run_id))
            await self.shadow.keep(now, ref_of(run_id, LEFT), f"after {run_id}")
            diff, whole = await self.shadow.difference(then, now, MAX_DIFF_BYTES)
            is_ignored = await self.shadow.ignores(Path(ground.root))
        except (NotPossibleNow, OSError) as error:
            return FolderChanges(trespasses=planted, unknown=f"{error}")
        paths = difference(then, now).paths
        trespasses = {*planted, *(shown(path) for path in paths if is_closed(path))}
        return FolderChanges(
            paths=tuple(shown(path) for path in paths if not is_ignored(path)),
            ignored=tuple(shown(path) for path in paths if is_ignored(path)),
            trespasses=tuple(sorted(trespasses)),
            diff=diff if whole else f"{diff}{_CUT}",
        )

    async def leave(self, ground: WorkingFolder) -> None:
        """Remove a copy and what was kept of it. Asked again it does nothing."""
        if not ground.is_copy:
            return
        run_id = await self._copies.remove(Path(ground.root))
        await self.forget(run_id)

    async def forget(self, run_id: str) -> None:
        """Drop all that is kept for a run."""
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
        """What git remembers of the files of the run's folder."""
        return self._folder / "indexes" / _check_run(run_id)

    def _old(self) -> list[str]:
        """Runs beyond the last ones, of which something was kept long ago."""
        indexes = self._folder / "indexes"
        before = self._indexed()[:-KEPT_RUNS]
        return [name for name in before if _age_seconds(indexes / name) > _KEPT_SECONDS]

    def _indexed(self) -> list[str]:
        """Oldest first."""
        indexes = self._folder / "indexes"
        names = os.listdir(indexes) if indexes.is_dir() else []  # noqa: PTH208 — names alone
        return sorted(name for name in names if _RUN.fullmatch(name))

    def _clear_scratch(self) -> None:
        """What killed Podiums left."""
        for place in self._folder.glob(f"{SCRATCH}*"):
            if _age_seconds(place) > _SCRATCH_SECONDS:
                clear_away(place)


async def _guarded(root: Path, is_closed: Callable[[str], bool]) -> tuple[str, ...]:
    """What nobody may change or plant, as text that can be written anywhere."""

    def guarded(path: str) -> bool:
        return (is_memory(path) and not _is_placeholder(root, path)) or is_closed(path)

    return tuple(map(shown, await asyncio.to_thread(closed_places, root, guarded)))


def _is_placeholder(root: Path, path: str) -> bool:
    """The empty folder that a fence makes so that nobody else takes its name."""
    folder = root / path
    if path != STATE or folder.is_symlink() or not folder.is_dir():
        return False
    return not any(folder.iterdir())


def ref_of(run_id: str, moment: str) -> str:
    return f"{REFS}/{_check_run(run_id)}/{moment}"


def run_of(ref: str) -> str:
    """The run that something was kept for. Raises `BadInput` for what is no ref of this room."""
    above, _, rest = ref.removeprefix(f"{REFS}/").partition("/")
    if not ref.startswith(f"{REFS}/") or not rest:
        raise BadInput(f"{ref[:100]!r} names nothing that was kept of a folder")
    return _check_run(above)


def _check_run(run_id: str) -> str:
    if not _RUN.fullmatch(run_id):
        raise BadInput(f"{run_id[:100]!r} is no id of a run; see `podium runs`")
    return run_id


def _begin_anew(index: Path) -> None:
    """Whatever a killed attempt remembered may be of a folder that was changed since."""
    make_private_folder(index.parent)
    index.unlink(missing_ok=True)


def _age_seconds(place: Path) -> float:
    with suppress(OSError):
        return time.time() - place.lstat().st_mtime
    return 0.0

"""Folders that playbooks work in: stored before, compared after, copied for a rehearsal, restored."""

from __future__ import annotations

import asyncio
import hashlib
import os
import re
import shutil
import stat
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from podium.core.errors import BadInput, NotPossibleNow
from podium.core.folder_snapshots import FolderChanges, FolderRestore, WorkingFolder
from podium.git.folder_copy import STATE, FolderCopies, FolderLimits, printable
from podium.git.folder_snapshot import (
    REFS,
    SCRATCH,
    FolderContent,
    FolderDifference,
    FolderShadow,
    difference,
    in_the_way,
)
from podium.git.git_command import Git
from podium.git.worktree_files import closed_paths, is_memory, kind_of, open_folders, remove_file
from podium.platform import make_private_folder
from podium.platform.folder_tree import clear_away
from podium.platform.safe_open import create_new

START, LEFT = "start", "left"
MAX_DIFF_BYTES = 200_000
_RUNS_TO_KEEP = 20
_SECONDS_TO_KEEP = 14 * 86_400
_SCRATCH_SECONDS = 86_400
_RUN = re.compile(r"[A-Za-z0-9_-]{1,100}")
_CUT = "\n… cut here; the complete diff is longer\n"


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
            return working_folder.model_copy(update={"why_none": f"no snapshot was taken: {error}"})
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
            unknown = working_folder.why_none or f"no snapshot of {root!r} was taken"
            return FolderChanges(trespasses=planted, unknown=unknown)
        run_id = run_of(working_folder.snapshot)
        try:
            then = await self.shadow.stored(working_folder.snapshot)
            if then is None:
                return FolderChanges(
                    trespasses=planted, unknown=f"the snapshot of {root!r} is gone"
                )
            now = await self.shadow.read(Path(working_folder.root), self.index_of(run_id))
            await self.shadow.keep(now, ref_of(run_id, LEFT), f"after {run_id}")
            is_ignored = await self.shadow.ignores(Path(working_folder.root))
            changed = difference(then, now)
            ignored = [path for path in changed.files if is_ignored(path)]
            diff, whole = await self.shadow.difference(then, now, MAX_DIFF_BYTES, ignored)
        except (NotPossibleNow, OSError) as error:
            return FolderChanges(trespasses=planted, unknown=f"{error}")
        paths = changed.paths
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
        """List all runs with a snapshot or copy of a folder."""
        return sorted({*self._copies.runs(), *self._indexed()})

    async def tidy(self, is_over: Callable[[str], bool]) -> None:
        """Remove copies of runs that are over, and snapshots of old ones.

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
        """Runs beyond the last ones, with an old snapshot."""
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
        raise BadInput(f"{ref[:100]!r} is not a snapshot of a folder")
    return _check_run(above)


def _check_run(run_id: str) -> str:
    if not _RUN.fullmatch(run_id):
        raise BadInput(f"{run_id[:100]!r} is not a run id; see `podium runs`")
    return run_id


def _begin_anew(index: Path) -> None:
    """Drop the index of a killed attempt: the folder may have changed since."""
    make_private_folder(index.parent)
    index.unlink(missing_ok=True)


def _age_seconds(path: Path) -> float:
    with suppress(OSError):
        return time.time() - path.lstat().st_mtime
    return 0.0


_BACKUP = "aside"
"""Refs of states that were replaced by a restore, numbered, newest last."""
_MAX_NAMED = 5


@dataclass(frozen=True)
class _RestorePlan:
    then: FolderContent
    now: FolderContent
    off: FolderDifference
    summary: FolderRestore


class FolderRestorer:
    """Shows and does it for the folder of one run."""

    def __init__(
        self, working_folders: GitWorkingFolders, run_id: str, ended_at: datetime | None
    ) -> None:
        """`ended_at` is when the run let go of the folder: without a look at it then, files that were
        changed later count as somebody else's."""
        self._working_folders = working_folders
        self._shadow = working_folders.shadow
        self._run_id = run_id
        self._ended_at = ended_at

    async def look(self, *, undo: bool) -> FolderRestore:
        """Plan a restore without changing anything. `undo` reverts the last restore.

        Raises `NotPossibleNow` when no snapshot exists, or something is in the way.
        """
        return (await self._plan(undo)).summary

    async def put_back(self, expected: FolderRestore, *, undo: bool, over: bool) -> FolderRestore:
        """Restore the folder as `look` described. After a kill it can be called again.

        Raises `NotPossibleNow` when the folder is no longer as `look` described it, or holds changes of others and
        `over` is not set.
        """
        plan = await self._plan(undo)
        if plan.summary.seen != expected.seen:
            raise NotPossibleNow(
                f"{plan.summary.root!r} has changed in the meantime, and nothing was restored; try again"
            )
        if plan.summary.conflicts and not over:
            raise NotPossibleNow(
                f"{_some(plan.summary.conflicts)} in {plan.summary.root!r} changed after the run, and the changes would be lost; save what you "
                "need, then run again with --over"
            )
        if not plan.summary.paths:
            return plan.summary
        backup = await self._back_up(plan.now)
        await self._do(plan.then, plan.off)
        await self._prove(plan.then)
        return plan.summary.model_copy(update={"kept": backup})

    async def _plan(self, undo: bool) -> _RestorePlan:
        then = await self._then(undo)
        now = await self._now(then)
        off = difference(then, now)
        if blocked := in_the_way(now, off):
            raise NotPossibleNow(
                f"{_some(blocked)} in {then.root!r} would have to be deleted and has not been backed up; move it away first"
            )
        return _RestorePlan(then, now, off, await self._describe(then, now, off))

    async def _then(self, undo: bool) -> FolderContent:
        ref = ref_of(self._run_id, START)
        if undo:
            backups = await self._backups()
            if not backups:
                raise NotPossibleNow(f"nothing of run {self._run_id} has been restored yet")
            ref = backups[-1]
        content = await self._shadow.stored(ref)
        if content is None:
            raise NotPossibleNow(
                f"run {self._run_id} has no snapshot of its folder: none was taken when the run started, or it is gone; see `podium show`"
            )
        return content

    async def _now(self, then: FolderContent) -> FolderContent:
        root = Path(then.root)
        if not root.is_dir():  # noqa: ASYNC240 — one look
            raise NotPossibleNow(
                f"the folder {then.root!r} does not exist; create it, then try again"
            )
        return await self._shadow.read(root, self._working_folders.index_of(self._run_id))

    async def _backups(self) -> list[str]:
        names = await self._shadow.refs(self._run_id)
        return [name for name in names if name.startswith(f"{ref_of(self._run_id, _BACKUP)}/")]

    async def _describe(
        self, then: FolderContent, now: FolderContent, off: FolderDifference
    ) -> FolderRestore:
        removed = {*off.remove, *(f"{folder}/" for folder in off.remove_folders)}
        paths = off.paths
        return FolderRestore(
            root=then.root,
            written=tuple(printable(path) for path in paths if path not in removed),
            removed=tuple(printable(path) for path in paths if path in removed),
            conflicts=tuple(map(printable, await self._conflicts(now, off))),
            left_out=tuple(map(printable, then.left_out)),
            seen=_sign(now),
        )

    async def _conflicts(self, now: FolderContent, off: FolderDifference) -> list[str]:
        """Return paths that would change and are not as Podium left them."""
        left = await self._shadow.stored(ref_of(self._run_id, LEFT))
        if left is not None:
            return sorted(off.files & difference(left, now).files)
        since = self._ended_at.timestamp() if self._ended_at else float("inf")
        return sorted(path for path in off.files if _changed(Path(now.root, path)) > since)

    async def _back_up(self, now: FolderContent) -> str:
        numbers = [int(name.rpartition("/")[2]) for name in await self._backups()]
        ref = f"{ref_of(self._run_id, _BACKUP)}/{max(numbers, default=0) + 1}"
        await self._shadow.keep(now, ref, f"before putting back the folder of {self._run_id}")
        return ref

    async def _do(self, then: FolderContent, off: FolderDifference) -> None:
        root = Path(then.root)
        async with self._shadow.written_out(then, off.write) as staged:
            await asyncio.to_thread(_clear_the_way, root, off)
            await asyncio.to_thread(_write, root, then, off, staged)
        await asyncio.to_thread(_set_rights, root, then, off)

    async def _prove(self, then: FolderContent) -> None:
        """Read it again, and let that stand for how Podium left it."""
        now = await self._now(then)
        off = difference(then, now)
        if off.files or off.make_folders:
            raise NotPossibleNow(
                f"{_some(off.paths)} in {then.root!r} could not be restored; another program is writing there, or the disk has a "
                "problem. Fix that, then try again"
            )
        await self._shadow.keep(now, ref_of(self._run_id, LEFT), f"put back: {self._run_id}")


def _clear_the_way(root: Path, off: FolderDifference) -> None:
    for path in off.remove:
        open_folders(root, path)
        remove_file(root, path)
    for path in off.remove_folders:
        open_folders(root, path)
        # One that something is left in, such as a repository of its own, stays.
        with suppress(OSError):
            (root / path).rmdir()


def _write(root: Path, then: FolderContent, off: FolderDifference, staged: Path) -> None:
    for path in off.make_folders:
        open_folders(root, path)
        if kind_of(root, path) == "missing":
            (root / path).mkdir(mode=0o700)
    for path in off.write:
        open_folders(root, path)
        kind_of(root, path)  # raises where a link stands in place of a folder above it
        _put(staged / path, root / path, then.files.get(path))


def _put(staged: Path, path: Path, mode: int | None) -> None:
    """In one step: nobody ever sees half a file. A link has no mode."""
    draft = path.with_name(f".podium-{os.getpid()}.tmp")
    draft.unlink(missing_ok=True)
    if mode is None:
        draft.symlink_to(os.readlink(staged))  # noqa: PTH115 — a `Path` is not the text as it stands
    else:
        # Private until it is whole: it may hold secrets.
        with staged.open("rb") as source, os.fdopen(create_new(draft), "wb") as target:
            shutil.copyfileobj(source, target)
            os.fchmod(target.fileno(), mode)
    draft.replace(path)


def _set_rights(root: Path, then: FolderContent, off: FolderDifference) -> None:
    """Set permissions, of folders last and innermost first: files in them are written by then."""
    for path in off.set_rights:
        if path in then.files:
            _chmod(root / path, then.files[path])
    for path in sorted(_folders_touched(then, off), reverse=True):
        _chmod(root / path, then.folders[path])


def _folders_touched(then: FolderContent, off: FolderDifference) -> Iterator[str]:
    """Those whose own rights were others, and all above something that was put back or removed."""
    for path in {*off.write, *off.remove, *off.make_folders, *off.remove_folders, *off.set_rights}:
        inner = path
        while inner:
            if inner in then.folders:
                yield inner
            inner = inner.rpartition("/")[0]


def _chmod(path: Path, mode: int) -> None:
    """Set the permission bits. Further mode bits, such as an inherited group, stay."""
    current = path.lstat().st_mode
    if not stat.S_ISLNK(current):
        path.chmod(mode | current & 0o7000)


def _changed(path: Path) -> float:
    with suppress(OSError):
        return path.lstat().st_ctime
    return 0.0


def _sign(now: FolderContent) -> str:
    """Changes with whatever is in the folder."""
    return hashlib.sha256(now.tree.encode() + now.manifest()).hexdigest()


def _some(paths: Sequence[str]) -> str:
    more = len(paths) - _MAX_NAMED
    names = ", ".join(repr(printable(path)) for path in paths[:_MAX_NAMED])
    return f"{names} and {more} more" if more > 0 else names

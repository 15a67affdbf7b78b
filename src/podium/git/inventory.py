"""Inventory of all workspaces: where their work is safe, removal, and cleanup after killed processes.

The order: what is to be removed is noted; the worktree and its entry in the user's repository get names
that nothing else can have; an unused branch and unused fetched bases go; that the repository is done with is noted; a memory is
written; what was moved is emptied; the private folder is moved away as a whole and emptied. Until the
first note nothing was touched; from then on every step may be done again, also when somebody has made
another worktree of the same name in between.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path

from podium.core.errors import LockHeld, NotPossibleNow, PodiumError, UnknownId
from podium.core.workspaces import (
    Leftover,
    WorkLocation,
    WorkspaceListing,
    WorkspaceRecord,
    WorkspaceRemoval,
    WorktreeSnapshot,
)
from podium.git.creation import admin_folders, forget_parent, points_at, undo_creation
from podium.git.git_command import BASE_REFS, Git, clear_stale_lock
from podium.git.layout import tidy
from podium.git.planted import find_planted
from podium.git.records import RemovalRecord, RemovedWorkspaces, WorkspaceRecords, merged_bases
from podium.git.snapshots import Snapshots
from podium.git.work_safety import ContentsReader, SafetyFinding, WorkComparison
from podium.platform.atomic_write import atomic_write
from podium.platform.folder_tree import clear_away, measure, remove_if_empty
from podium.ports import Clock


class WorkspaceRemover:
    """Takes workspaces apart. Whether one may be removed is decided before."""

    def __init__(self, git: Git, records: WorkspaceRecords, clock: Clock) -> None:
        self._git = git
        self._records = records
        self._clock = clock
        self._memories = RemovedWorkspaces(records)
        self.cleared = records.folder / "cleared"
        """Private folders of workspaces that are no more, until they are emptied."""

    async def remove(self, record: WorkspaceRecord, because: str) -> None:
        """Remove it wholly, or finish what another process began. The workspace's lock is held.

        Raises `NotPossibleNow` when something is in the way; asked again it goes on from there.
        """
        self._records.note_removal(record)
        async with self._records.repository_lock(record.git_dir):
            if not self._detached(record).exists():
                await asyncio.to_thread(_move_away, record)
                await self._drop_unused_branch(record)
                await self._drop_unused_bases(record)
                atomic_write(self._detached(record), b"")
        memory = RemovalRecord(
            record=record,
            removed_at=self._clock.now(),
            because=because,
            delivered=self._records.delivered(record),
        )
        self._memories.remember(memory)
        await asyncio.to_thread(_empty_moved, record)
        self._move_private_away(record)
        await asyncio.to_thread(clear_away, self.cleared / record.id)

    def _detached(self, record: WorkspaceRecord) -> Path:
        """Stands for: in the user's repository nothing is left to do."""
        return self._records.private(record.id) / "detached"

    async def _drop_unused_branch(self, record: WorkspaceRecord) -> None:
        """A branch that nobody has put anything on, and nobody has checked out, is of no use."""
        if not Path(record.git_dir).is_dir():  # noqa: ASYNC240 — one look at a local folder
            return
        await clear_stale_lock(record.git_dir, record.branch)
        form = "--format=%(objectname) %(worktreepath)"
        listed = await self._git.text("for-each-ref", form, record.branch, git_dir=record.git_dir)
        if listed.strip() == record.base:
            await self._git.run(
                "update-ref", "-d", record.branch, record.base, git_dir=record.git_dir
            )

    async def _drop_unused_bases(self, record: WorkspaceRecord) -> None:
        """Fetched bases that it merged and no other workspace has; all of them when there is no other."""
        if not Path(record.git_dir).is_dir():  # noqa: ASYNC240 — one look at a local folder
            return
        listed = await self._git.text(
            "for-each-ref", "--format=%(refname) %(objectname)", BASE_REFS, git_dir=record.git_dir
        )
        records = [self._records.of(id_) for id_ in self._records.ids() if id_ != record.id]
        others = [
            other for other in records if other is not None and other.git_dir == record.git_dir
        ]
        used = {commit for other in others for commit in (other.base, *merged_bases(other))}
        unused = {*merged_bases(record)} - used
        for ref, commit in (row.split(" ") for row in listed.splitlines()):
            if commit in unused or not others:
                await self._git.run("update-ref", "-d", ref, commit, git_dir=record.git_dir)

    def _move_private_away(self, record: WorkspaceRecord) -> None:
        self.cleared.mkdir(mode=0o700, exist_ok=True)
        self._records.private(record.id).rename(self.cleared / record.id)


def taken_away(record: WorkspaceRecord) -> Path:
    """Return the folder in which the worktree waits for deletion: beside its old path, on the same disk."""
    return Path(record.path).parent / f".podium-removed-{record.id}"


def entry_taken_away(record: WorkspaceRecord) -> Path:
    """Return the folder in which its entry waits for deletion. Under `worktrees` git would take it for a worktree."""
    return Path(record.git_dir) / f"podium-removed-{record.id}"


def is_own_worktree(record: WorkspaceRecord) -> bool:
    """Check that the folder is still the workspace's own and not one that was made there later."""
    return bool(record.admin) and points_at(record, _entry(record))


def _entry(record: WorkspaceRecord) -> Path:
    return Path(record.git_dir) / "worktrees" / record.admin


def _move_away(record: WorkspaceRecord) -> None:
    """Under their old names somebody may make others at any time."""
    _move(Path(record.path), taken_away(record), own=is_own_worktree(record))
    _move(_entry(record), entry_taken_away(record), own=_entry(record) in admin_folders(record))
    remove_if_empty(Path(record.git_dir, "worktrees"))


def _move(path: Path, away: Path, *, own: bool) -> None:
    """Move a folder. The target exists from then on, so that a second attempt moves nothing else."""
    if os.path.lexists(away):
        return
    if own:
        path.rename(away)
    else:
        away.mkdir(parents=True)


def _empty_moved(record: WorkspaceRecord) -> None:
    clear_away(entry_taken_away(record))
    clear_away(taken_away(record))
    forget_parent(Path(record.path))


_AT_ONCE = 4
"""Number of workspaces that are read at the same time."""


class WorkspaceLister:
    """Looks at workspaces. Nothing in them changes, but that planted repositories are moved away."""

    def __init__(
        self,
        git: Git,
        records: WorkspaceRecords,
        clock: Clock,
        snapshots: Snapshots,
        cleared: Path,
        *,
        confined: bool,
    ) -> None:
        """`cleared` holds what is left of workspaces that are no more."""
        self._records = records
        self._clock = clock
        self._snapshots = snapshots
        self._cleared = cleared
        self._git = git
        self._reader = ContentsReader(git, confined=confined)

    async def listed(self, git_dir: str = "") -> list[WorkspaceListing]:
        """All that are whole, or those of one repository, oldest first."""
        at_once = asyncio.Semaphore(_AT_ONCE)

        async def look(record: WorkspaceRecord) -> WorkspaceListing:
            async with at_once:
                return await self.one(record)

        records = [record for record in self._whole() if git_dir in ("", record.git_dir)]
        return list(await asyncio.gather(*map(look, records)))

    async def one(self, record: WorkspaceRecord, *, held: bool = False) -> WorkspaceListing:
        """`held`: the caller holds its lock, so that nobody else can be at work in it."""
        snapshots: Sequence[WorktreeSnapshot] = ()
        try:
            if Path(record.git_dir).is_dir():  # noqa: ASYNC240 — one look at a local folder
                snapshots = await self._snapshots.listed(record)
            finding = await self._finding(record, snapshots, held=held)
        except Exception as error:  # of one workspace, which must not hide all others
            finding = SafetyFinding(WorkLocation.UNKNOWN, f"it cannot be checked: {error}")
        size = await asyncio.to_thread(measure, Path(record.path), Path(record.private))
        return WorkspaceListing(
            record=record,
            kept=finding.location,
            because=finding.because,
            bytes=size.bytes,
            changed_at=size.changed_at(self._clock.now(), record.created_at),
            snapshots=tuple(snapshots),
        )

    async def _finding(
        self, record: WorkspaceRecord, snapshots: Sequence[WorktreeSnapshot], *, held: bool
    ) -> SafetyFinding:
        if not held and self._records.in_use(record.id):
            return SafetyFinding(WorkLocation.IN_USE, f"a run is using it{_run(record)}")
        if not Path(record.git_dir).is_dir():  # noqa: ASYNC240 — one look at a local folder
            return SafetyFinding(
                WorkLocation.UNKNOWN,
                f"its repository {record.repository!r} is gone; save what you need from "
                f"{record.path!r}, then delete that folder and {record.private!r}",
            )
        if _is_foreign(record):
            return SafetyFinding(
                WorkLocation.UNKNOWN,
                f"{record.path!r} no longer belongs to the repository; save what you need from it, then move it away",
            )
        await self._tidied(record, held=held)
        branches = {other.branch for other in self._whole()}
        async with self._reader.read(record) as contents:
            return await WorkComparison(self._git, record, contents).judge(snapshots, branches)

    async def _tidied(self, record: WorkspaceRecord, *, held: bool) -> None:
        """After a kill in a turn nobody has moved away what an agent planted. Raises when it cannot be."""
        worktree = Path(record.path)
        if not worktree.is_dir():  # noqa: ASYNC240 — one look at a local folder
            return
        if any(await asyncio.to_thread(find_planted, worktree)):
            lock = nullcontext() if held else self._records.workspace_lock(record.id)
            with lock:
                await tidy(self._git, record)

    def _whole(self) -> list[WorkspaceRecord]:
        records = []
        for id_ in self._records.ids():
            try:
                if self._records.removing(id_) is None:
                    records.append(self._records.read(id_))
            except PodiumError:
                continue  # half made, or it cannot be read: `leftovers` tells
        return records

    async def leftovers(self) -> list[Leftover]:
        """List unfinished workspaces that no living process is making or removing."""
        unfinished = [await self._leftover(id_) for id_ in self._records.ids()]
        emptied = [
            Leftover(id=name, because="its removal was interrupted while files were deleted")
            for name in _names(self._cleared)
        ]
        return [leftover for leftover in (*unfinished, *emptied) if leftover is not None]

    async def _leftover(self, workspace_id: str) -> Leftover | None:
        private = self._records.private(workspace_id)
        try:
            if self._records.in_use(workspace_id):
                return None
            removing = self._records.removing(workspace_id)
            creating = self._records.creating(workspace_id)
            record = removing or creating or self._records.of(workspace_id)
        except PodiumError as error:
            return Leftover(
                id=workspace_id, because=str(error), places=(str(private),), readable=False
            )
        if removing is not None:
            because = f"the removal of {removing.task!r} was interrupted; its work was already safe"
        elif creating is not None:
            because = f"the creation of {creating.task!r} was interrupted; it was never used"
        elif record is None:
            because = "its creation was interrupted before anything was created"
        else:
            return None
        paths = (str(private), *(_paths_left(record) if record is not None else ()))
        size = await asyncio.to_thread(measure, *map(Path, paths))
        return Leftover(
            id=workspace_id,
            because=because,
            places=paths,
            bytes=size.bytes,
            task=record.task if record is not None else "",
            repository=record.repository if record is not None else "",
            git_dir=record.git_dir if record is not None else "",
        )


def _paths_left(record: WorkspaceRecord) -> list[str]:
    """List what is left of it outside its private folder."""
    candidates = [taken_away(record), entry_taken_away(record), *admin_folders(record)]
    if not record.admin or is_own_worktree(record):
        candidates.append(Path(record.path))
    return [str(path) for path in candidates if os.path.lexists(path)]


def _is_foreign(record: WorkspaceRecord) -> bool:
    return os.path.lexists(record.path) and not is_own_worktree(record)


def _names(folder: Path) -> list[str]:
    return sorted(entry.name for entry in folder.iterdir()) if folder.is_dir() else []


def _run(record: WorkspaceRecord) -> str:
    return f": {record.run_id}" if record.run_id else ""


class WorkspaceCollector:
    """Decides whether a workspace may go, and lets it go."""

    def __init__(
        self,
        git: Git,
        records: WorkspaceRecords,
        clock: Clock,
        snapshots: Snapshots,
        *,
        confined: bool,
    ) -> None:
        self._git = git
        self._records = records
        self._snapshots = snapshots
        self._remover = WorkspaceRemover(git, records, clock)
        self.listing = WorkspaceLister(
            git, records, clock, snapshots, self._remover.cleared, confined=confined
        )

    async def remove(self, workspace_id: str) -> WorkspaceRemoval:
        """Remove it if its work is safe elsewhere; else say why not."""
        record = self._records.read(workspace_id)
        try:
            with self._records.workspace_lock(workspace_id), _removal_errors(record):
                return await self._remove_if_safe(record)
        except LockHeld as held:
            return WorkspaceRemoval(
                id=workspace_id,
                task=record.task,
                removed=False,
                because=str(held),
                kept=WorkLocation.IN_USE,
            )

    async def _remove_if_safe(self, record: WorkspaceRecord) -> WorkspaceRemoval:
        listing = await self.listing.one(record, held=True)
        snapshot = await self._snapshot(record, listing.kept) if listing.kept.is_safe else None
        whole = snapshot is None or snapshot.complete
        because = listing.because
        if snapshot is not None and not whole:
            left_out = "".join(snapshot.left_out[:1])
            because = (
                f"the snapshot could not store {left_out}; save or delete that, then try again"
            )
        if listing.kept.is_safe and whole:
            await self._remover.remove(record, listing.because)
        return WorkspaceRemoval(
            id=record.id,
            task=record.task,
            removed=listing.kept.is_safe and whole,
            because=because,
            kept=listing.kept if whole else WorkLocation.UNKNOWN,
            snapshot=snapshot,
            bytes=listing.bytes,
        )

    async def _snapshot(
        self, record: WorkspaceRecord, location: WorkLocation
    ) -> WorktreeSnapshot | None:
        """Merging and pushing keep a result; how it came about is kept here."""
        if location in (WorkLocation.UNCHANGED, WorkLocation.SNAPSHOTTED):
            return None
        return await self._snapshots.take(record, "before it was removed")

    async def clear(self, leftover_id: str) -> WorkspaceRemoval:
        """Finish a removal, undo a creation. Raises `UnknownId` for what is neither."""
        leftovers = await self.listing.leftovers()
        leftover = next((leftover for leftover in leftovers if leftover.id == leftover_id), None)
        if leftover is None:
            raise UnknownId("workspace", leftover_id)
        if (self._remover.cleared / leftover_id).is_dir():
            await asyncio.to_thread(clear_away, self._remover.cleared / leftover_id)
        else:
            with self._records.workspace_lock(leftover_id):
                await self._finish(leftover)
        return WorkspaceRemoval(
            id=leftover.id,
            task=leftover.task,
            removed=True,
            because=leftover.because,
            bytes=leftover.bytes,
        )

    async def _finish(self, leftover: Leftover) -> None:
        removing = self._records.removing(leftover.id)
        creating = self._records.creating(leftover.id)
        if removing is not None:
            with _removal_errors(removing):
                await self._remover.remove(
                    removing, "its work was safe; its removal was interrupted"
                )
        elif creating is not None:
            with _removal_errors(creating):
                async with self._records.repository_lock(creating.git_dir):
                    await undo_creation(self._git, self._records, creating)
        elif self._records.of(leftover.id) is None:
            await asyncio.to_thread(clear_away, self._records.private(leftover.id))


@contextmanager
def _removal_errors(record: WorkspaceRecord) -> Iterator[None]:
    """Turn errors of the operating system into `NotPossibleNow` for this workspace."""
    try:
        yield
    except OSError as error:
        raise NotPossibleNow(
            f"workspace {record.task!r} cannot be removed: {error.strerror} ({error.filename!r}); "
            "fix that, then run `podium workspaces gc` again"
        ) from error

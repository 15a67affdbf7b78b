"""Removing workspaces whose work is safe, and finishing what killed processes began."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

from podium.domain.errors import LockHeld, NotPossibleNow, UnknownId
from podium.domain.workspaces import Kept, Leftover, Removal, Snapshot, WorkspaceRecord
from podium.ports import Clock
from podium.workspaces.git.clearing import clear_away
from podium.workspaces.git.git import Git
from podium.workspaces.git.listing import Listing
from podium.workspaces.git.records import Records
from podium.workspaces.git.removing import Remover
from podium.workspaces.git.snapshots import Snapshots
from podium.workspaces.git.undoing import undo_creation


class Tending:
    """Decides whether a workspace may go, and lets it go."""

    def __init__(
        self, git: Git, records: Records, clock: Clock, snapshots: Snapshots, *, confined: bool
    ) -> None:
        self._git = git
        self._records = records
        self._snapshots = snapshots
        self._remover = Remover(git, records, clock)
        self.listing = Listing(
            git, records, clock, snapshots, self._remover.cleared, confined=confined
        )

    async def remove(self, workspace_id: str) -> Removal:
        """Remove it if its work is safe elsewhere; else say why not."""
        record = self._records.read(workspace_id)
        try:
            with self._records.workspace_lock(workspace_id), _as_words(record):
                return await self._remove_if_safe(record)
        except LockHeld as held:
            return Removal(
                id=workspace_id,
                task=record.task,
                removed=False,
                because=str(held),
                kept=Kept.IN_USE,
            )

    async def _remove_if_safe(self, record: WorkspaceRecord) -> Removal:
        found = await self.listing.one(record, held=True)
        snapshot = await self._snapshot(record, found.kept) if found.kept.is_safe else None
        whole = snapshot is None or snapshot.complete
        because = found.because
        if snapshot is not None and not whole:
            left_out = "".join(snapshot.left_out[:1])
            because = (
                f"a snapshot could not keep {left_out}; save or delete that, then say it again"
            )
        if found.kept.is_safe and whole:
            await self._remover.remove(record, found.because)
        return Removal(
            id=record.id,
            task=record.task,
            removed=found.kept.is_safe and whole,
            because=because,
            kept=found.kept if whole else Kept.UNKNOWN,
            snapshot=snapshot,
            bytes=found.bytes,
        )

    async def _snapshot(self, record: WorkspaceRecord, kept: Kept) -> Snapshot | None:
        """Merging and pushing keep a result; how it came about is kept here."""
        if kept in (Kept.UNCHANGED, Kept.SNAPSHOTTED):
            return None
        return await self._snapshots.take(record, "before it was removed")

    async def clear(self, leftover_id: str) -> Removal:
        """Finish a removal, undo a creation. Raises `UnknownId` for what is neither."""
        leftovers = await self.listing.leftovers()
        found = next((each for each in leftovers if each.id == leftover_id), None)
        if found is None:
            raise UnknownId("workspace", leftover_id)
        if (self._remover.cleared / leftover_id).is_dir():
            await asyncio.to_thread(clear_away, self._remover.cleared / leftover_id)
        else:
            with self._records.workspace_lock(leftover_id):
                await self._finish(found)
        return Removal(
            id=found.id, task=found.task, removed=True, because=found.because, bytes=found.bytes
        )

    async def _finish(self, leftover: Leftover) -> None:
        removing = self._records.removing(leftover.id)
        creating = self._records.creating(leftover.id)
        if removing is not None:
            with _as_words(removing):
                await self._remover.remove(removing, "its work was safe; removing it was cut off")
        elif creating is not None:
            with _as_words(creating):
                async with self._records.repository_lock(creating.git_dir):
                    await undo_creation(self._git, self._records, creating)
        elif self._records.of(leftover.id) is None:
            await asyncio.to_thread(clear_away, self._records.private(leftover.id))


@contextmanager
def _as_words(record: WorkspaceRecord) -> Iterator[None]:
    """What the machine refuses, said of the workspace that it is about."""
    try:
        yield
    except OSError as error:
        raise NotPossibleNow(
            f"workspace {record.task!r} cannot be removed: {error.strerror} ({error.filename!r}); "
            "mend that, then say `podium workspaces gc` again"
        ) from error

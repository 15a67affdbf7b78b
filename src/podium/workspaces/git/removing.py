"""Removing a workspace in steps that whoever comes after a kill can tell apart and finish.

The order: what is to be removed is noted; the worktree and its entry in the user's repository get names
that nothing else can have; an unused branch and unused fetched bases go; that the repository is done with is noted; a memory is
written; what was moved is emptied; the private folder is moved away as a whole and emptied. Until the
first note nothing was touched; from then on every step may be done again, also when somebody has made
another worktree of the same name in between.
"""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

from podium.domain.workspaces import WorkspaceRecord
from podium.ports import Clock
from podium.workspaces.git.admin import admin_folders, forget_parent, points_at
from podium.workspaces.git.clearing import clear_away, remove_if_empty
from podium.workspaces.git.git import Git
from podium.workspaces.git.records import Records, merged_bases, write_whole
from podium.workspaces.git.removed import Memory, RemovedOnes
from podium.workspaces.git.stale_locks import clear_stale_lock
from podium.workspaces.git.watching import BASE_REFS


class Remover:
    """Takes workspaces apart. Whether one may be removed is decided before."""

    def __init__(self, git: Git, records: Records, clock: Clock) -> None:
        self._git = git
        self._records = records
        self._clock = clock
        self._memories = RemovedOnes(records)
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
                write_whole(self._detached(record), b"")
        memory = Memory(
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
        found = await self._git.text("for-each-ref", form, record.branch, git_dir=record.git_dir)
        if found.strip() == record.base:
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
        known = [self._records.of(each) for each in self._records.ids() if each != record.id]
        others = [each for each in known if each is not None and each.git_dir == record.git_dir]
        used = {commit for each in others for commit in (each.base, *merged_bases(each))}
        unused = {*merged_bases(record)} - used
        for ref, commit in (row.split(" ") for row in listed.splitlines()):
            if commit in unused or not others:
                await self._git.run("update-ref", "-d", ref, commit, git_dir=record.git_dir)

    def _move_private_away(self, record: WorkspaceRecord) -> None:
        self.cleared.mkdir(mode=0o700, exist_ok=True)
        self._records.private(record.id).rename(self.cleared / record.id)


def taken_away(record: WorkspaceRecord) -> Path:
    """Where the worktree waits for being emptied: beside its old place, on the same disk."""
    return Path(record.path).parent / f".podium-removed-{record.id}"


def entry_taken_away(record: WorkspaceRecord) -> Path:
    """Where its entry waits for being emptied. Under `worktrees` git would take it for a worktree."""
    return Path(record.git_dir) / f"podium-removed-{record.id}"


def is_own_worktree(record: WorkspaceRecord) -> bool:
    """Whether the folder is still the workspace's own, and not one that somebody made there later."""
    return bool(record.admin) and points_at(record, _entry(record))


def _entry(record: WorkspaceRecord) -> Path:
    return Path(record.git_dir) / "worktrees" / record.admin


def _move_away(record: WorkspaceRecord) -> None:
    """Under their old names somebody may make others at any time."""
    _move(Path(record.path), taken_away(record), own=is_own_worktree(record))
    _move(_entry(record), entry_taken_away(record), own=_entry(record) in admin_folders(record))
    remove_if_empty(Path(record.git_dir, "worktrees"))


def _move(place: Path, away: Path, *, own: bool) -> None:
    """Where it goes to is there from then on, so that a second attempt moves nothing else."""
    if os.path.lexists(away):
        return
    if own:
        place.rename(away)
    else:
        away.mkdir(parents=True)


def _empty_moved(record: WorkspaceRecord) -> None:
    clear_away(entry_taken_away(record))
    clear_away(taken_away(record))
    forget_parent(Path(record.path))

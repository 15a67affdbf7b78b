"""All workspaces of a user with where their work is safe, and what killed processes left behind."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path

from podium.domain.errors import PodiumError
from podium.domain.workspaces import Kept, Leftover, Snapshot, WorkspaceListing, WorkspaceRecord
from podium.ports import Clock
from podium.workspaces.git.admin import admin_folders
from podium.workspaces.git.contents import ContentsReader
from podium.workspaces.git.git import Git
from podium.workspaces.git.hygiene import find_planted
from podium.workspaces.git.keeping import Finding, Keeping
from podium.workspaces.git.measuring import measure
from podium.workspaces.git.records import Records
from podium.workspaces.git.removing import entry_taken_away, is_own_worktree, taken_away
from podium.workspaces.git.snapshots import Snapshots
from podium.workspaces.git.tidying import tidy

_AT_ONCE = 4
"""How many workspaces are looked into at the same time."""


class Listing:
    """Looks at workspaces. Nothing in them changes, but that planted repositories are moved away."""

    def __init__(
        self,
        git: Git,
        records: Records,
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

        wanted = [each for each in self._whole() if git_dir in ("", each.git_dir)]
        return list(await asyncio.gather(*map(look, wanted)))

    async def one(self, record: WorkspaceRecord, *, held: bool = False) -> WorkspaceListing:
        """`held`: the caller holds its lock, so that nobody else can be at work in it."""
        snapshots: Sequence[Snapshot] = ()
        try:
            if Path(record.git_dir).is_dir():  # noqa: ASYNC240 — one look at a local folder
                snapshots = await self._snapshots.listed(record)
            finding = await self._finding(record, snapshots, held=held)
        except Exception as error:  # of one workspace, which must not hide all others
            finding = Finding(Kept.UNKNOWN, f"it cannot be looked into: {error}")
        size = await asyncio.to_thread(measure, Path(record.path), Path(record.private))
        return WorkspaceListing(
            record=record,
            kept=finding.kept,
            because=finding.because,
            bytes=size.bytes,
            changed_at=size.changed_at(self._clock.now(), record.created_at),
            snapshots=tuple(snapshots),
        )

    async def _finding(
        self, record: WorkspaceRecord, snapshots: Sequence[Snapshot], *, held: bool
    ) -> Finding:
        if not held and self._records.in_use(record.id):
            return Finding(Kept.IN_USE, f"a run is at work in it{_run(record)}")
        if not Path(record.git_dir).is_dir():  # noqa: ASYNC240 — one look at a local folder
            return Finding(
                Kept.UNKNOWN,
                f"its repository {record.repository!r} is gone; save what you need from "
                f"{record.path!r}, then remove that and {record.private!r} by hand",
            )
        if _is_foreign(record):
            return Finding(
                Kept.UNKNOWN,
                f"{record.path!r} does not belong to the repository any more; save what you need "
                "from it, then move it away",
            )
        await self._tidied(record, held=held)
        branches = {each.branch for each in self._whole()}
        async with self._reader.read(record) as contents:
            return await Keeping(self._git, record, contents).judge(snapshots, branches)

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
        found = []
        for each in self._records.ids():
            try:
                if self._records.removing(each) is None:
                    found.append(self._records.read(each))
            except PodiumError:
                continue  # half made, or it cannot be read: `leftovers` tells
        return found

    async def leftovers(self) -> list[Leftover]:
        """What is no whole workspace and is being made or removed by nobody alive."""
        found = [await self._leftover(each) for each in self._records.ids()]
        emptied = [
            Leftover(id=name, because="its removal was cut off while files were deleted")
            for name in _names(self._cleared)
        ]
        return [each for each in (*found, *emptied) if each is not None]

    async def _leftover(self, workspace_id: str) -> Leftover | None:
        private = self._records.private(workspace_id)
        try:
            if self._records.in_use(workspace_id):
                return None
            removing = self._records.removing(workspace_id)
            creating = self._records.creating(workspace_id)
            known = removing or creating or self._records.of(workspace_id)
        except PodiumError as error:
            return Leftover(
                id=workspace_id, because=str(error), places=(str(private),), readable=False
            )
        if removing is not None:
            because = f"removing {removing.task!r} was cut off; its work was safe before that began"
        elif creating is not None:
            because = f"making {creating.task!r} was cut off; nobody has worked in it"
        elif known is None:
            because = "making it was cut off before anything was made"
        else:
            return None
        places = (str(private), *(_places(known) if known is not None else ()))
        size = await asyncio.to_thread(measure, *map(Path, places))
        return Leftover(
            id=workspace_id,
            because=because,
            places=places,
            bytes=size.bytes,
            task=known.task if known is not None else "",
            repository=known.repository if known is not None else "",
            git_dir=known.git_dir if known is not None else "",
        )


def _places(record: WorkspaceRecord) -> list[str]:
    """What is still there of it outside its private folder."""
    candidates = [taken_away(record), entry_taken_away(record), *admin_folders(record)]
    if not record.admin or is_own_worktree(record):
        candidates.append(Path(record.path))
    return [str(place) for place in candidates if os.path.lexists(place)]


def _is_foreign(record: WorkspaceRecord) -> bool:
    return os.path.lexists(record.path) and not is_own_worktree(record)


def _names(folder: Path) -> list[str]:
    return sorted(entry.name for entry in folder.iterdir()) if folder.is_dir() else []


def _run(record: WorkspaceRecord) -> str:
    return f": {record.run_id}" if record.run_id else ""

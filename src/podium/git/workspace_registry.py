"""`GitWorkspaces`: all workspaces of a user in git repositories."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Sequence
from pathlib import Path

from podium.core.errors import PodiumError
from podium.core.workspaces import (
    BranchConflict,
    Leftover,
    RecoveredBranch,
    RemovedWorkspace,
    WorkspaceListing,
    WorkspaceRecord,
    WorkspaceRemoval,
    WorkspaceSpec,
    WorktreeSnapshot,
)
from podium.git.commit_scan import Find
from podium.git.committable_tree import collisions_of, note_set_up
from podium.git.creation import (
    Plan,
    branch_of,
    check_task,
    folder_of,
    forbidden_paths,
    make_workspace,
    tighten_worktree,
)
from podium.git.delivery import Deliveries
from podium.git.git_command import Git
from podium.git.guarded_changes import Guarded, none_more
from podium.git.inventory import WorkspaceCollector
from podium.git.records import RecordLookup, WorkspaceRecords
from podium.git.recovery import SnapshotRecovery, WorkspaceRebuild
from podium.git.repository import RepositoryState, find_git_dir, locate, read_repository
from podium.git.set_up import check_set_up, set_up
from podium.git.snapshots import Snapshots
from podium.git.workspace import GitWorkspace
from podium.ports.engine import Clock, Ids
from podium.ports.launcher import Launcher


def _untold(_: str) -> None:
    """Drop progress."""


class GitWorkspaces:
    """Makes and keeps workspaces under a folder that no agent can reach."""

    def __init__(
        self,
        launcher: Launcher,
        state_home: Path,
        clock: Clock,
        ids: Ids,
        *,
        secrets_in: Find,
        inside: Launcher | None = None,
        confined: bool = True,
        report: Callable[[str], None] = _untold,
        guarded: Guarded = none_more,
    ) -> None:
        """`secrets_in` names the secrets that a text holds; commits with any do not come back.

        `confined` says that agents run under the kernel's confinement: then whatever changes in the
        user's repository during a turn is the user's own doing. `inside` starts the project's own
        commands, None: as `launcher` does all else. `report` takes lines of progress.
        `guarded` gives further guarded paths of a checkout, from its top on."""
        self._inside = inside or launcher
        self._clock = clock
        self._ids = ids
        self._confined = confined
        self._secrets_in = secrets_in
        self._report = report
        self._guarded = guarded
        self._state_home = state_home
        self.git = Git(launcher)
        self.records = WorkspaceRecords(state_home)
        self._paths: dict[str, str] = {}
        self._snapshots = Snapshots(self.git, self.records, clock, confined=confined)
        self._tending = WorkspaceCollector(
            self.git, self.records, clock, self._snapshots, confined=confined
        )
        deliveries = Deliveries(self.git, self.records, guarded)
        self._recovery = SnapshotRecovery(
            self.git, self.records, self._snapshots, deliveries, secrets_in
        )

    async def create(self, spec: WorkspaceSpec) -> GitWorkspace:
        """Make one, whole or not at all."""
        check_task(spec.task)
        forbidden = forbidden_paths(spec.forbidden)
        location = await locate(self.git, spec.repository)

        async def plan() -> tuple[RepositoryState, WorkspaceRecord, str]:
            repository = await read_repository(self.git, location, spec.base)
            check_set_up(spec.set_up, Path(repository.checkout))
            return repository, self._planned(spec, forbidden, repository), ""

        return await self._made(spec, location.git_dir, plan)

    async def rebuild(
        self, record: WorkspaceRecord, spec: WorkspaceSpec, commit: str
    ) -> tuple[GitWorkspace, WorktreeSnapshot | None]:
        """Make one again under its old id, on its branch, which holds `commit` then."""
        git_dir = await find_git_dir(self.git, spec.repository)
        if self.records.removing(record.id) is not None:
            await self._tending.clear(record.id)
        rebuilding = WorkspaceRebuild(self.git, self.records, self._snapshots)
        snapshot = await rebuilding.clear(record.id, commit)

        async def plan() -> tuple[RepositoryState, WorkspaceRecord, str]:
            repository = await rebuilding.repository_of(record, spec, commit)
            check_set_up(spec.set_up, Path(repository.checkout))
            again = rebuilding.planned(record, spec, repository, self._state_home)
            return repository, again, await rebuilding.branch_holding(again, commit)

        self._paths.pop(record.id, None)
        return await self._made(spec, git_dir, plan), snapshot

    async def _made(self, spec: WorkspaceSpec, git_dir: str, plan: Plan) -> GitWorkspace:
        async def ready(made: WorkspaceRecord) -> WorkspaceRecord:
            usable = self._workspace(made)
            record = await set_up(usable, spec, self._inside, self.records, self._report)
            if spec.set_up.after_create or spec.set_up.ready:
                await note_set_up(self.git, record)
            return record

        made = await make_workspace(self.git, self.records, git_dir, plan, ready)
        return self._workspace(made)

    async def missing(self, workspace_id: str) -> str:
        """Describe the missing part of a workspace; empty when it is complete."""
        record = self.records.finished(workspace_id)
        if record is None:
            return f"host {socket.gethostname()!r} has no workspace {workspace_id}"
        there = await asyncio.to_thread(Path(record.path).is_dir)
        return "" if there else f"the folder {record.path!r} is gone"

    def _planned(
        self, spec: WorkspaceSpec, forbidden: tuple[str, ...], repository: RepositoryState
    ) -> WorkspaceRecord:
        workspace_id, claims = self._ids.new("ws"), RecordLookup(self.records)
        return WorkspaceRecord(
            id=workspace_id,
            task=spec.task,
            repository=repository.checkout,
            git_dir=repository.git_dir,
            path=folder_of(spec, repository, self._state_home, claims),
            private=str(self.records.private(workspace_id)),
            branch=branch_of(spec, repository, claims),
            base=repository.base,
            forbidden=forbidden,
            run_id=spec.run_id,
            created_at=self._clock.now(),
        )

    def at(self, path: str) -> WorkspaceRecord | None:
        """The workspace whose worktree this folder is."""
        for id_ in reversed(self.records.ids()):
            if self._path_of(id_) == path and (record := self.records.finished(id_)) is not None:
                return record
        return None

    def _path_of(self, workspace_id: str) -> str | None:
        """Path of its worktree. It never changes and every call of an agent needs it: it is read once."""
        if workspace_id not in self._paths and (record := self._readable(workspace_id)) is not None:
            self._paths[workspace_id] = record.path
        return self._paths.get(workspace_id)

    def _readable(self, workspace_id: str) -> WorkspaceRecord | None:
        """Return the record of a finished workspace; None for one that cannot be read, which must not hide others."""
        try:
            return self.records.finished(workspace_id)
        except (PodiumError, OSError):
            return None

    def existing(self) -> Sequence[WorkspaceRecord]:
        """List all finished workspaces, oldest first, without reading their worktrees."""
        records = map(self._readable, self.records.ids())
        return [record for record in records if record is not None]

    async def open(self, workspace_id: str) -> GitWorkspace:
        """One that was made before; folders of it that others may enter are taken from them. Raises `UnknownId`."""
        record = self.records.read(workspace_id)
        await asyncio.to_thread(tighten_worktree, Path(record.path))
        return self._workspace(record)

    async def repository_of(self, folder: str) -> str:
        """The common git directory of the repository that a folder lies in; empty when in none."""
        try:
            return await find_git_dir(self.git, folder)
        except PodiumError:
            return ""

    async def listed(self, git_dir: str = "") -> list[WorkspaceListing]:
        """All of them, or those of one repository, oldest first."""
        return await self._tending.listing.listed(git_dir)

    async def remove(self, workspace_id: str) -> WorkspaceRemoval:
        """Remove one whose work is safe elsewhere; else say why not."""
        return await self._tending.remove(workspace_id)

    async def leftovers(self) -> list[Leftover]:
        """List workspaces whose creation or removal was interrupted."""
        return await self._tending.listing.leftovers()

    async def clear(self, leftover_id: str) -> WorkspaceRemoval:
        """Finish what a killed process began. Raises `UnknownId`."""
        return await self._tending.clear(leftover_id)

    async def removed(self) -> list[RemovedWorkspace]:
        """Those that are no more and whose snapshots are still there, oldest first."""
        return await self._recovery.removed()

    async def recover(self, workspace_id: str, branch: str) -> RecoveredBranch:
        """Make a branch of the newest snapshot of a workspace, also of one that was removed."""
        return await self._recovery.recover(workspace_id, branch)

    async def forget(self, workspace_id: str) -> list[WorktreeSnapshot]:
        """Drop all snapshots of a workspace that was removed, and give them."""
        return await self._recovery.forget(workspace_id)

    async def collisions(self, workspace_id: str) -> list[BranchConflict]:
        """Other workspaces of the same repository whose delivered branches conflict with this one's."""
        record = self.records.read(workspace_id)
        return await collisions_of(self.git, self.records, record, self.existing())

    def _workspace(self, record: WorkspaceRecord) -> GitWorkspace:
        return GitWorkspace(
            self.git,
            self.records,
            self._clock,
            record,
            confined=self._confined,
            secrets_in=self._secrets_in,
            guarded=self._guarded,
        )

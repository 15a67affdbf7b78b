"""Recovery of work from snapshots, and of workspaces that are gone from their branch."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from podium.core.errors import (
    BadInput,
    GuardedFilesChanged,
    ImportRefused,
    NotPossibleNow,
    SecretsCommitted,
    UnknownId,
)
from podium.core.workspaces import (
    RecoveredBranch,
    RemovedWorkspace,
    WorkspaceRecord,
    WorkspaceSpec,
    WorktreeSnapshot,
)
from podium.git.commit_changes import CommitHistory, quarantined
from podium.git.commit_scan import Find
from podium.git.creation import folder_of, forbidden_paths, undo_creation
from podium.git.delivery import Deliveries
from podium.git.git_command import Git, GitFailed, no_object
from podium.git.records import RecordLookup, RemovedWorkspaces, WorkspaceRecords
from podium.git.repository import RepositoryState, find_repository
from podium.git.snapshots import Snapshots
from podium.git.workspace_reset import is_within, keep_tip, refuse_missing

_MAX_NAMED = 20


class SnapshotRecovery:
    """Works on the snapshots of workspaces, removed or not. They lie in the user's repository."""

    def __init__(
        self,
        git: Git,
        records: WorkspaceRecords,
        snapshots: Snapshots,
        deliveries: Deliveries,
        secrets_in: Find,
    ) -> None:
        self._git = git
        self._records = records
        self._snapshots = snapshots
        self._deliveries = deliveries
        self._secrets_in = secrets_in
        self._memories = RemovedWorkspaces(records)

    async def removed(self) -> list[RemovedWorkspace]:
        """Those whose snapshots are still there, oldest first."""
        living = set(self._records.ids())
        removed = []
        for memory in self._memories.listed():
            if memory.record.id in living:
                continue
            snapshots = await self._of(memory.record)
            if snapshots:
                removed.append(
                    RemovedWorkspace(
                        record=memory.record,
                        removed_at=memory.removed_at,
                        because=memory.because,
                        snapshots=tuple(snapshots),
                    )
                )
        return removed

    async def recover(self, workspace_id: str, branch: str) -> RecoveredBranch:
        """Make a branch of the newest snapshot. Nothing that exists is moved.

        It passes the import gate as a delivery does. Raises `ImportRefused`, also for guarded files.
        Ignored and copied files stay in the snapshot alone: on a branch they would be pushed, and
        switching to it and back would overwrite and delete the user's own.
        """
        record = self._record(workspace_id)
        snapshots = await self._of(record)
        if not snapshots:
            raise NotPossibleNow(
                f"workspace {record.task!r} has no snapshot; `podium workspaces snapshot` takes one of an existing workspace"
            )
        name = await self._branch(branch, record)
        newest = snapshots[-1]
        commit = newest.carried or await self._git.resolve(f"{newest.commit}^1", record.git_dir)
        if not commit:
            raise NotPossibleNow(
                f"{newest.ref!r} is not a snapshot made by Podium; check it by hand"
            )
        await self._refuse_unsafe(record, name, newest, commit)
        why = f"podium: recovered from {newest.ref}"
        try:
            await self._git.move_ref(name, commit, no_object(commit), record.git_dir, why)
        except GitFailed as failed:
            raise NotPossibleNow(
                f"cannot create branch {branch!r}: {failed.stderr[-300:]}; name another with --branch"
            ) from failed
        apart = await self._apart(record, newest, commit)
        return RecoveredBranch(
            branch=branch,
            commit=commit,
            snapshot=newest,
            only_in_snapshot=tuple(apart[:_MAX_NAMED]),
            more=max(0, len(apart) - _MAX_NAMED),
        )

    async def _refuse_unsafe(
        self, record: WorkspaceRecord, name: str, snapshot: WorktreeSnapshot, commit: str
    ) -> None:
        """Raise unless the import gate lets the commit pass: nobody has judged what agents left in a snapshot."""
        look = f"Review it with `git log --patch --no-ext-diff --no-textconv {record.base[:12]}..{commit[:12]}`"
        try:
            async with quarantined(self._git, record.git_dir) as quarantine:
                history = CommitHistory(self._git, record.git_dir, quarantine)
                if not await history.is_ancestor(record.base, commit):
                    raise ImportRefused(
                        f"it does not contain {record.base[:12]}, the base of the workspace"
                    )
                before = self._delivered(record)
                judged = await self._deliveries.judge(
                    history, record, name, before, commit, self._secrets_in
                )
            if judged.guarded is not None:
                raise GuardedFilesChanged(judged.guarded)
        except GuardedFilesChanged as changed:
            raise ImportRefused(
                f"no branch was created from {snapshot.ref!r}: {changed}. {look} without a checkout; "
                f"{self._way_past_guards(record, name, commit)}"
            ) from changed
        except ImportRefused as refused:
            reason = refused.finding if isinstance(refused, SecretsCommitted) else refused
            raise ImportRefused(
                f"no branch was created from {snapshot.ref!r}: {reason}. {look} without a checkout; get individual files "
                f"with `git show {commit[:12]}:PATH`"
            ) from refused

    def _delivered(self, record: WorkspaceRecord) -> str:
        if record.id in self._records.ids():
            return self._records.delivered(record)
        memory = self._memories.find(record.id)
        return (memory.delivered if memory is not None else "") or record.base

    def _way_past_guards(self, record: WorkspaceRecord, name: str, commit: str) -> str:
        if record.id in self._records.ids():
            return f"commit there, then run `podium workspaces deliver {record.task}`, which requests an approval"
        return f"if you approve all of it, run `git branch {name.removeprefix('refs/heads/')} {commit[:12]}`"

    async def _apart(
        self, record: WorkspaceRecord, snapshot: WorktreeSnapshot, commit: str
    ) -> list[str]:
        """Paths that the snapshot has and the branch has not."""
        # Beside what is carried, files differ by the ends of their lines at most.
        kinds = "--diff-filter=A" if snapshot.carried else "--diff-filter=AMT"
        command = ("diff-tree", "-r", "-z", "--name-only", "--no-renames", kinds)
        listed = await self._git.text(*command, commit, snapshot.commit, git_dir=record.git_dir)
        readable = listed.encode(errors="surrogateescape").decode(errors="replace")
        return [path for path in readable.split("\0") if path]

    async def forget(self, workspace_id: str) -> list[WorktreeSnapshot]:
        """Drop every snapshot of a workspace that was removed, and the memory of it."""
        if workspace_id in self._records.ids():
            raise NotPossibleNow(
                f"workspace {workspace_id} still exists; remove it with `podium workspaces gc` before you drop its snapshots"
            )
        record = self._record(workspace_id)
        snapshots = await self._of(record)
        for snapshot in snapshots:
            await self._git.run(
                "update-ref", "-d", snapshot.ref, snapshot.commit, git_dir=record.git_dir
            )
        self._memories.forget(workspace_id)
        return snapshots

    async def _branch(self, short: str, record: WorkspaceRecord) -> str:
        name = f"refs/heads/{short}"
        checked = await self._git.run(
            "check-ref-format", "--branch", short, git_dir=record.git_dir, accept=(0, 1, 128)
        )
        if checked.exit_code != 0 or short.startswith(("-", "@")):
            raise BadInput(f"{short!r} is not a valid branch name; name another with --branch")
        if await self._git.resolve(name, record.git_dir):
            raise NotPossibleNow(f"branch {short!r} already exists; name another with --branch")
        return name

    async def _of(self, record: WorkspaceRecord) -> list[WorktreeSnapshot]:
        """Its snapshots, newest last. None where the repository itself is gone."""
        if not Path(record.git_dir).is_dir():  # noqa: ASYNC240 — one look at a local folder
            return []
        return await self._snapshots.listed(record)

    def _record(self, workspace_id: str) -> WorkspaceRecord:
        if workspace_id in self._records.ids():
            record = self._records.of(workspace_id)
        else:
            memory = self._memories.find(workspace_id)
            record = memory.record if memory is not None else None
        if record is None:
            raise UnknownId("workspace", workspace_id)
        return record


_MAX_FOLDERS = 20


class WorkspaceRebuild:
    """Preparations for making a workspace again under its old id."""

    def __init__(self, git: Git, records: WorkspaceRecords, snapshots: Snapshots) -> None:
        self._git = git
        self._records = records
        self._snapshots = snapshots
        self._delivered = ""
        """Commit that the old one delivered last, if a record on this host says so."""

    async def clear(self, workspace_id: str, commit: str) -> WorktreeSnapshot | None:
        """Take away what is left here of the old one, and give the snapshot of what only that had.

        Raises `NotPossibleNow` rather than lose anything, or take what somebody else committed off the branch.
        """
        left = self._records.of(workspace_id)
        if left is not None and self._records.finished(workspace_id) is not None:
            self._delivered = await Deliveries(self._git, self._records).delivered(left)
            current = await self._git.resolve(left.branch, left.git_dir)
            await self._refuse_moved(left, current, commit)
        RemovedWorkspaces(self._records).forget(workspace_id)
        if left is None:
            return None
        with self._records.workspace_lock(workspace_id):
            snapshot = None
            if self._records.finished(workspace_id) is not None:
                snapshot = await self._snapshots.take(left, "its folder was gone")
                _refuse_loss(left, snapshot)
            async with self._records.repository_lock(left.git_dir):
                await undo_creation(self._git, self._records, left, keep_branch=True)
        return snapshot

    async def repository_of(
        self, record: WorkspaceRecord, spec: WorkspaceSpec, commit: str
    ) -> RepositoryState:
        """The user's repository, which has to have the commit and what the work started from."""
        try:
            return await find_repository(self._git, spec.repository, record.base)
        except BadInput:
            repository = await find_repository(self._git, spec.repository, "HEAD")
            here = record.model_copy(
                update={"repository": repository.checkout, "git_dir": repository.git_dir}
            )
            await refuse_missing(self._git, here, commit)
            raise

    async def branch_holding(self, record: WorkspaceRecord, commit: str) -> str:
        """Return the tip of the branch, moved to the commit unless it holds it. Hold the repository's lock.

        Raises `NotPossibleNow` when somebody else moved it.
        """
        await refuse_missing(self._git, record, commit)
        current = await self._git.resolve(record.branch, record.git_dir)
        await self._refuse_moved(record, current, commit)
        if current and await is_within(self._git, record, commit, current):
            return current
        why = "its workspace was created again"
        await keep_tip(self._git, self._snapshots, record, current, commit, why)
        await self._git.move_ref(
            record.branch, commit, current or no_object(commit), record.git_dir,
            f"podium: made {record.id} again",
        )  # fmt: skip
        return commit

    async def _refuse_moved(self, record: WorkspaceRecord, current: str, commit: str) -> None:
        """Nothing that the branch may lose, or a workspace may start from, is anybody else's."""
        for ours in (commit, self._delivered):
            if not current or (ours and await is_within(self._git, record, current, ours)):
                return
        if not self._delivered and await self._is_of_run(record, current):
            return
        short, was = record.branch.removeprefix("refs/heads/"), self._delivered or commit
        raise NotPossibleNow(
            f"{short!r} was at {was[:12]} and is at {current[:12]} now: someone else moved it; save its present commit under another name "
            f"(`git branch NAME {short}`), then run `git update-ref {record.branch} {was}`"
        )

    async def _is_of_run(self, record: WorkspaceRecord, commit: str) -> bool:
        """Recognise a commit of the run by its trailer, where no record exists: another host made it."""
        form = "--format=%(trailers:key=Podium-Run,valueonly)"
        text = await self._git.text("show", "--no-patch", form, commit, git_dir=record.git_dir)
        return bool(record.run_id) and text.strip() == record.run_id

    def planned(
        self,
        record: WorkspaceRecord,
        spec: WorkspaceSpec,
        repository: RepositoryState,
        state_home: Path,
    ) -> WorkspaceRecord:
        """Return the record of the new one; the spec may differ from the old one's."""
        return WorkspaceRecord(
            id=record.id,
            task=record.task,
            repository=repository.checkout,
            git_dir=repository.git_dir,
            path=self._folder(record, spec, repository, state_home),
            private=str(self._records.private(record.id)),
            branch=record.branch,
            base=record.base,
            forbidden=forbidden_paths(spec.forbidden),
            run_id=record.run_id,
            created_at=record.created_at,
        )

    def _folder(
        self,
        record: WorkspaceRecord,
        spec: WorkspaceSpec,
        repository: RepositoryState,
        state_home: Path,
    ) -> str:
        """Return the old folder if it is free, else one beside it: existing files are never touched."""
        if record.repository == repository.checkout and not os.path.lexists(record.path):
            return record.path
        claims = RecordLookup(self._records)
        for number in range(1, _MAX_FOLDERS):
            behind = f"-{number}" if number > 1 else ""
            named = {
                "task": f"{spec.task}{behind}",
                "folder": spec.folder and f"{spec.folder}{behind}",
            }
            with suppress(NotPossibleNow):
                return folder_of(spec.model_copy(update=named), repository, state_home, claims)
        return folder_of(spec, repository, state_home, claims)


def _refuse_loss(record: WorkspaceRecord, snapshot: WorktreeSnapshot) -> None:
    if not snapshot.complete:
        raise NotPossibleNow(
            f"what is left of workspace {record.task!r} in {record.private!r} cannot be stored completely ({''.join(snapshot.left_out[:1])}); save or "
            "delete that, then try again"
        )

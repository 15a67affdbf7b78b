"""Making a workspace again that is gone, on the branch that its work was delivered to."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from podium.domain.errors import BadInput, NotPossibleNow
from podium.domain.workspaces import Snapshot, WorkspaceRecord, WorkspaceWish
from podium.workspaces.git.claims import Claims
from podium.workspaces.git.delivering import Deliveries
from podium.workspaces.git.git import Git, no_object
from podium.workspaces.git.going_back import is_within, keep_tip, refuse_missing
from podium.workspaces.git.records import Records
from podium.workspaces.git.removed import RemovedOnes
from podium.workspaces.git.repository import Repository, find_repository
from podium.workspaces.git.snapshots import Snapshots
from podium.workspaces.git.undoing import undo_creation
from podium.workspaces.git.wishes import folder_of, forbidden_paths

_MOST_FOLDERS = 20


class Rebuilding:
    """What has to be known and cleared away before a workspace can be made under its old id."""

    def __init__(self, git: Git, records: Records, snapshots: Snapshots) -> None:
        self._git = git
        self._records = records
        self._snapshots = snapshots
        self._delivered = ""
        """What the old one brought back last, where that is known here."""

    async def clear(self, workspace_id: str, commit: str) -> Snapshot | None:
        """Take away what is left here of the old one, and give the snapshot of what only that had.

        Raises `NotPossibleNow` rather than lose anything, or take what somebody else committed off the branch.
        """
        left = self._records.of(workspace_id)
        if left is not None and self._records.finished(workspace_id) is not None:
            self._delivered = await Deliveries(self._git, self._records).delivered(left)
            current = await self._git.resolve(left.branch, left.git_dir)
            await self._refuse_moved(left, current, commit)
        RemovedOnes(self._records).forget(workspace_id)
        if left is None:
            return None
        with self._records.workspace_lock(workspace_id):
            kept = None
            if self._records.finished(workspace_id) is not None:
                kept = await self._snapshots.take(left, "its folder was gone")
                _refuse_loss(left, kept)
            async with self._records.repository_lock(left.git_dir):
                await undo_creation(self._git, self._records, left, keep_branch=True)
        return kept

    async def repository_of(
        self, record: WorkspaceRecord, wish: WorkspaceWish, commit: str
    ) -> Repository:
        """The user's repository, which has to have the commit and what the work started from."""
        try:
            return await find_repository(self._git, wish.repository, record.base)
        except BadInput:
            found = await find_repository(self._git, wish.repository, "HEAD")
            here = record.model_copy(
                update={"repository": found.checkout, "git_dir": found.git_dir}
            )
            await refuse_missing(self._git, here, commit)
            raise

    async def branch_holding(self, record: WorkspaceRecord, commit: str) -> str:
        """Where the branch is when it holds the commit; else it is moved there. Hold the repository's lock.

        Raises `NotPossibleNow` when somebody else moved it.
        """
        await refuse_missing(self._git, record, commit)
        current = await self._git.resolve(record.branch, record.git_dir)
        await self._refuse_moved(record, current, commit)
        if current and await is_within(self._git, record, commit, current):
            return current
        why = "its workspace was made again"
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
            f"{short!r} was at {was[:12]} and is at {current[:12]} now: somebody else moved it; keep that under "
            f"another name (`git branch NAME {short}`), then say `git update-ref {record.branch} {was}`"
        )

    async def _is_of_run(self, record: WorkspaceRecord, commit: str) -> bool:
        """Where no record tells, the run's own commits do: another host made them."""
        form = "--format=%(trailers:key=Podium-Run,valueonly)"
        text = await self._git.text("show", "--no-patch", form, commit, git_dir=record.git_dir)
        return bool(record.run_id) and text.strip() == record.run_id

    def planned(
        self, record: WorkspaceRecord, wish: WorkspaceWish, repository: Repository, state_home: Path
    ) -> WorkspaceRecord:
        """The record of the new one: what the wish says of it may be another than it was."""
        return WorkspaceRecord(
            id=record.id,
            task=record.task,
            repository=repository.checkout,
            git_dir=repository.git_dir,
            path=self._folder(record, wish, repository, state_home),
            private=str(self._records.private(record.id)),
            branch=record.branch,
            base=record.base,
            forbidden=forbidden_paths(wish.forbidden),
            run_id=record.run_id,
            created_at=record.created_at,
        )

    def _folder(
        self, record: WorkspaceRecord, wish: WorkspaceWish, repository: Repository, state_home: Path
    ) -> str:
        """The old place where that is free, else one beside it: what lies there is nobody's to touch."""
        if record.repository == repository.checkout and not os.path.lexists(record.path):
            return record.path
        claims = Claims(self._records)
        for number in range(1, _MOST_FOLDERS):
            behind = f"-{number}" if number > 1 else ""
            named = {
                "task": f"{wish.task}{behind}",
                "folder": wish.folder and f"{wish.folder}{behind}",
            }
            with suppress(NotPossibleNow):
                return folder_of(wish.model_copy(update=named), repository, state_home, claims)
        return folder_of(wish, repository, state_home, claims)


def _refuse_loss(record: WorkspaceRecord, kept: Snapshot) -> None:
    if not kept.complete:
        raise NotPossibleNow(
            f"what is left of workspace {record.task!r} in {record.private!r} could not be kept whole "
            f"({''.join(kept.left_out[:1])}); save or delete that, then try again"
        )

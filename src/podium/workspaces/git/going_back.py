"""Letting a workspace's branch stand where it was before; what that takes off it is kept first."""

from __future__ import annotations

import socket
from collections.abc import Sequence

from podium.domain.errors import NotPossibleNow
from podium.domain.workspaces import Snapshot, WorkspaceRecord
from podium.workspaces.git.delivering import Deliveries
from podium.workspaces.git.git import Git
from podium.workspaces.git.records import Records
from podium.workspaces.git.resetting import Resetting
from podium.workspaces.git.snapshots import Snapshots


class GoingBack:
    """Moves the user's branch first, then the worktree: asked again after a kill, it goes on from there."""

    def __init__(
        self, git: Git, records: Records, snapshots: Snapshots, resetting: Resetting
    ) -> None:
        self._git = git
        self._records = records
        self._snapshots = snapshots
        self._resetting = resetting

    async def stand_at(
        self, record: WorkspaceRecord, commit: str, why: str, tip: str, keep: Sequence[str]
    ) -> Snapshot | None:
        """The snapshot of where the branch was. None: it lost nothing."""
        async with self._records.repository_lock(record.git_dir):
            await refuse_missing(self._git, record, commit)
            current = await self._git.resolve(record.branch, record.git_dir)
            kept = await keep_tip(self._git, self._snapshots, record, current, commit, why)
            # From there alone: what somebody commits in between is in no snapshot.
            await Deliveries(self._git, self._records).put_at(record, commit, current)
        await self._resetting.reset(tip, why, keep)
        return kept


async def keep_tip(
    git: Git, snapshots: Snapshots, record: WorkspaceRecord, current: str, commit: str, why: str
) -> Snapshot | None:
    """Keep where the user's branch is, if it would lose commits by being moved to this one. Empty: it is gone."""
    if not current or await is_within(git, record, current, commit):
        return None
    return await snapshots.keep(record, current, why)


async def refuse_missing(git: Git, record: WorkspaceRecord, commit: str) -> None:
    """Raise `NotPossibleNow`, with what to do, when the user's repository does not have the commit."""
    if await git.resolve(f"{commit}^{{commit}}", record.git_dir):
        return
    short = record.branch.removeprefix("refs/heads/")
    raise NotPossibleNow(
        f"commit {commit[:12]} of {short!r} ({record.branch}), which was delivered, is not in {record.repository!r} "
        f"on host {socket.gethostname()!r}; bring it there from where it was made (`git fetch REMOTE {short}`)"
    )


async def is_within(git: Git, record: WorkspaceRecord, commit: str, later: str) -> bool:
    """Whether `later` holds the commit, as far as the user's repository knows them."""
    if commit == later:
        return True
    ended = await git.run(
        "merge-base", "--is-ancestor", commit, later,
        git_dir=record.git_dir, accept=(0, 1, 128),
    )  # fmt: skip
    return ended.exit_code == 0

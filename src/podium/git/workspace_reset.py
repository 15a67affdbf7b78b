"""Reset of a workspace to a snapshot or an earlier commit; what would be lost is stored first."""

from __future__ import annotations

import asyncio
import os
import shutil
import socket
import stat
from collections.abc import Collection, Sequence
from pathlib import Path

from podium.core.errors import NotPossibleNow, WorkspaceTampered
from podium.core.workspaces import WorkspaceRecord, WorktreeSnapshot
from podium.git.delivery import Deliveries
from podium.git.git_command import Git, GitFailed
from podium.git.layout import DRAFT, NEXT, finish_swap, folders_of_git
from podium.git.planted import move_away
from podium.git.private_dir import build_private_dir, note_initial_commits
from podium.git.records import WorkspaceRecords
from podium.git.repository import find_repository
from podium.git.snapshots import Snapshots, check_own
from podium.git.supervisor_repo import SupervisorRepo
from podium.git.worktree_files import (
    check_paths,
    clean_path,
    open_folders,
    remove_empty_folders,
    remove_file,
    write_files,
)
from podium.git.worktree_objects import ObjectKeeper
from podium.git.worktree_status import changes_since, head_state_of
from podium.platform.folder_tree import clear_away


async def restore(
    git: Git, snapshots: Snapshots, record: WorkspaceRecord, snapshot: WorktreeSnapshot
) -> None:
    """Restore a snapshot; the present state becomes another one first. Hold the workspace's lock, with all processes dead.

    Killed in between, it can be asked again: the files are put back before the git directory is.
    """
    await check_own(git, record, snapshot)
    now = await snapshots.take(record, f"before going back to {snapshot.ref}")
    keeper = ObjectKeeper(git, record)
    await keeper.put_back(snapshot.commit)
    head = await git.resolve(f"{snapshot.commit}^1", record.git_dir)
    await renew_private_dir(git, keeper, record, head)
    if now.complete:
        await asyncio.to_thread(clear_away, Path(record.private, "git.old"))


async def renew_private_dir(
    git: Git, keeper: ObjectKeeper, record: WorkspaceRecord, head: str
) -> None:
    """Replace the private git directory. Nothing an agent wrote there survives; all its commits are in the snapshot."""
    private = Path(record.private)
    repository = await find_repository(git, record.repository, record.base)
    await asyncio.to_thread(shutil.rmtree, private / DRAFT, True)
    await asyncio.to_thread(note_initial_commits, private, repository)
    await asyncio.to_thread(
        build_private_dir,
        private / DRAFT,
        repository,
        branch=record.branch,
        tip=head,
        worktree=record.path,
        admin=record.admin,
    )
    index = private / DRAFT / "worktrees" / record.admin / "index"
    await keeper.write_index(head, index)
    await asyncio.to_thread(_swap, private)


def _swap(private: Path) -> None:
    (private / DRAFT).rename(private / NEXT)
    if (private / "git.old").exists():
        clear_away(private / "git.old")
    (private / "git").rename(private / "git.old")
    finish_swap(private)


_MAX_ROUNDS = 50
"""Restoring an ignore list reveals further files, and only the first of very many files are listed."""


class WorkspaceReset:
    """Files go back first, then what git says of them: asked again after a kill, it goes on from there."""

    def __init__(
        self,
        git: Git,
        supervisor_repo: SupervisorRepo,
        snapshots: Snapshots,
        record: WorkspaceRecord,
    ) -> None:
        self._git = git
        self._supervisor_repo = supervisor_repo
        self._snapshots = snapshots
        self._record = record
        self._worktree = Path(record.path)

    async def reset(self, commit: str, why: str, keep: Sequence[str]) -> list[str]:
        """The paths that were put back. One look, and nothing done, when all is as it should be."""
        check_paths(keep, ())
        preserved = {clean_path(path) for path in keep}
        sound = await self._is_sound()
        state = await asyncio.to_thread(head_state_of, self._record)
        already_there = sound and state.is_as_it_should_be and state.tip == commit
        write, delete = await self._off(commit, preserved)
        if already_there and not write and not delete:
            return []
        dropped, made = await self._between(state.head, commit)
        delete = list(
            dict.fromkeys([*delete, *(path for path in dropped if path not in preserved)])
        )
        now = await self._snapshots.take(self._record, why)
        await self._put_files_back(commit, why, preserved, (write, delete))
        if not already_there:
            await self._renew(commit, now)
        await asyncio.to_thread(self._supervisor_repo.hand_over)
        self._supervisor_repo.forget_merge()
        return sorted({*write, *delete, *made} - preserved)

    async def _is_sound(self) -> bool:
        """Check the private git directory. A broken one is made usable for what follows."""
        try:
            await self._supervisor_repo.sit_down()
        except WorkspaceTampered:
            await asyncio.to_thread(_mend, self._record)
            # Raises again when the cause is another one.
            await self._supervisor_repo.sit_down()
            return False
        return True

    async def _off(self, commit: str, preserved: Collection[str]) -> tuple[list[str], list[str]]:
        """Return the paths to write and those to delete."""
        try:
            changes = await changes_since(self._supervisor_repo, self._record, commit)
        except GitFailed as failed:
            raise WorkspaceTampered(
                f"cannot reset to {commit[:12]}: {failed.stderr[-300:]}; store the work with `podium "
                f"workspaces snapshot {self._record.task}`, and create a new workspace"
            ) from failed
        write = [path for path in changes.tracked if path not in preserved]
        return write, [path for path in changes.untracked if path not in preserved]

    async def _between(self, head: str, commit: str) -> tuple[list[str], list[str]]:
        """Return the paths that only the checkout has, and all paths in which it differs from the commit."""
        if head in ("", commit):
            return [], []
        ended = await self._supervisor_repo.run(
            "diff-tree", "-r", "-z", "--name-status", "--no-renames", head, commit, accept=(0, 128)
        )
        if ended.exit_code != 0:
            return [], []  # its objects are broken: the worktree alone tells
        fields = ended.stdout.decode(errors="surrogateescape").split("\0")
        pairs = list(zip(fields[::2], fields[1::2], strict=False))
        return [path for kind, path in pairs if kind == "D"], [path for _, path in pairs]

    async def _put_files_back(
        self, commit: str, why: str, preserved: Collection[str], off: tuple[list[str], list[str]]
    ) -> None:
        for _ in range(_MAX_ROUNDS):
            await asyncio.to_thread(self._delete, off[1])
            await self._write(off)
            before, off = off, await self._off(commit, preserved)
            if not any(off):
                return
            if off == before:
                break
            await self._snapshots.take(self._record, why)
        raise NotPossibleNow(
            f"{(off[0] + off[1])[0]!r} cannot be restored; remove what blocks its path, then try again"
        )

    async def _write(self, off: tuple[list[str], list[str]]) -> None:
        names = b"".join(os.fsencode(path) + b"\0" for path in off[0])
        if names:
            await asyncio.to_thread(self._open_up, off[0])
            await self._supervisor_repo.run(
                "checkout-index",
                "--force",
                "--index",
                "-z",
                "--stdin",
                stdin=names,
                accept=(0, 1, 128),
            )

    def _open_up(self, paths: Sequence[str]) -> None:
        for path in paths:
            open_folders(self._worktree, path)

    def _delete(self, paths: Sequence[str]) -> None:
        self._open_up(paths)
        for path in paths:
            remove_file(self._worktree, path)
            remove_empty_folders(self._worktree, path)

    async def _renew(self, commit: str, now: WorktreeSnapshot) -> None:
        """A private git directory made anew: whatever was begun or broken there is gone with the old one."""
        await self._snapshots.bring(self._record, commit)
        await renew_private_dir(
            self._git, ObjectKeeper(self._git, self._record), self._record, commit
        )
        if now.complete:
            await asyncio.to_thread(clear_away, Path(self._record.private, "git.old"))


def _mend(record: WorkspaceRecord) -> None:
    """Let the folders be there that a confinement stands on; what stood in their place is moved away."""
    private = Path(record.private)
    finish_swap(private)
    for folder in folders_of_git(record):
        path = private / folder
        if os.path.lexists(path) and not stat.S_ISDIR(path.lstat().st_mode):
            move_away(private, private, [folder])
        path.mkdir(mode=0o700, exist_ok=True)
    own = f"worktrees/{record.admin}"
    write_files(private / "git", {f"{own}/commondir": b"../..\n"})


class BranchReset:
    """Moves the user's branch first, then the worktree: asked again after a kill, it goes on from there."""

    def __init__(
        self, git: Git, records: WorkspaceRecords, snapshots: Snapshots, resetting: WorkspaceReset
    ) -> None:
        self._git = git
        self._records = records
        self._snapshots = snapshots
        self._resetting = resetting

    async def stand_at(
        self, record: WorkspaceRecord, commit: str, why: str, tip: str, keep: Sequence[str]
    ) -> WorktreeSnapshot | None:
        """The snapshot of where the branch was. None: it lost nothing."""
        async with self._records.repository_lock(record.git_dir):
            await refuse_missing(self._git, record, commit)
            current = await self._git.resolve(record.branch, record.git_dir)
            snapshot = await keep_tip(self._git, self._snapshots, record, current, commit, why)
            # From there alone: what somebody commits in between is in no snapshot.
            await Deliveries(self._git, self._records).put_at(record, commit, current)
        await self._resetting.reset(tip, why, keep)
        return snapshot


async def keep_tip(
    git: Git, snapshots: Snapshots, record: WorkspaceRecord, current: str, commit: str, why: str
) -> WorktreeSnapshot | None:
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
        f"commit {commit[:12]} of {short!r} ({record.branch}), which was delivered, is missing from {record.repository!r} on host "
        f"{socket.gethostname()!r}; fetch it from the host that made it (`git fetch REMOTE {short}`)"
    )


async def is_within(git: Git, record: WorkspaceRecord, commit: str, later: str) -> bool:
    """Check that `later` contains the commit, as far as the user's repository has them."""
    if commit == later:
        return True
    ended = await git.run(
        "merge-base", "--is-ancestor", commit, later,
        git_dir=record.git_dir, accept=(0, 1, 128),
    )  # fmt: skip
    return ended.exit_code == 0

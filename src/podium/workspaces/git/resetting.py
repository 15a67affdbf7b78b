"""Putting a workspace's branch and files back to a commit, with everything that this would lose kept first."""

from __future__ import annotations

import asyncio
import os
import stat
from collections.abc import Collection, Sequence
from pathlib import Path

from podium.domain.errors import NotPossibleNow, WorkspaceTampered
from podium.domain.workspaces import Snapshot, WorkspaceRecord
from podium.workspaces.git.clearing import clear_away
from podium.workspaces.git.desk import Desk
from podium.workspaces.git.documents import (
    check_paths,
    clean_path,
    open_folders,
    remove_empty_folders,
    remove_file,
    write_files,
)
from podium.workspaces.git.git import Git, GitFailed
from podium.workspaces.git.hygiene import move_away
from podium.workspaces.git.keeper import Keeper
from podium.workspaces.git.layout import finish_swap, folders_of_git
from podium.workspaces.git.restoring import renew_private_dir
from podium.workspaces.git.snapshots import Snapshots
from podium.workspaces.git.standing import changes_since, standing_of

_MOST_ROUNDS = 50
"""What git ignored comes to light when its list is put back, and of very many files only the first are seen."""


class Resetting:
    """Files go back first, then what git says of them: asked again after a kill, it goes on from there."""

    def __init__(self, git: Git, desk: Desk, snapshots: Snapshots, record: WorkspaceRecord) -> None:
        self._git = git
        self._desk = desk
        self._snapshots = snapshots
        self._record = record
        self._worktree = Path(record.path)

    async def reset(self, commit: str, why: str, keep: Sequence[str]) -> list[str]:
        """The paths that were put back. One look, and nothing done, when all is as it should be."""
        check_paths(keep, ())
        kept = {clean_path(path) for path in keep}
        sound = await self._is_sound()
        standing = await asyncio.to_thread(standing_of, self._record)
        in_place = sound and standing.is_as_it_should_be and standing.tip == commit
        write, delete = await self._off(commit, kept)
        if in_place and not write and not delete:
            return []
        dropped, made = await self._between(standing.head, commit)
        delete = list(dict.fromkeys([*delete, *(path for path in dropped if path not in kept)]))
        now = await self._snapshots.take(self._record, why)
        await self._put_files_back(commit, why, kept, (write, delete))
        if not in_place:
            await self._renew(commit, now)
        await asyncio.to_thread(self._desk.hand_over)
        self._desk.forget_merge()
        return sorted({*write, *delete, *made} - kept)

    async def _is_sound(self) -> bool:
        """Whether the private git directory stands. One that does not is made usable for what follows."""
        try:
            await self._desk.sit_down()
        except WorkspaceTampered:
            await asyncio.to_thread(_mend, self._record)
            # Raises again when the trouble lies elsewhere.
            await self._desk.sit_down()
            return False
        return True

    async def _off(self, commit: str, kept: Collection[str]) -> tuple[list[str], list[str]]:
        """What has to be written, and what deleted."""
        try:
            changes = await changes_since(self._desk, self._record, commit)
        except GitFailed as failed:
            raise WorkspaceTampered(
                f"{commit[:12]} cannot be gone back to: {failed.stderr[-300:]}; see what "
                f"`podium workspaces snapshot {self._record.task}` keeps, and make a new workspace"
            ) from failed
        write = [path for path in changes.tracked if path not in kept]
        return write, [path for path in changes.untracked if path not in kept]

    async def _between(self, head: str, commit: str) -> tuple[list[str], list[str]]:
        """What what is checked out has and the commit has not; all paths in which they differ."""
        if head in ("", commit):
            return [], []
        ended = await self._desk.run(
            "diff-tree", "-r", "-z", "--name-status", "--no-renames", head, commit, accept=(0, 128)
        )
        if ended.exit_code != 0:
            return [], []  # its objects are broken: the worktree alone tells
        fields = ended.stdout.decode(errors="surrogateescape").split("\0")
        pairs = list(zip(fields[::2], fields[1::2], strict=False))
        return [path for kind, path in pairs if kind == "D"], [path for _, path in pairs]

    async def _put_files_back(
        self, commit: str, why: str, kept: Collection[str], off: tuple[list[str], list[str]]
    ) -> None:
        for _ in range(_MOST_ROUNDS):
            await asyncio.to_thread(self._delete, off[1])
            await self._write(off)
            before, off = off, await self._off(commit, kept)
            if not any(off):
                return
            if off == before:
                break
            await self._snapshots.take(self._record, why)
        raise NotPossibleNow(
            f"{(off[0] + off[1])[0]!r} cannot be put back; remove what is in its way, then try again"
        )

    async def _write(self, off: tuple[list[str], list[str]]) -> None:
        names = b"".join(os.fsencode(path) + b"\0" for path in off[0])
        if names:
            await asyncio.to_thread(self._open_up, off[0])
            await self._desk.run(
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

    async def _renew(self, commit: str, now: Snapshot) -> None:
        """A private git directory made anew: whatever was begun or broken there is gone with the old one."""
        await self._snapshots.bring(self._record, commit)
        await renew_private_dir(self._git, Keeper(self._git, self._record), self._record, commit)
        if now.complete:
            await asyncio.to_thread(clear_away, Path(self._record.private, "git.old"))


def _mend(record: WorkspaceRecord) -> None:
    """Let the folders be there that a confinement stands on; what stood in their place is moved away."""
    private = Path(record.private)
    finish_swap(private)
    for folder in folders_of_git(record):
        place = private / folder
        if os.path.lexists(place) and not stat.S_ISDIR(place.lstat().st_mode):
            move_away(private, private, [folder])
        place.mkdir(mode=0o700, exist_ok=True)
    own = f"worktrees/{record.admin}"
    write_files(private / "git", {f"{own}/commondir": b"../..\n"})

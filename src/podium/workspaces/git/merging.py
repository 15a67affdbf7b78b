"""Merging a commit of the user's repository into a workspace's branch."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Mapping

from podium.domain.errors import BadInput, NotPossibleNow
from podium.domain.launching import Ended
from podium.domain.workspaces import Merge, WorkspaceRecord
from podium.ports.clock import Clock
from podium.workspaces.git.committing import dated
from podium.workspaces.git.desk import Desk
from podium.workspaces.git.git import Git
from podium.workspaces.git.messages import message_with
from podium.workspaces.git.records import note_merged_base
from podium.workspaces.git.standing import changes_since, standing_of, tip_to_work_on

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_MOST_TOLD = 5000


class Merging:
    """Merges at the desk, then lets the agent's git directory have what came of it.

    What is about to be merged is noted first. Killed in between and asked again, the worktree is put back,
    unless git was done: it writes its own notes last.
    """

    def __init__(
        self,
        git: Git,
        desk: Desk,
        record: WorkspaceRecord,
        clock: Clock,
        put_back: Callable[[str], Awaitable[object]],
    ) -> None:
        """`put_back` makes branch and worktree what a commit has."""
        self._git = git
        self._desk = desk
        self._record = record
        self._clock = clock
        self._put_back = put_back

    async def merge(
        self, other: str, message: str, trailers: Mapping[str, str], *, trusted: bool = False
    ) -> Merge:
        text = message_with(message, trailers)
        found = await self._found(other)
        if trusted:
            await asyncio.to_thread(note_merged_base, self._record, found)
        standing = await asyncio.to_thread(standing_of, self._record)
        if standing.on_branch and standing.merging_with == found:
            return await self._still_open(found)
        tip = await asyncio.to_thread(tip_to_work_on, self._record)
        if await self._contains(tip, found):
            return Merge(other=found, commit=tip, up_to_date=True, told="Already up to date.")
        if self._desk.noted_merge() == f"{tip} {found}":
            if self._desk.is_away() and self._desk.head() != tip:
                return await self._clean(found, "")
            if self._desk.is_away() and self._desk.merge_head() == found:
                return await self._in_conflict(found, text, "")
            await self._put_back(tip)
        return await self._merged(tip, found, text)

    async def _found(self, other: str) -> str:
        commit = (
            await self._git.resolve(f"{other}^{{commit}}", self._record.git_dir) if other else ""
        )
        if not commit:
            raise BadInput(
                f"there is no commit {other[:200]!r} in the repository that could be merged; "
                "see `git branch --all`"
            )
        return commit

    async def _contains(self, tip: str, commit: str) -> bool:
        asked = await self._desk.run("merge-base", "--is-ancestor", commit, tip, accept=(0, 1))
        return asked.exit_code == 0

    async def _merged(self, tip: str, other: str, text: str) -> Merge:
        changes = await changes_since(self._desk, self._record, tip)
        if changes.paths:
            raise NotPossibleNow(
                f"{changes.paths[0]!r} is not committed, so nothing can be merged; commit what is in the "
                "worktree, or put it back first"
            )
        self._desk.note_merge(f"{tip} {other}")
        self._desk.leave()
        file = self._desk.folder / "message"  # `merge` takes none from its input
        await asyncio.to_thread(file.write_bytes, text.encode(errors="replace"))
        ended = await self._desk.run(
            "merge", "--no-ff", "--no-edit", "--no-verify", "--no-gpg-sign", "--no-stat", "--no-progress",
            "--no-autostash", "--no-rerere-autoupdate", "--cleanup=verbatim", f"--file={file}", other,
            env=dated(self._clock), cut=True,
            accept=(0, 1, 2, 128),
        )  # fmt: skip
        if self._desk.head() != tip:
            return await self._clean(other, _told(ended))
        if self._desk.merge_head() == other:
            return await self._in_conflict(other, text, _told(ended))
        raise await self._failed(tip, other, _told(ended))

    async def _clean(self, other: str, told: str) -> Merge:
        commit = self._desk.head()
        await asyncio.to_thread(self._desk.publish, commit)
        self._desk.forget_merge()
        return Merge(other=other, commit=commit, told=told)

    async def _in_conflict(self, other: str, text: str, told: str) -> Merge:
        conflicts = await self._unmerged({})
        # Last the one by which git knows that a merge is open.
        notes = {"MERGE_MSG": text, "MERGE_MODE": "no-ff", "MERGE_HEAD": f"{other}\n"}
        await asyncio.to_thread(self._desk.hand_over, notes)
        self._desk.forget_merge()
        return Merge(other=other, conflicts=conflicts, told=told)

    async def _still_open(self, other: str) -> Merge:
        env = await asyncio.to_thread(self._desk.agents_index)
        conflicts = await self._unmerged(env)
        told = (
            "the merge is open"
            if conflicts
            else "all is solved, and the merge is not committed yet"
        )
        return Merge(other=other, conflicts=conflicts, told=told)

    async def _unmerged(self, env: Mapping[str, str]) -> tuple[str, ...]:
        ended = await self._desk.run("ls-files", "--unmerged", "-z", env=env)
        rows = ended.stdout.decode(errors="surrogateescape").split("\0")
        return tuple(dict.fromkeys(row.partition("\t")[2] for row in rows if row))

    async def _failed(self, tip: str, other: str, told: str) -> NotPossibleNow:
        changes = await changes_since(self._desk, self._record, tip)
        if not changes.paths:
            self._desk.forget_merge()
        return NotPossibleNow(f"{other[:12]} cannot be merged: {told[-500:] or 'git said nothing'}")


def _told(ended: Ended) -> str:
    words = (ended.stdout + b"\n" + ended.stderr).decode(errors="replace")
    return _CONTROL.sub("", words).strip()[:_MOST_TOLD]

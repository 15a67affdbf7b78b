"""Snapshots: everything in a workspace as one commit under a private ref of the user's repository.

Its tree is the worktree, untracked files included; its first parent is where the agent's branch stood, and
the others are all further commits that only the workspace had. So one ref keeps all of it from being lost.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from podium.domain.errors import BadInput, NotPossibleNow
from podium.domain.launching import Confinement
from podium.domain.workspaces import Snapshot, WorkspaceRecord
from podium.ports.clock import Clock
from podium.workspaces.git.committable import kept_committable
from podium.workspaces.git.git import Git, GitFailed, no_object
from podium.workspaces.git.keeper import Keeper
from podium.workspaces.git.layout import confinement_of
from podium.workspaces.git.loose_commits import LooseCommits, known_tips
from podium.workspaces.git.pipes import mend_private_dir
from podium.workspaces.git.planted import kept_planted
from podium.workspaces.git.records import Records
from podium.workspaces.git.stale_locks import clear_stale_lock
from podium.workspaces.git.tidying import tidy
from podium.workspaces.git.tree_size import check_size

_MARK = "podium-snapshot: "
_TOLD = ("why", "at", "left_out", "complete", "carried")
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]+")


class Snapshots:
    """Takes and lists snapshots. Whoever takes one holds the workspace's lock."""

    def __init__(self, git: Git, records: Records, clock: Clock, *, confined: bool = True) -> None:
        self._git = git
        self._records = records
        self._clock = clock
        self._confined = confined

    async def take(self, record: WorkspaceRecord, why: str) -> Snapshot:
        """Keep everything. When nothing changed since the newest one, that is given back."""
        there = os.path.isdir(record.path)  # noqa: PTH112, ASYNC240 — one look
        if there:
            await tidy(self._git, record)
        await asyncio.to_thread(mend_private_dir, record)
        tips, unread = await asyncio.to_thread(known_tips, record)
        loose = LooseCommits(self._git, record, await self._confinement(record) if there else None)
        left_out = unread + await loose.bring(tips)
        heads = await loose.heads(tips)
        head = await self._head(record, tips)
        await check_size(self._git, record, head)
        large: list[str] = []
        carried = head
        if there:
            tree, unread, large = await Keeper(self._git, record).tree(head)
            left_out += [f"a file: {line}" for line in unread]
            carried = await self._carried(record, head)
        else:
            # Somebody removed the worktree; its commits are still to be kept.
            tree = await self._git.resolve(f"{head}^{{tree}}", record.git_dir)
        planted, too_large = await kept_planted(self._git, record)
        parents = [each for each in dict.fromkeys([head, *heads, *planted, carried]) if each]
        left_out += too_large
        facts = Snapshot(
            ref=f"{_folder(record)}/1",
            commit=head,
            why=_CONTROL.sub(" ", why),
            at=self._clock.now(),
            left_out=tuple(left_out + large),
            complete=not left_out,
            carried=carried,
        )
        before = await self.listed(record)
        if before and await self._same(record, before[-1], tree, parents, facts):
            return before[-1]
        return await self._kept(record, tree, parents, before, facts)

    async def keep(self, record: WorkspaceRecord, commit: str, why: str) -> Snapshot:
        """A commit of the user's repository alone, such as where a branch was."""
        facts = Snapshot(
            ref=f"{_folder(record)}/1",
            commit=commit,
            why=_CONTROL.sub(" ", why),
            at=self._clock.now(),
            carried=commit,
        )
        tree = await self._git.resolve(f"{commit}^{{tree}}", record.git_dir)
        return await self._kept(record, tree, [commit], await self.listed(record), facts)

    async def bring(self, record: WorkspaceRecord, commit: str) -> None:
        """Let the user's repository have a commit of the workspace, which nothing there refers to yet."""
        loose = LooseCommits(self._git, record, await self._confinement(record))
        left_out = await loose.bring([commit])
        if left_out or not await self._git.resolve(f"{commit}^{{commit}}", record.git_dir):
            why = left_out[0] if left_out else "it is not there"
            raise NotPossibleNow(
                f"commit {commit[:12]} cannot be taken out of the workspace: {why}"
            )

    async def listed(self, record: WorkspaceRecord) -> list[Snapshot]:
        """All of a workspace, also of a removed one; newest last."""
        form = "--format=%(refname) %(objectname) %(parent)%0a%(contents)%00"
        text = await self._git.text(
            "for-each-ref", form, f"{_folder(record)}/", git_dir=record.git_dir
        )
        found = [_read(entry.lstrip("\n")) for entry in text.split("\0")]
        return sorted((each for each in found if each is not None), key=_number)

    async def _confinement(self, record: WorkspaceRecord) -> Confinement | None:
        return await asyncio.to_thread(confinement_of, record) if self._confined else None

    async def _head(self, record: WorkspaceRecord, tips: Sequence[str]) -> str:
        """The branch's own tip if the user's repository has it by now."""
        for candidate in (*tips[:1], self._records.delivered(record)):
            if commit := await self._git.resolve(f"{candidate}^{{commit}}", record.git_dir):
                return commit
        return record.base

    async def _carried(self, record: WorkspaceRecord, head: str) -> str:
        """A commit of what git would carry, on top of the head; that itself when there is nothing else.

        The same files make the same commit. Empty when git cannot add them all.
        """
        try:
            tree = await kept_committable(self._git, record, head)
        except GitFailed:
            return ""
        if tree == await self._git.resolve(f"{head}^{{tree}}", record.git_dir):
            return head
        message = f"{record.task}: files that were not committed\n"
        return await self._committed(record, tree, [head], message, record.created_at)

    async def _same(
        self,
        record: WorkspaceRecord,
        snapshot: Snapshot,
        tree: str,
        parents: Sequence[str],
        facts: Snapshot,
    ) -> bool:
        if (snapshot.left_out, snapshot.complete) != (facts.left_out, facts.complete):
            return False
        words = ("show", "--no-patch", "--format=%T %P", snapshot.commit)
        text = await self._git.text(*words, git_dir=record.git_dir)
        return text.split() == [tree, *parents]

    async def _kept(
        self,
        record: WorkspaceRecord,
        tree: str,
        parents: Sequence[str],
        before: Sequence[Snapshot],
        facts: Snapshot,
    ) -> Snapshot:
        told = facts.model_dump(mode="json", exclude={"ref", "commit"}) | {"task": record.task}
        message = f"Snapshot of {record.task}: {facts.why}\n\n{_MARK}{json.dumps(told)}\n"
        commit = await self._committed(record, tree, parents, message, facts.at)
        ref = f"{_folder(record)}/{_number(before[-1]) + 1 if before else 1}"
        await clear_stale_lock(record.git_dir, ref)
        await self._git.move_ref(ref, commit, no_object(commit), record.git_dir, "podium: snapshot")
        return facts.model_copy(update={"ref": ref, "commit": commit})

    async def _committed(
        self, record: WorkspaceRecord, tree: str, parents: Sequence[str], message: str, at: datetime
    ) -> str:
        who = f"Podium <podium@localhost> {int(at.timestamp())} +0000"
        above = "".join(f"parent {parent}\n" for parent in parents)
        text = f"tree {tree}\n{above}author {who}\ncommitter {who}\n\n{message}"
        # Not by `commit-tree`: tens of thousands of parents do not fit on a command line.
        made = await self._git.run(
            "hash-object", "-t", "commit", "-w", "--stdin",
            git_dir=record.git_dir, stdin=text.encode(),
        )  # fmt: skip
        return made.stdout.decode().strip()


async def check_own(git: Git, record: WorkspaceRecord, snapshot: Snapshot) -> None:
    """Raise unless the snapshot is one of this workspace and still there."""
    if not snapshot.ref.startswith(f"{_folder(record)}/"):
        raise BadInput(
            f"{snapshot.ref!r} is no snapshot of workspace {record.id}; name one of its own"
        )
    if await git.resolve(snapshot.ref, record.git_dir) != snapshot.commit:
        raise NotPossibleNow(
            f"the snapshot {snapshot.ref!r} is gone; see `git for-each-ref refs/podium`"
        )


def _folder(record: WorkspaceRecord) -> str:
    return f"refs/podium/snapshots/{record.id}"


def _number(snapshot: Snapshot) -> int:
    last = Path(snapshot.ref).name
    return int(last) if last.isdecimal() else 0


def _read(entry: str) -> Snapshot | None:
    """A snapshot as its commit tells it. One that somebody else made in its place tells nothing."""
    head, _, message = entry.partition("\n")
    ref, commit, *parents = [*head.split(" "), ""]
    if not commit:
        return None
    try:
        # The first such line: what was left out may have any name, and stands behind it.
        told = next(line for line in message.split("\n") if line.startswith(_MARK))
        facts = json.loads(told.removeprefix(_MARK))
        snapshot = Snapshot.model_validate(
            {name: facts[name] for name in _TOLD if name in facts} | {"ref": ref, "commit": commit}
        )
    except (ValueError, TypeError, StopIteration):
        return Snapshot(
            ref=ref,
            commit=commit,
            why="not known",
            at=datetime.fromtimestamp(0, UTC),
            complete=False,
        )
    safe = snapshot.carried in parents
    return snapshot if safe else snapshot.model_copy(update={"carried": ""})

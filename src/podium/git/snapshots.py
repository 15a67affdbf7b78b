"""Snapshots: everything in a workspace as one commit under a private ref, loose commits included.

Its tree is the worktree, untracked files included; its first parent is where the agent's branch stood, and
the others are all further commits that only the workspace had. So one ref keeps all of it from being lost.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import tempfile
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from podium.core.errors import BadInput, ImportRefused, NotPossibleNow
from podium.core.processes import Confinement, ProcessExit
from podium.core.workspaces import RUN_REFS, WorkspaceRecord, WorktreeSnapshot
from podium.git.commit_changes import MAX_PACK_BYTES, quarantined
from podium.git.commit_trees import check_size
from podium.git.committable_tree import store_committable
from podium.git.git_command import Git, GitFailed, clear_stale_lock, no_object
from podium.git.layout import confinement_of, tidy
from podium.git.planted import store_planted
from podium.git.private_dir import (
    logged_commits,
    make_borrower,
    mend_private_dir,
    read_head,
    read_ref,
    read_refs,
    stray_objects,
)
from podium.git.records import WorkspaceRecords
from podium.git.worktree_objects import ObjectKeeper
from podium.ports.engine import Clock

_MAX_LOGGED = 5000
_MAX_TIPS = 50_000


class RecordedTips(NamedTuple):
    """Commits, and names that may be those of commits."""

    tips: list[str]
    unread: list[str]
    """Descriptions of what was not read."""


def recorded_tips(record: WorkspaceRecord) -> RecordedTips:
    """Read every commit that its branches, tags, stash and logs ever named; the branch's own tip comes first.

    Behind them the objects that nothing may name any more.
    """
    private = Path(record.private, "git")
    logged, strays = logged_commits(private, record.admin), stray_objects(private)
    tips = [read_ref(private, record.branch), read_head(private, record.admin)]
    # Logs first: the refs are mostly copies of the user's, however many he has.
    tips += [*logged.commits[:_MAX_LOGGED], *read_refs(private).values()]
    fitting = (tip for tip in tips if len(tip) == len(record.base) and "/" not in tip)
    named = list(dict.fromkeys(tip for tip in fitting if tip.strip("0")))
    unread = []
    if not logged.whole or len(logged.commits) > _MAX_LOGGED or len(named) > _MAX_TIPS:
        unread.append("commits: its logs and refs name more commits than can be checked")
    if not strays.whole:
        unread.append("commits: it has more objects than can be checked")
    also = (name for name in strays.commits if len(name) == len(record.base))
    return RecordedTips(list(dict.fromkeys([*named[:_MAX_TIPS], *also])), unread)


class LooseCommits:
    """Reads commits out of one workspace: inside its confinement, or else by a borrower of its objects."""

    def __init__(self, git: Git, record: WorkspaceRecord, confinement: Confinement | None) -> None:
        self._git = git
        self._record = record
        self._confinement = confinement

    async def bring(self, tips: Sequence[str]) -> list[str]:
        """Put what is missing into the user's objects, where nothing refers to it yet.

        Returns descriptions of what could not be brought. When not all can be, the first one is tried alone.
        """
        missing = await self._missing(tips)
        if not missing:
            return []
        try:
            await self._bring(missing)
        except (ImportRefused, GitFailed) as refused:
            if len(missing) > 1 and tips[0] in missing:
                return [f"some commits: {refused}", *await self.bring(tips[:1])]
            return [f"commits: {refused}"]
        return []

    async def heads(self, tips: Sequence[str]) -> list[str]:
        """Of these, those that no branch or tag of the user's reaches and none of the others."""
        missing = set(await self._missing(tips))
        there = [tip for tip in tips if tip not in missing]
        ended = await self._git.run(
            "rev-list", "--parents", "--stdin", "--not", "--branches", "--tags", "--remotes",
            f"--glob={RUN_REFS}*",
            git_dir=self._record.git_dir, stdin="".join(f"{tip}\n" for tip in there).encode(),
        )  # fmt: skip
        rows = [line.split() for line in ended.stdout.decode().splitlines()]
        parents = {parent for row in rows for parent in row[1:]}
        return [row[0] for row in rows if row[0] not in parents]

    async def _missing(self, tips: Sequence[str]) -> list[str]:
        """Those that are no commits in the user's repository."""
        ended = await self._git.run(
            "cat-file", "--batch-check", git_dir=self._record.git_dir, stdin=_commits(tips)
        )
        rows = ended.stdout.decode().splitlines()
        return [tip for tip, row in zip(tips, rows, strict=True) if row.endswith(" missing")]

    async def _bring(self, tips: Sequence[str]) -> None:
        """Raises `ImportRefused` for objects that are wrong, `GitFailed` for a history with holes."""
        asked = await self._inside("cat-file", "--batch-check", stdin=_commits(tips))
        rows = [row.split() for row in asked.stdout.decode(errors="replace").splitlines()]
        commits = [row[0] for row in rows if len(row) == 3 and row[1] == "commit"]
        if not commits:
            return
        revisions = "".join(f"{commit}\n" for commit in commits) + f"^{self._record.base}\n"
        packed = await self._inside(
            "pack-objects", "--revs", "--thin", "--stdout", "--quiet", "--delta-base-offset",
            stdin=revisions.encode(),
        )  # fmt: skip
        async with quarantined(self._git, self._record.git_dir) as quarantine:
            await quarantine.take(packed.stdout)
            await quarantine.release()

    async def _inside(self, *arguments: str, stdin: bytes) -> ProcessExit:
        if self._confinement is not None:
            return await self._git.run(
                *arguments, cwd=self._record.path, stdin=stdin, confinement=self._confinement,
                env={"HOME": str(Path(self._record.private, "home"))},
                output_bytes=MAX_PACK_BYTES,
            )  # fmt: skip
        with tempfile.TemporaryDirectory(prefix="podium-", dir=self._record.private) as folder:
            await asyncio.to_thread(make_borrower, Path(folder), self._record, self._record.base)
            return await self._git.run(
                *arguments, git_dir=folder, stdin=stdin, output_bytes=MAX_PACK_BYTES
            )


def _commits(tips: Sequence[str]) -> bytes:
    return "".join(f"{tip}^{{commit}}\n" for tip in tips).encode()


_FACTS_PREFIX = "podium-snapshot: "
_FACT_FIELDS = ("why", "at", "left_out", "complete", "carried")
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]+")


class Snapshots:
    """Takes and lists snapshots. Whoever takes one holds the workspace's lock."""

    def __init__(
        self, git: Git, records: WorkspaceRecords, clock: Clock, *, confined: bool = True
    ) -> None:
        self._git = git
        self._records = records
        self._clock = clock
        self._confined = confined

    async def take(self, record: WorkspaceRecord, why: str) -> WorktreeSnapshot:
        """Keep everything. When nothing changed since the newest one, that is given back."""
        there = os.path.isdir(record.path)  # noqa: PTH112, ASYNC240 — one look
        if there:
            await tidy(self._git, record)
        await asyncio.to_thread(mend_private_dir, record)
        tips, unread = await asyncio.to_thread(recorded_tips, record)
        loose = LooseCommits(self._git, record, await self._confinement(record) if there else None)
        left_out = unread + await loose.bring(tips)
        heads = await loose.heads(tips)
        head = await self._head(record, tips)
        await check_size(self._git, record, head)
        large: list[str] = []
        carried = head
        if there:
            tree, unread, large = await ObjectKeeper(self._git, record).tree(head)
            left_out += [f"a file: {line}" for line in unread]
            carried = await self._carried(record, head)
        else:
            # Somebody removed the worktree; its commits are still to be kept.
            tree = await self._git.resolve(f"{head}^{{tree}}", record.git_dir)
        planted, too_large = await store_planted(self._git, record)
        parents = [commit for commit in dict.fromkeys([head, *heads, *planted, carried]) if commit]
        left_out += too_large
        facts = WorktreeSnapshot(
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
        return await self._store(record, tree, parents, before, facts)

    async def keep(self, record: WorkspaceRecord, commit: str, why: str) -> WorktreeSnapshot:
        """A commit of the user's repository alone, such as where a branch was."""
        facts = WorktreeSnapshot(
            ref=f"{_folder(record)}/1",
            commit=commit,
            why=_CONTROL.sub(" ", why),
            at=self._clock.now(),
            carried=commit,
        )
        tree = await self._git.resolve(f"{commit}^{{tree}}", record.git_dir)
        return await self._store(record, tree, [commit], await self.listed(record), facts)

    async def bring(self, record: WorkspaceRecord, commit: str) -> None:
        """Let the user's repository have a commit of the workspace, which nothing there refers to yet."""
        loose = LooseCommits(self._git, record, await self._confinement(record))
        left_out = await loose.bring([commit])
        if left_out or not await self._git.resolve(f"{commit}^{{commit}}", record.git_dir):
            why = left_out[0] if left_out else "it does not exist"
            raise NotPossibleNow(
                f"commit {commit[:12]} cannot be exported from the workspace: {why}"
            )

    async def listed(self, record: WorkspaceRecord) -> list[WorktreeSnapshot]:
        """All of a workspace, also of a removed one; newest last."""
        form = "--format=%(refname) %(objectname) %(parent)%0a%(contents)%00"
        text = await self._git.text(
            "for-each-ref", form, f"{_folder(record)}/", git_dir=record.git_dir
        )
        snapshots = [_read(entry.lstrip("\n")) for entry in text.split("\0")]
        return sorted((snapshot for snapshot in snapshots if snapshot is not None), key=_number)

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
            tree = await store_committable(self._git, record, head)
        except GitFailed:
            return ""
        if tree == await self._git.resolve(f"{head}^{{tree}}", record.git_dir):
            return head
        message = f"{record.task}: files that were not committed\n"
        return await self._committed(record, tree, [head], message, record.created_at)

    async def _same(
        self,
        record: WorkspaceRecord,
        snapshot: WorktreeSnapshot,
        tree: str,
        parents: Sequence[str],
        facts: WorktreeSnapshot,
    ) -> bool:
        if (snapshot.left_out, snapshot.complete) != (facts.left_out, facts.complete):
            return False
        command = ("show", "--no-patch", "--format=%T %P", snapshot.commit)
        text = await self._git.text(*command, git_dir=record.git_dir)
        return text.split() == [tree, *parents]

    async def _store(
        self,
        record: WorkspaceRecord,
        tree: str,
        parents: Sequence[str],
        before: Sequence[WorktreeSnapshot],
        facts: WorktreeSnapshot,
    ) -> WorktreeSnapshot:
        fields = facts.model_dump(mode="json", exclude={"ref", "commit"}) | {"task": record.task}
        message = f"Snapshot of {record.task}: {facts.why}\n\n{_FACTS_PREFIX}{json.dumps(fields)}\n"
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


async def check_own(git: Git, record: WorkspaceRecord, snapshot: WorktreeSnapshot) -> None:
    """Raise unless the snapshot is one of this workspace and still there."""
    if not snapshot.ref.startswith(f"{_folder(record)}/"):
        raise BadInput(
            f"{snapshot.ref!r} is not a snapshot of workspace {record.id}; name one of this workspace"
        )
    if await git.resolve(snapshot.ref, record.git_dir) != snapshot.commit:
        raise NotPossibleNow(
            f"the snapshot {snapshot.ref!r} is gone; see `git for-each-ref refs/podium`"
        )


def _folder(record: WorkspaceRecord) -> str:
    return f"refs/podium/snapshots/{record.id}"


def _number(snapshot: WorktreeSnapshot) -> int:
    last = Path(snapshot.ref).name
    return int(last) if last.isdecimal() else 0


def _read(entry: str) -> WorktreeSnapshot | None:
    """Parse a snapshot from its commit. One that somebody else made in its place has no facts."""
    head, _, message = entry.partition("\n")
    ref, commit, *parents = [*head.split(" "), ""]
    if not commit:
        return None
    try:
        # The first such line: what was left out may have any name, and stands behind it.
        line = next(line for line in message.split("\n") if line.startswith(_FACTS_PREFIX))
        facts = json.loads(line.removeprefix(_FACTS_PREFIX))
        snapshot = WorktreeSnapshot.model_validate(
            {name: facts[name] for name in _FACT_FIELDS if name in facts}
            | {"ref": ref, "commit": commit}
        )
    except (ValueError, TypeError, StopIteration):
        return WorktreeSnapshot(
            ref=ref,
            commit=commit,
            why="not known",
            at=datetime.fromtimestamp(0, UTC),
            complete=False,
        )
    safe = snapshot.carried in parents
    return snapshot if safe else snapshot.model_copy(update={"carried": ""})

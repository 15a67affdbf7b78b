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
from podium.workspaces.git.git import Git, no_object
from podium.workspaces.git.keeper import Keeper
from podium.workspaces.git.layout import confinement_of
from podium.workspaces.git.loose_commits import LooseCommits, known_tips
from podium.workspaces.git.planted import kept_planted
from podium.workspaces.git.records import Records
from podium.workspaces.git.tidying import tidy

_MARK = "podium-snapshot: "
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
        tips = await asyncio.to_thread(known_tips, record)
        loose = LooseCommits(self._git, record, await self._confinement(record) if there else None)
        left_out = await loose.bring(tips)
        heads = await loose.heads(tips)
        head = await self._head(record, tips)
        if there:
            tree, unread = await Keeper(self._git, record).tree(head, ignored=True)
            left_out += [f"a file: {line}" for line in unread]
        else:
            # Somebody removed the worktree; its commits are still to be kept.
            tree = await self._git.resolve(f"{head}^{{tree}}", record.git_dir)
        planted, too_large = await kept_planted(self._git, record)
        parents = list(dict.fromkeys([head, *heads, *planted]))
        left_out += too_large
        before = await self.listed(record)
        if before and await self._same(record, before[-1], tree, parents):
            return before[-1]
        return await self._kept(record, tree, parents, before, _CONTROL.sub(" ", why), left_out)

    async def listed(self, record: WorkspaceRecord) -> list[Snapshot]:
        """All of a workspace, also of a removed one; newest last."""
        form = "--format=%(refname) %(objectname) %(contents)%00"
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

    async def _same(
        self, record: WorkspaceRecord, snapshot: Snapshot, tree: str, parents: Sequence[str]
    ) -> bool:
        words = ("show", "--no-patch", "--format=%T %P", snapshot.commit)
        text = await self._git.text(*words, git_dir=record.git_dir)
        return text.split() == [tree, *parents]

    async def _kept(
        self,
        record: WorkspaceRecord,
        tree: str,
        parents: Sequence[str],
        before: Sequence[Snapshot],
        why: str,
        left_out: Sequence[str],
    ) -> Snapshot:
        at = self._clock.now()
        facts = {"why": why, "at": at.isoformat(), "task": record.task, "left_out": list(left_out)}
        message = f"Snapshot of {record.task}: {why}\n\n{_MARK}{json.dumps(facts)}\n"
        words = [word for parent in parents for word in ("-p", parent)]
        date = f"{int(at.timestamp())} +0000"
        made = await self._git.run(
            "commit-tree", *words, tree, git_dir=record.git_dir, stdin=message.encode(),
            env={"GIT_AUTHOR_DATE": date, "GIT_COMMITTER_DATE": date},
        )  # fmt: skip
        commit = made.stdout.decode().strip()
        ref = f"{_folder(record)}/{_number(before[-1]) + 1 if before else 1}"
        await self._git.move_ref(ref, commit, no_object(commit), record.git_dir, "podium: snapshot")
        return Snapshot(ref=ref, commit=commit, why=why, at=at, left_out=tuple(left_out))


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
    ref, _, rest = entry.partition(" ")
    commit, _, message = rest.partition(" ")
    if not commit:
        return None
    facts: dict[str, object] = {}
    try:
        facts = json.loads(message.rsplit(_MARK, 1)[-1])
        at = datetime.fromisoformat(str(facts["at"]))
        left_out = tuple(str(each) for each in facts["left_out"])  # type: ignore[attr-defined] # checked by the except
    except (ValueError, KeyError, TypeError):
        return Snapshot(ref=ref, commit=commit, why="not known", at=datetime.fromtimestamp(0, UTC))
    return Snapshot(ref=ref, commit=commit, why=str(facts.get("why", "")), at=at, left_out=left_out)

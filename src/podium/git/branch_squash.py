"""Puts a delivered branch together as one or two commits, without the documents of the run. The whole history stays on a ref."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from podium.core.errors import NotPossibleNow
from podium.core.workspaces import (
    RUN_REFS,
    ChangedPath,
    SquashedBranch,
    SquashSpec,
    WorkspaceCommit,
    WorkspaceRecord,
)
from podium.git.delivery import Deliveries
from podium.git.git_command import Git
from podium.git.own_commits import message_with
from podium.git.records import WorkspaceRecords, merged_bases
from podium.git.supervisor_repo import SupervisorRepo
from podium.git.worktree_files import remove_empty_folders, remove_file
from podium.git.worktree_status import TRAILERS_FORM, tip_to_work_on, trailers_of

SquashMessage = Callable[[Sequence[WorkspaceCommit]], str]
"""Makes the text of the commit from those that it stands for."""

_FORM = f"%m%x00%T%x00%an%x00%ae%x00%ad%x00%H%x00%P%x00%s%x00{TRAILERS_FORM}"
_FIELDS = 9
_SHORT = 12
_MAX_BYTES = 50_000_000
_PODIUM = "Podium <podium@localhost>"
_RUN = "Podium-Run"


class _Row(NamedTuple):
    """A commit of the history, or one of those that it begins from."""

    is_boundary: bool
    tree: str
    author: str
    date: str
    commit: WorkspaceCommit


class _Entry(NamedTuple):
    """A path in which the history differs from what it begins from."""

    old_mode: str
    new_mode: str
    old: str
    new: str


class BranchSquash:
    """Replaces a workspace's branch in the user's repository, where everything was judged already.

    The branch and the ref of its history move in one transaction. Killed before that, nothing happened; killed after
    it, the run goes back to the history and makes the same commits again: their dates are those of the history.
    """

    def __init__(
        self,
        git: Git,
        records: WorkspaceRecords,
        supervisor_repo: SupervisorRepo,
        record: WorkspaceRecord,
    ) -> None:
        self._git = git
        self._records = records
        self._supervisor_repo = supervisor_repo
        self._record = record
        self._worktree = Path(record.path)

    async def squash(self, spec: SquashSpec, message: SquashMessage) -> SquashedBranch:
        """Hold the workspace's lock. Raises `NotPossibleNow` when not all commits of the workspace were delivered."""
        deliveries = Deliveries(self._git, self._records)
        async with self._records.repository_lock(self._record.git_dir):
            history = await asyncio.to_thread(tip_to_work_on, self._record)
            if history != self._records.delivered(self._record):
                raise NotPossibleNow(
                    f"the workspace has commits that were not delivered; run `podium workspaces deliver {self._record.task}`"
                )
            rows = await self._rows(history, spec)
            replaced = [row.commit for row in rows if not row.is_boundary]
            if not replaced:
                return SquashedBranch(head=history, history=history)
            parents = await self._parents(rows, spec)
            entries, files = await self._changes(parents[0], history)
            ref = f"{RUN_REFS}{spec.run_id}/{history[:_SHORT]}"
            made: list[WorkspaceCommit] = []
            if set(entries) - set(spec.left_out) or len(parents) > 1 or not spec.known:
                stream, subjects = _stream(spec, ref, rows, replaced, parents, entries, message)
                made = await self._imported(stream, subjects)
            # Only documents are new since the last delivery: a commit would be empty.
            head = made[-1].id if made else parents[0]
            await deliveries.replace(self._record, history, head, {f"{ref}/history": history})
        await self._follow(head, [path for path in spec.left_out if path in entries], entries)
        return SquashedBranch(
            head=head,
            history=history,
            history_ref=f"{ref}/history",
            commits=tuple(made),
            replaced=tuple(replaced),
            files=tuple(file for file in files if file.path not in spec.left_out),
        )

    async def _rows(self, history: str, spec: SquashSpec) -> list[_Row]:
        """The commits that the new ones stand for, oldest first, with those that they begin from."""
        # What was merged from the remote stays as it is, too.
        fetched = await asyncio.to_thread(merged_bases, self._record)
        ended = await self._git.run(
            "log", "-z", "--reverse", "--topo-order", "--boundary", "--no-show-signature", "--date=raw",
            f"--format=tformat:{_FORM}", history, "--not", *spec.onto, *spec.known, *fetched, "--",
            git_dir=self._record.git_dir, output_bytes=_MAX_BYTES,
        )  # fmt: skip
        fields = ended.stdout.decode(errors="replace").split("\0")
        return [
            _row(fields[at : at + _FIELDS]) for at in range(0, len(fields) - _FIELDS + 1, _FIELDS)
        ]

    async def _parents(self, rows: Sequence[_Row], spec: SquashSpec) -> list[str]:
        """The newest of the commits that the history begins from: the base, or what was delivered before."""
        starts = [row.commit.id for row in rows if row.is_boundary]
        starts = [commit for commit in starts if commit not in spec.known] or [self._record.base]
        if len(starts) > 1:
            listed = await self._git.text(
                "merge-base", "--independent", *starts, git_dir=self._record.git_dir
            )
            starts = listed.split()
        order = {commit: number for number, commit in enumerate(spec.onto)}
        return sorted(starts, key=lambda commit: order.get(commit, len(order)))

    async def _changes(
        self, base: str, history: str
    ) -> tuple[dict[str, _Entry], list[ChangedPath]]:
        ended = await self._git.run(
            "diff-tree", "-r", "-z", "--raw", "--numstat", "--full-index", "--no-renames", "--no-ext-diff",
            "--no-textconv", base, history,
            git_dir=self._record.git_dir, output_bytes=_MAX_BYTES,
        )  # fmt: skip
        entries: dict[str, _Entry] = {}
        files: list[ChangedPath] = []
        fields = iter(ended.stdout.decode(errors="surrogateescape").split("\0"))
        for field in fields:
            if field.startswith(":"):
                old_mode, new_mode, old, new, _ = field[1:].split(" ")
                entries[next(fields)] = _Entry(old_mode, new_mode, old, new)
            elif field:
                added, removed, path = field.split("\t", 2)
                files.append(_changed(path, added, removed))
        return entries, files

    async def _imported(self, stream: bytes, subjects: Sequence[str]) -> list[WorkspaceCommit]:
        ended = await self._git.run(
            "fast-import", "--quiet", "--force", git_dir=self._record.git_dir, stdin=stream
        )
        ids = ended.stdout.decode().split()
        return [
            WorkspaceCommit(id=commit, subject=subject)
            for commit, subject in zip(ids, subjects, strict=True)
        ]

    async def _follow(
        self, head: str, left_out: Sequence[str], entries: Mapping[str, _Entry]
    ) -> None:
        """Let the workspace stand at the new commit, without the files that it does not have."""
        await self._supervisor_repo.stand_at(head)
        restored = [path for path in left_out if _exists(entries[path].old_mode)]
        gone = [path for path in left_out if path not in restored]
        await asyncio.to_thread(self._remove, gone)
        if restored:
            names = b"".join(os.fsencode(path) + b"\0" for path in restored)
            await self._supervisor_repo.run(
                "checkout-index", "--force", "--index", "-z", "--stdin", stdin=names
            )
        await asyncio.to_thread(self._supervisor_repo.publish, head)

    def _remove(self, paths: Sequence[str]) -> None:
        for path in paths:
            remove_file(self._worktree, path)
            remove_empty_folders(self._worktree, path)


def _row(fields: Sequence[str]) -> _Row:
    mark, tree, name, email, date, commit, parents, subject, trailers = fields
    return _Row(
        is_boundary=mark == "-",
        tree=tree,
        author=f"{_identity(name)} <{_identity(email)}>",
        date=date,
        commit=WorkspaceCommit(
            id=commit,
            subject=subject,
            parents=tuple(parents.split()),
            trailers=trailers_of(trailers),
        ),
    )


def _identity(text: str) -> str:
    return "".join(sign for sign in text if sign.isprintable() and sign not in "<>").strip()


def _changed(path: str, added: str, removed: str) -> ChangedPath:
    if added == "-":
        return ChangedPath(path=_readable(path))
    return ChangedPath(path=_readable(path), added=int(added), removed=int(removed))


def _readable(path: str) -> str:
    return path.encode(errors="surrogateescape").decode(errors="replace")


def _exists(mode: str) -> bool:
    return bool(mode.strip("0"))


def _stream(
    spec: SquashSpec,
    ref: str,
    rows: Sequence[_Row],
    replaced: Sequence[WorkspaceCommit],
    parents: Sequence[str],
    entries: Mapping[str, _Entry],
    message: SquashMessage,
) -> tuple[bytes, list[str]]:
    """Input of `git fast-import`, and the subjects of the commits in it."""
    tip = next(row for row in reversed(rows) if not row.is_boundary)
    lists = [path for path in spec.lists if path in entries]
    if lists:
        lists += [path for path in spec.with_lists if path in entries]
    others = set(entries) - set(lists) - set(spec.left_out)
    trailers = {_RUN: spec.run_id, "Podium-History": tip.commit.id}
    # By whoever wrote the code: the last one that is not Podium itself.
    writers = [
        row.author for row in rows if not row.is_boundary and _RUN not in row.commit.trailers
    ]
    author = writers[-1] if writers else _PODIUM
    commits: list[bytes] = []
    subjects: list[str] = []

    def add(text: str, who: str, changes: Sequence[bytes], *, first: bool) -> None:
        above = [f"from {parents[0]}", *(f"merge {other}" for other in parents[1:])]
        content = text.encode(errors="replace")
        head = [
            f"commit {ref}/delivered",
            f"mark :{len(commits) + 1}",
            f"author {who} {tip.date}",
            f"committer {_PODIUM} {tip.date}",
            f"data {len(content)}",
        ]
        lines = [*(line.encode(errors="replace") for line in head), content]
        lines += [line.encode() for line in above] if first else []
        commits.append(b"\n".join([*lines, *changes]) + b"\n")
        subjects.append(text.partition("\n")[0])

    whole = f"M 040000 {tip.tree} ".encode()
    back = [_put_back(path, entries[path]) for path in spec.left_out if path in entries]
    if others or not lists:
        without = [_put_back(path, entries[path]) for path in lists]
        add(message_with(message(replaced), trailers), author, [whole, *back, *without], first=True)
    if lists:
        text = message_with(spec.lists_message, trailers)
        add(text, _PODIUM, [whole, *back], first=not commits)
    marks = "".join(f"get-mark :{number}\n" for number in range(1, len(commits) + 1)).encode()
    return b"feature done\n" + b"\n".join(commits) + b"\n" + marks + b"done\n", subjects


def _put_back(path: str, entry: _Entry) -> bytes:
    quoted = os.fsencode(path).replace(b"\\", b"\\\\").replace(b'"', b'\\"').replace(b"\n", b"\\n")
    if not _exists(entry.old_mode):
        return b'D "%s"' % quoted
    return b'M %s %s "%s"' % (entry.old_mode.encode(), entry.old.encode(), quoted)

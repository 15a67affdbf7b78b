"""Delivery of an agent's commits: as bytes, through the import gate, by moving one ref."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from podium.core.errors import GuardedFilesChanged, ImportRefused, NotPossibleNow
from podium.core.processes import Confinement
from podium.core.workspaces import RUN_REFS, Delivery, GuardedChange, WorkspaceRecord
from podium.git.commit_changes import MAX_PACK_BYTES, CommitHistory, quarantined, read_bundle
from podium.git.commit_scan import Find, refuse_secrets
from podium.git.git_command import OWN_REFS, Git, GitFailed, clear_stale_lock, no_object
from podium.git.guarded_changes import Guarded, GuardedReview, named_by_settings, none_more
from podium.git.import_gate import ImportGate
from podium.git.private_dir import make_borrower, mend_private_dir, read_head, read_ref
from podium.git.records import RemovedWorkspaces, WorkspaceRecords, merged_bases
from podium.git.worktree_objects import ObjectKeeper
from podium.platform.atomic_write import atomic_write

_MAX_OUTPUT_BYTES = 200_000_000
_INTENT = "delivering"
"""File with the commit that the branch is about to move to, so that a killed delivery is recognised."""


class JudgedCommits(NamedTuple):
    """Commits that the import gate lets through."""

    commits: tuple[str, ...]
    paths: tuple[str, ...]
    lookalikes: tuple[str, ...]
    guarded: GuardedChange | None
    """Changes of guarded files that a person has to approve first."""


class Deliveries:
    """Takes commits out of workspaces."""

    def __init__(self, git: Git, records: WorkspaceRecords, guarded: Guarded = none_more) -> None:
        """`guarded` gives further guarded paths of a checkout, from its top on."""
        self._git = git
        self._records = records
        self._guarded = guarded

    async def deliver(
        self,
        record: WorkspaceRecord,
        confinement: Confinement | None,
        secrets_in: Find,
        approved: str = "",
    ) -> Delivery:
        """Without a confinement, nothing of the private directory but its objects is used.

        `secrets_in` names the secrets that a text holds: commits with any stay out. `approved` is the digest
        of the one change of guarded files that may come back.
        """
        await asyncio.to_thread(mend_private_dir, record)
        async with self._records.repository_lock(record.git_dir):
            # One look at all of them: each git is a process of its own.
            refs = await self._refs(record)
            before = await self._expected(record, refs.get(record.branch, ""))
            tip = _tip(record)
            if tip == before:
                return Delivery(branch=record.branch, before=before, after=before)
            content = await self._bundled(record, before, tip, confinement)
            users = await self._users_own(record, refs)
            return await self._brought_in(record, before, tip, content, users, secrets_in, approved)

    async def delivered(self, record: WorkspaceRecord) -> str:
        """The commit that came back last, also when Podium was killed before it noted that."""
        intent = _intent(record)
        if intent and await self._git.resolve(record.branch, record.git_dir) == intent:
            return intent
        return self._records.delivered(record)

    async def put_at(self, record: WorkspaceRecord, commit: str, current: str) -> None:
        """Move the user's branch from where it is (empty: it is gone) to a commit of his repository.

        Hold the repository's lock. Raises `NotPossibleNow` when somebody moved it meanwhile.
        """
        if current != commit:
            atomic_write(Path(record.private, _INTENT), commit.encode())
            await self._moved(record, current or no_object(commit), commit)
        await self._settle(record, commit)

    async def replace(
        self, record: WorkspaceRecord, old: str, new: str, others: Mapping[str, str]
    ) -> None:
        """Move the user's branch to a commit that stands for the old one, and other refs with it: all or none.

        Hold the repository's lock. Raises `NotPossibleNow` when somebody moved the branch meanwhile.
        """
        atomic_write(Path(record.private, _INTENT), new.encode())
        await clear_stale_lock(record.git_dir, record.branch)
        moves = [*(f"update {ref} {commit}" for ref, commit in others.items())]
        lines = ["start", *moves, f"update {record.branch} {new} {old}", "prepare", "commit", ""]
        try:
            await self._git.run(
                "update-ref", "--stdin", "-m", f"podium: delivered from {record.id}",
                git_dir=record.git_dir, stdin="\n".join(lines).encode(),
            )  # fmt: skip
        except GitFailed as failed:
            raise NotPossibleNow(
                f"{record.branch!r} could not be moved: {failed.stderr[-300:]}; try again"
            ) from failed
        await self._settle(record, new)

    async def _refs(self, record: WorkspaceRecord) -> dict[str, str]:
        """Commits of the user's branches, and of what Podium keeps, by their refs."""
        rows = await self._git.text(
            "for-each-ref", "--format=%(refname) %(objectname)", "refs/heads", OWN_REFS,
            git_dir=record.git_dir,
        )  # fmt: skip
        return dict(row.split(" ", 1) for row in rows.splitlines())

    async def _expected(self, record: WorkspaceRecord, current: str) -> str:
        """Return the tip of the user's branch. Raises `NotPossibleNow` when somebody else moved it."""
        delivered = self._records.delivered(record)
        if current == delivered:
            return delivered
        if current and current == _intent(record):
            await self._settle(record, current)
            return current
        raise NotPossibleNow(
            f"{record.branch.removeprefix('refs/heads/')!r} was at {delivered[:12]} and is "
            f"{f'at {current[:12]}' if current else 'gone'} now: someone else moved it; save its present commit "
            f"under another name, then run `git update-ref {record.branch} {delivered}`"
        )

    async def _bundled(
        self, record: WorkspaceRecord, before: str, tip: str, confinement: Confinement | None
    ) -> bytes:
        try:
            if confinement is None:
                return await self._bundled_apart(record, before, tip)
            ended = await self._git.run(
                *_bundle(before, record.branch),
                cwd=record.path,
                confinement=confinement,
                env={"HOME": str(Path(record.private, "home"))},
                output_bytes=MAX_PACK_BYTES,
            )
        except GitFailed as failed:
            raise _not_bundled(record, failed) from failed
        return ended.stdout

    async def _bundled_apart(self, record: WorkspaceRecord, before: str, tip: str) -> bytes:
        """The agent may have written settings: a fresh git directory that only borrows its objects."""
        with tempfile.TemporaryDirectory(prefix="podium-", dir=record.private) as folder:
            await asyncio.to_thread(make_borrower, Path(folder), record, tip)
            ended = await self._git.run(
                *_bundle(before, record.branch), git_dir=folder, output_bytes=MAX_PACK_BYTES
            )
        return ended.stdout

    async def _brought_in(
        self,
        record: WorkspaceRecord,
        before: str,
        tip: str,
        content: bytes,
        users: Sequence[str],
        secrets_in: Find,
        approved: str,
    ) -> Delivery:
        bundle = read_bundle(content, record.branch)
        if bundle.tip != tip:
            raise ImportRefused("the branch moved during the delivery; finish your work first")
        async with quarantined(self._git, record.git_dir) as quarantine:
            await quarantine.take(bundle.pack)
            history = CommitHistory(self._git, record.git_dir, quarantine)
            commits = await history.new_commits(tip, [before, *users])
            await _refuse_rewritten(history, record, before, tip, commits)
            judged = await self._judged(
                history, record, record.branch, before, tip, commits, users, secrets_in
            )
            if judged.guarded is not None and judged.guarded.digest != approved:
                raise GuardedFilesChanged(judged.guarded)
            await quarantine.release()
        atomic_write(Path(record.private, _INTENT), tip.encode())
        await self._moved(record, before, tip)
        await self._settle(record, tip)
        return Delivery(
            branch=record.branch, before=before, after=tip, commits=judged.commits, paths=judged.paths,
            lookalikes=judged.lookalikes,
        )  # fmt: skip

    async def judge(
        self,
        history: CommitHistory,
        record: WorkspaceRecord,
        branch: str,
        before: str,
        tip: str,
        secrets_in: Find,
    ) -> JudgedCommits:
        """Judge what a branch would hold at `tip` beside what came back `before` and what is the user's own.

        Raises `ImportRefused`. Guarded files that are changed are given: another word than a refusal may be due.
        """
        users = await self._users_own(record, await self._refs(record))
        commits = await history.new_commits(tip, [before, *users])
        return await self._judged(history, record, branch, before, tip, commits, users, secrets_in)

    async def _judged(
        self,
        history: CommitHistory,
        record: WorkspaceRecord,
        branch: str,
        before: str,
        tip: str,
        commits: dict[str, list[str]],
        users: Sequence[str],
        secrets_in: Find,
    ) -> JudgedCommits:
        forbidden = (*record.forbidden, *record.copied)
        merges = any(len(parents) > 1 for parents in commits.values())
        own = await history.parents(tip, users) if merges else commits
        paths = await ImportGate(history, forbidden).judge(record.base, tip, commits, own)
        lookalikes = await refuse_secrets(history, branch, commits, secrets_in, before)
        more = await asyncio.to_thread(self._guarded, record.repository)
        named = await named_by_settings(self._git, record)
        review = GuardedReview(history, record, [*named.hooks, *more], named.settings)
        guarded = await review.changes(tip, commits)
        return JudgedCommits(tuple(commits), tuple(paths), lookalikes, guarded)

    async def _users_own(self, record: WorkspaceRecord, refs: Mapping[str, str]) -> list[str]:
        """The base and the tips of the user's own branches: what they hold is his. Other workspaces' do not count.

        Nor do remotes', but for what Podium itself merged: anybody may have pushed what was fetched. Nor does a
        branch that a snapshot of any workspace was recovered to: nobody has judged what is on it.
        """
        held = [self._records.of(id_) for id_ in self._records.ids()]
        others = {other.branch for other in held if other is not None}
        # Histories of runs were judged when they were delivered.
        stored = [
            commit
            for name, commit in refs.items()
            if name.startswith(OWN_REFS) and not name.startswith(RUN_REFS)
        ]
        unjudged = await self._unjudged(record, stored) if stored else set()
        own = [
            commit
            for name, commit in refs.items()
            if not name.startswith(OWN_REFS) and name not in others and commit not in unjudged
        ]
        return [record.base, *own, *await asyncio.to_thread(merged_bases, record)]

    async def _unjudged(self, record: WorkspaceRecord, stored: Sequence[str]) -> set[str]:
        """Commits that snapshots and the like keep, but for what workspaces were made from or brought back."""
        judged: set[str] = set()
        for other in map(self._records.of, self._records.ids()):
            if other is not None and other.git_dir == record.git_dir:
                judged |= {other.base, self._records.delivered(other)}
        for memory in RemovedWorkspaces(self._records).listed():
            if memory.record.git_dir == record.git_dir:
                judged |= {memory.record.base, memory.delivered or memory.record.base}
        revisions = "".join(
            [*(f"{commit}\n" for commit in stored), *(f"^{commit}\n" for commit in judged)]
        )
        ended = await self._git.run(
            "rev-list", "--ignore-missing", "--stdin",
            git_dir=record.git_dir, stdin=revisions.encode(), output_bytes=_MAX_OUTPUT_BYTES,
        )  # fmt: skip
        return set(ended.stdout.decode().split())

    async def _moved(self, record: WorkspaceRecord, before: str, tip: str) -> None:
        await clear_stale_lock(record.git_dir, record.branch)
        try:
            await self._git.move_ref(
                record.branch, tip, before, record.git_dir, f"podium: delivered from {record.id}"
            )
        except GitFailed as failed:
            raise NotPossibleNow(
                f"{record.branch!r} could not be moved: {failed.stderr[-300:]}; try again"
            ) from failed

    async def _settle(self, record: WorkspaceRecord, tip: str) -> None:
        """Let the user's git see the branch's files as they are; the files themselves stay as they are."""
        self._records.note_delivered(record, tip)
        Path(record.private, _INTENT).unlink(missing_ok=True)  # noqa: ASYNC240 — one small file
        index = Path(record.git_dir, "worktrees", record.admin, "index")
        # The user's git may hold the index just now; it will see old entries until the next delivery.
        with suppress(GitFailed):
            await ObjectKeeper(self._git, record).write_index(tip, index)


async def _refuse_rewritten(
    history: CommitHistory,
    record: WorkspaceRecord,
    before: str,
    tip: str,
    new: dict[str, list[str]],
) -> None:
    # What came back before contains the base: it could not have come back else.
    builds_on_it = any(before in parents for parents in new.values())
    if not builds_on_it and not await history.is_ancestor(before, tip):
        raise _rewritten(record, before)


def _rewritten(record: WorkspaceRecord, old: str) -> ImportRefused:
    return ImportRefused(
        f"the history of {record.branch.removeprefix('refs/heads/')!r} was rewritten: it no longer contains {old[:12]}, which was already "
        f"delivered; go back with `git reset --soft {old[:12]}` and commit on top of it"
    )


def _tip(record: WorkspaceRecord) -> str:
    """Return the tip of the agent's branch, read as plain data."""
    private = Path(record.private, "git")
    head = read_head(private, record.admin)
    short = record.branch.removeprefix("refs/heads/")
    if head != record.branch:
        raise ImportRefused(
            f"{head[:100] or 'nothing'!r} is checked out instead of {short!r}, and only that branch can be "
            f"delivered; ask a person to set HEAD to {short!r}, then commit there"
        )
    tip = read_ref(private, record.branch)
    if len(tip) != len(record.base):
        raise ImportRefused(f"branch {short!r} no longer exists; create it again and commit there")
    return tip


def _intent(record: WorkspaceRecord) -> str:
    path = Path(record.private, _INTENT)
    return path.read_text("ascii").strip() if path.exists() else ""


def _bundle(before: str, branch: str) -> Sequence[str]:
    return ("bundle", "create", "--quiet", "-", f"^{before}", branch)


def _not_bundled(record: WorkspaceRecord, failed: GitFailed) -> ImportRefused:
    if "empty bundle" in failed.stderr:
        return _rewritten(record, "the newest commit")
    return ImportRefused(
        f"the commits cannot be exported from the workspace (at most {MAX_PACK_BYTES} bytes): {failed.stderr[-300:]}"
    )

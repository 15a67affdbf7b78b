"""Commits and merges that Podium itself makes in a workspace."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path

from podium.core.errors import BadInput, NotPossibleNow, WorkspaceTampered
from podium.core.processes import ProcessExit
from podium.core.workspaces import MergeResult, WorkspaceRecord
from podium.git.git_command import Git, GitFailed
from podium.git.layout import tidy
from podium.git.records import note_merged_base
from podium.git.supervisor_repo import SupervisorRepo
from podium.git.worktree_files import check_paths, clean_path, kind_of, move_file
from podium.git.worktree_status import changes_since, head_state_of, tip_to_work_on
from podium.ports.engine import Clock

_KEY = re.compile(r"[A-Za-z0-9][A-Za-z0-9-]*")
_NOT_IN_A_LINE = re.compile(r"[\x00-\x1f\x7f-\x9f]+")
_NOT_IN_A_TEXT = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f]+")


def message_with(message: str, trailers: Mapping[str, str]) -> str:
    """The whole text. Raises `BadInput` for an empty message, or a key that git does not take for one."""
    text = _NOT_IN_A_TEXT.sub(" ", message).strip()
    if not text:
        raise BadInput("the commit message is empty; describe the change in one line")
    for key in trailers:
        if not _KEY.fullmatch(key):
            raise BadInput(f"{key!r} is not a valid trailer key; use letters, digits and dashes")
    lines = [
        f"{key}: {_NOT_IN_A_LINE.sub(' ', value).strip()}\n" for key, value in trailers.items()
    ]
    return f"{text}\n" + (f"\n{''.join(lines)}" if lines else "")


def digest_of(trailers: Mapping[str, str]) -> str:
    """Digest that identifies a commit by its trailers; empty when there are none."""
    if not trailers:
        return ""
    return hashlib.sha256(json.dumps(sorted(trailers.items())).encode()).hexdigest()


_LITERAL = {"GIT_LITERAL_PATHSPECS": "1"}
_FROM_INPUT = ("--pathspec-from-file=-", "--pathspec-file-nul")
_REMOVE = (
    "rm", "-r", "--cached", "--force", "--quiet", "--ignore-unmatch", "--sparse", *_FROM_INPUT,
)  # fmt: skip
_ADD = ("update-index", "--add", "--replace", "-z", "--stdin")


class Committer:
    """Makes commits in the supervisor's repository and moves the workspace's branch to them.

    Killed before that, the branch is where it was, and the same is done again. What was made for which
    trailers is noted there: an agent could write a commit with the same ones.
    """

    def __init__(
        self, git: Git, supervisor_repo: SupervisorRepo, record: WorkspaceRecord, clock: Clock
    ) -> None:
        self._git = git
        self._supervisor_repo = supervisor_repo
        self._record = record
        self._clock = clock

    async def commit(
        self,
        message: str,
        paths: Sequence[str],
        moved: Mapping[str, str],
        trailers: Mapping[str, str],
    ) -> str:
        text = message_with(message, trailers)
        named = [*paths, *moved, *moved.values()]
        check_paths(named, self._record.forbidden)
        tip = await asyncio.to_thread(tip_to_work_on, self._record)
        what_for = digest_of(trailers)
        if what_for and await self._is_made(what_for, tip):
            return tip
        if not named:
            return tip
        for old, new in moved.items():
            await asyncio.to_thread(move_file, Path(self._record.path), old, new)
        await self._supervisor_repo.stand_at(tip)
        self._supervisor_repo.leave()
        added = await self._add(list(dict.fromkeys(clean_path(path) for path in named)))
        return await self._committed(tip, text, what_for, added)

    async def was_made(self, trailers: Mapping[str, str]) -> bool:
        """Check that the branch has a commit for these trailers."""
        tip = await asyncio.to_thread(tip_to_work_on, self._record)
        return await self._is_made(digest_of(trailers), tip)

    async def _is_made(self, what_for: str, tip: str) -> bool:
        made = self._supervisor_repo.made(what_for)
        if not made or made == tip:
            return bool(made)
        asked = await self._supervisor_repo.run(
            "merge-base", "--is-ancestor", made, tip, accept=(0, 1, 128)
        )
        return asked.exit_code == 0

    async def _add(self, paths: Sequence[str]) -> list[tuple[Sequence[str], bytes]]:
        """Let the index have these paths as they lie in the worktree. Gives what is left to be done for that."""
        files, folders, gone = await asyncio.to_thread(self._sorted_out, paths)
        if folders:
            # A repository that was planted in one of them would become a submodule.
            await tidy(self._git, self._record)
        for folder in folders:
            await self._add_folder(folder)
        left: list[tuple[Sequence[str], bytes]] = [(_REMOVE, _listed(gone))] if gone else []
        # Unlike `add`, it takes what is ignored: whoever names a file means it.
        return [*left, (_ADD, _listed(files))] if files else left

    async def _add_folder(self, folder: str) -> None:
        try:
            await self._supervisor_repo.run(
                "add", "--all", "--sparse", *_FROM_INPUT, stdin=_listed([folder]), env=_LITERAL
            )
        except GitFailed as failed:
            # Nothing in it that git would carry.
            if "did not match any files" not in failed.stderr and "ignored" not in failed.stderr:
                raise

    def _sorted_out(self, paths: Sequence[str]) -> tuple[list[str], list[str], list[str]]:
        kinds = {path: kind_of(Path(self._record.path), path) for path in paths}
        odd = [path for path, kind in kinds.items() if kind == "other"]
        if odd:
            raise WorkspaceTampered(
                f"{odd[0]!r} is a pipe, socket or device and cannot be committed; remove it"
            )
        files = [path for path, kind in kinds.items() if kind in ("file", "link")]
        folders = [path for path, kind in kinds.items() if kind == "folder"]
        return files, folders, [path for path, kind in kinds.items() if kind == "missing"]

    async def _committed(
        self, tip: str, text: str, what_for: str, added: Sequence[tuple[Sequence[str], bytes]]
    ) -> str:
        ended = await self._supervisor_repo.run(
            "commit", "--quiet", "--no-verify", "--no-gpg-sign", "--cleanup=verbatim", "--file=-",
            "--untracked-files=no",
            stdin=text.encode(errors="replace"), env={**_LITERAL, **dated(self._clock)}, cut=True, accept=(0, 1),
            after=added,
        )  # fmt: skip
        made = await asyncio.to_thread(self._supervisor_repo.head)
        if ended.exit_code == 1 and made == tip and not ended.stderr.strip():
            # The index is the tip's, or differs from it in what git takes for the same.
            return tip
        if made == tip:
            raise NotPossibleNow(
                f"the commit failed: {ended.stderr.decode(errors='replace')[-300:]}; try again"
            )
        if what_for:
            self._supervisor_repo.note_made(what_for, made)
        await asyncio.to_thread(self._supervisor_repo.publish, made)
        return made


def dated(clock: Clock) -> dict[str, str]:
    """Variables that date a commit by Podium's clock."""
    now = f"{int(clock.now().timestamp())} +0000"
    return {"GIT_AUTHOR_DATE": now, "GIT_COMMITTER_DATE": now}


def _listed(paths: Sequence[str]) -> bytes:
    return b"".join(os.fsencode(path) + b"\0" for path in paths)


_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_MAX_OUTPUT_CHARACTERS = 5000


class Merger:
    """Merges in the supervisor's repository, then hands the result to the agent's git directory.

    What is about to be merged is noted first. Killed in between and asked again, the worktree is put back,
    unless git was done: it writes its own notes last.
    """

    def __init__(
        self,
        git: Git,
        supervisor_repo: SupervisorRepo,
        record: WorkspaceRecord,
        clock: Clock,
        put_back: Callable[[str], Awaitable[object]],
    ) -> None:
        """`put_back` makes branch and worktree what a commit has."""
        self._git = git
        self._supervisor_repo = supervisor_repo
        self._record = record
        self._clock = clock
        self._put_back = put_back

    async def merge(
        self, other: str, message: str, trailers: Mapping[str, str], *, trusted: bool = False
    ) -> MergeResult:
        text = message_with(message, trailers)
        commit = await self._commit_named(other)
        if trusted:
            await asyncio.to_thread(note_merged_base, self._record, commit)
        state = await asyncio.to_thread(head_state_of, self._record)
        if state.on_branch and state.merging_with == commit:
            return await self._still_open(commit)
        tip = await asyncio.to_thread(tip_to_work_on, self._record)
        if await self._contains(tip, commit):
            return MergeResult(
                other=commit, commit=tip, up_to_date=True, told="Already up to date."
            )
        if self._supervisor_repo.noted_merge() == f"{tip} {commit}":
            if self._supervisor_repo.is_away() and self._supervisor_repo.head() != tip:
                return await self._clean(commit, "")
            if self._supervisor_repo.is_away() and self._supervisor_repo.merge_head() == commit:
                return await self._in_conflict(commit, text, "")
            await self._put_back(tip)
        return await self._merged(tip, commit, text)

    async def _commit_named(self, other: str) -> str:
        commit = (
            await self._git.resolve(f"{other}^{{commit}}", self._record.git_dir) if other else ""
        )
        if not commit:
            raise BadInput(
                f"the repository has no commit {other[:200]!r} to merge; see `git branch --all`"
            )
        return commit

    async def _contains(self, tip: str, commit: str) -> bool:
        asked = await self._supervisor_repo.run(
            "merge-base", "--is-ancestor", commit, tip, accept=(0, 1)
        )
        return asked.exit_code == 0

    async def _merged(self, tip: str, other: str, text: str) -> MergeResult:
        changes = await changes_since(self._supervisor_repo, self._record, tip)
        if changes.paths:
            raise NotPossibleNow(
                f"{changes.paths[0]!r} is not committed, so nothing can be merged; commit or discard the changes in the worktree first"
            )
        self._supervisor_repo.note_merge(f"{tip} {other}")
        self._supervisor_repo.leave()
        file = self._supervisor_repo.folder / "message"  # `merge` takes none from its input
        await asyncio.to_thread(file.write_bytes, text.encode(errors="replace"))
        ended = await self._supervisor_repo.run(
            "merge", "--no-ff", "--no-edit", "--no-verify", "--no-gpg-sign", "--no-stat", "--no-progress",
            "--no-autostash", "--no-rerere-autoupdate", "--cleanup=verbatim", f"--file={file}", other,
            env=dated(self._clock), cut=True,
            accept=(0, 1, 2, 128),
        )  # fmt: skip
        if self._supervisor_repo.head() != tip:
            return await self._clean(other, _output_of(ended))
        if self._supervisor_repo.merge_head() == other:
            return await self._in_conflict(other, text, _output_of(ended))
        raise await self._failed(tip, other, _output_of(ended))

    async def _clean(self, other: str, output: str) -> MergeResult:
        commit = self._supervisor_repo.head()
        await asyncio.to_thread(self._supervisor_repo.publish, commit)
        self._supervisor_repo.forget_merge()
        return MergeResult(other=other, commit=commit, told=output)

    async def _in_conflict(self, other: str, text: str, output: str) -> MergeResult:
        conflicts = await self._unmerged({})
        # Last the one by which git knows that a merge is open.
        notes = {"MERGE_MSG": text, "MERGE_MODE": "no-ff", "MERGE_HEAD": f"{other}\n"}
        await asyncio.to_thread(self._supervisor_repo.hand_over, notes)
        self._supervisor_repo.forget_merge()
        return MergeResult(other=other, conflicts=conflicts, told=output)

    async def _still_open(self, other: str) -> MergeResult:
        env = await asyncio.to_thread(self._supervisor_repo.agents_index)
        conflicts = await self._unmerged(env)
        output = (
            "the merge has conflicts"
            if conflicts
            else "all conflicts are resolved, but the merge is not committed yet"
        )
        return MergeResult(other=other, conflicts=conflicts, told=output)

    async def _unmerged(self, env: Mapping[str, str]) -> tuple[str, ...]:
        ended = await self._supervisor_repo.run("ls-files", "--unmerged", "-z", env=env)
        rows = ended.stdout.decode(errors="surrogateescape").split("\0")
        return tuple(dict.fromkeys(row.partition("\t")[2] for row in rows if row))

    async def _failed(self, tip: str, other: str, output: str) -> NotPossibleNow:
        changes = await changes_since(self._supervisor_repo, self._record, tip)
        if not changes.paths:
            self._supervisor_repo.forget_merge()
        return NotPossibleNow(f"{other[:12]} cannot be merged: {output[-500:] or 'no output'}")


def _output_of(ended: ProcessExit) -> str:
    text = (ended.stdout + b"\n" + ended.stderr).decode(errors="replace")
    return _CONTROL.sub("", text).strip()[:_MAX_OUTPUT_CHARACTERS]

"""Commits that Podium itself makes in a workspace: some paths, as they lie in the worktree, and no others."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from podium.domain.errors import NotPossibleNow, WorkspaceTampered
from podium.domain.workspaces import WorkspaceRecord
from podium.ports.clock import Clock
from podium.workspaces.git.desk import Desk
from podium.workspaces.git.documents import check_paths, clean_path, kind_of, move_file
from podium.workspaces.git.git import Git, GitFailed
from podium.workspaces.git.messages import digest_of, message_with
from podium.workspaces.git.standing import tip_to_work_on
from podium.workspaces.git.tidying import tidy

_LITERAL = {"GIT_LITERAL_PATHSPECS": "1"}
_FROM_INPUT = ("--pathspec-from-file=-", "--pathspec-file-nul")
_REMOVE = (
    "rm", "-r", "--cached", "--force", "--quiet", "--ignore-unmatch", "--sparse", *_FROM_INPUT,
)  # fmt: skip
_ADD = ("update-index", "--add", "--replace", "-z", "--stdin")


class Committing:
    """Makes commits at the desk and moves the workspace's branch to them.

    Killed before that, the branch is where it was, and the same is done again. What was made for which
    trailers is noted at the desk: an agent could write a commit with the same ones.
    """

    def __init__(self, git: Git, desk: Desk, record: WorkspaceRecord, clock: Clock) -> None:
        self._git = git
        self._desk = desk
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
        await self._desk.stand_at(tip)
        self._desk.leave()
        added = await self._add(list(dict.fromkeys(clean_path(path) for path in named)))
        return await self._committed(tip, text, what_for, added)

    async def was_made(self, trailers: Mapping[str, str]) -> bool:
        """Whether there is a commit for these on the branch."""
        tip = await asyncio.to_thread(tip_to_work_on, self._record)
        return await self._is_made(digest_of(trailers), tip)

    async def _is_made(self, what_for: str, tip: str) -> bool:
        made = self._desk.made(what_for)
        if not made or made == tip:
            return bool(made)
        asked = await self._desk.run("merge-base", "--is-ancestor", made, tip, accept=(0, 1, 128))
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
            await self._desk.run(
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
                f"{odd[0]!r} is a pipe, socket or device, which no commit can hold; remove it"
            )
        files = [path for path, kind in kinds.items() if kind in ("file", "link")]
        folders = [path for path, kind in kinds.items() if kind == "folder"]
        return files, folders, [path for path, kind in kinds.items() if kind == "missing"]

    async def _committed(
        self, tip: str, text: str, what_for: str, added: Sequence[tuple[Sequence[str], bytes]]
    ) -> str:
        ended = await self._desk.run(
            "commit", "--quiet", "--no-verify", "--no-gpg-sign", "--cleanup=verbatim", "--file=-",
            "--untracked-files=no",
            stdin=text.encode(errors="replace"), env={**_LITERAL, **dated(self._clock)}, cut=True, accept=(0, 1),
            after=added,
        )  # fmt: skip
        made = await asyncio.to_thread(self._desk.head)
        if ended.exit_code == 1 and made == tip and not ended.stderr.strip():
            # The index is the tip's, or differs from it in what git takes for the same.
            return tip
        if made == tip:
            raise NotPossibleNow(
                f"the commit was not made: {ended.stderr.decode(errors='replace')[-300:]}; try again"
            )
        if what_for:
            self._desk.note_made(what_for, made)
        await asyncio.to_thread(self._desk.publish, made)
        return made


def dated(clock: Clock) -> dict[str, str]:
    """Variables that date a commit by Podium's clock."""
    now = f"{int(clock.now().timestamp())} +0000"
    return {"GIT_AUTHOR_DATE": now, "GIT_COMMITTER_DATE": now}


def _listed(paths: Sequence[str]) -> bytes:
    return b"".join(os.fsencode(path) + b"\0" for path in paths)

"""Keeping what was moved out of a worktree: repositories that were planted there may hold work too."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

from podium.domain.workspaces import WorkspaceRecord
from podium.workspaces.git.git import Git, GitFailed
from podium.workspaces.git.hygiene import QUARANTINE, too_deep_for_paths
from podium.workspaces.git.keeper import Keeper
from podium.workspaces.git.pipes import remove_pipes
from podium.workspaces.git.walking import files_within

LARGEST_BYTES = 100_000_000
_LONG_AGO = "946684800 +0000"
"""The same content makes the same commit, whenever it is kept."""


async def kept_planted(
    git: Git, record: WorkspaceRecord, keeper: Keeper | None = None, objects: str = ""
) -> tuple[list[str], list[str]]:
    """A commit of all that was ever moved away, and what is too large or deep for that, in words.

    `keeper` and `objects` are for whoever only looks; otherwise it is put into the user's objects.
    """
    folder = Path(record.private, QUARANTINE)
    size, deep = await asyncio.to_thread(_looked_at, folder)
    if not size:
        return [], []
    words = f"repositories that were planted in the worktree, in {str(folder)!r}"
    if size > LARGEST_BYTES:
        return [], [f"{words}: {size} bytes"]
    left_out = [f"{words}: {name!r} lies too deep" for name in deep]
    try:
        tree, unread = await (keeper or Keeper(git, record)).tree_of(folder, deep)
    except GitFailed as failed:
        return [], [*left_out, f"{words}: {failed.stderr[-200:]}"]
    made = await git.run(
        "commit-tree", "-m", "What was planted in the worktree", tree,
        git_dir=record.git_dir,
        env={
            "GIT_AUTHOR_DATE": _LONG_AGO,
            "GIT_COMMITTER_DATE": _LONG_AGO,
            **({"GIT_OBJECT_DIRECTORY": objects} if objects else {}),
        },
    )  # fmt: skip
    return [made.stdout.decode().strip()], left_out + [f"{words}: {line}" for line in unread]


def _looked_at(folder: Path) -> tuple[int, list[str]]:
    """Bytes to be read, and the names beneath which something lies too deep. Pipes in it are removed."""
    if not folder.is_dir():
        return 0, []
    remove_pipes(folder)
    return sum(_size(entry) for entry in files_within(folder)), sorted(too_deep_for_paths(folder))


def _size(entry: os.DirEntry[str]) -> int:
    try:
        return entry.stat(follow_symlinks=False).st_size
    except OSError:
        return 0

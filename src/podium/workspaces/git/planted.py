"""Keeping what was moved out of a worktree: repositories that were planted there may hold work too."""

from __future__ import annotations

import asyncio
from pathlib import Path

from podium.domain.workspaces import WorkspaceRecord
from podium.workspaces.git.git import Git
from podium.workspaces.git.hygiene import QUARANTINE
from podium.workspaces.git.keeper import Keeper
from podium.workspaces.git.measuring import measure

LARGEST_BYTES = 100_000_000
_LONG_AGO = "946684800 +0000"
"""The same content makes the same commit, whenever it is kept."""


async def kept_planted(git: Git, record: WorkspaceRecord) -> tuple[list[str], list[str]]:
    """A commit of all that was ever moved away, and what is too large for that, in words."""
    folder = Path(record.private, QUARANTINE)
    size = await asyncio.to_thread(_size, folder)
    if not size:
        return [], []
    if size > LARGEST_BYTES:
        return [], [
            f"repositories that were planted in the worktree: {size} bytes, in {str(folder)!r}"
        ]
    tree = await Keeper(git, record).tree_of(folder)
    made = await git.run(
        "commit-tree", "-m", "What was planted in the worktree", tree,
        git_dir=record.git_dir,
        env={"GIT_AUTHOR_DATE": _LONG_AGO, "GIT_COMMITTER_DATE": _LONG_AGO},
    )  # fmt: skip
    return [made.stdout.decode().strip()], []


def _size(folder: Path) -> int:
    return measure(folder).bytes if folder.is_dir() else 0

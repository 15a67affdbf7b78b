"""What a set-up left in the worktree: as long as nobody changes it, it is no work."""

from __future__ import annotations

import asyncio
import tempfile
from contextlib import suppress
from pathlib import Path

from podium.domain.workspaces import WorkspaceRecord
from podium.workspaces.git.committable import committable_tree, make_scratch
from podium.workspaces.git.git import Git, GitFailed
from podium.workspaces.git.records import write_whole

SET_UP = "set-up"
_LARGEST_BYTES = 20_000_000


async def note_set_up(git: Git, record: WorkspaceRecord) -> None:
    """Remember every file that differs from the base. What cannot be read counts as work later on."""
    with suppress(GitFailed), tempfile.TemporaryDirectory(dir=record.private) as folder:
        scratch = Path(folder)
        await asyncio.to_thread(make_scratch, scratch, record)
        tree = await committable_tree(git, record, scratch, record.base, lenient=True)
        ended = await git.run(
            *RAW_DIFFERENCE, f"{record.base}^{{tree}}", tree,
            git_dir=record.git_dir, env={"GIT_OBJECT_DIRECTORY": str(scratch / "objects")},
        )  # fmt: skip
        if ended.stdout and len(ended.stdout) <= _LARGEST_BYTES:
            write_whole(Path(record.private, SET_UP), ended.stdout)


def left_by_set_up(record: WorkspaceRecord) -> dict[str, str]:
    """Mode and id of each file that differed from the base when the set-up was done, by path."""
    try:
        return differences(Path(record.private, SET_UP).read_bytes())
    except FileNotFoundError:
        return {}


RAW_DIFFERENCE = ("diff-tree", "-r", "-z", "--raw", "--no-abbrev", "--no-renames")
"""Words for git that make what `differences` reads; two trees are to follow."""


def differences(raw: bytes) -> dict[str, str]:
    """Mode and id, as the second tree has them, of each path in which two trees differ."""
    fields = raw.decode(errors="surrogateescape").split("\0")
    found = {}
    for facts, path in zip(fields[::2], fields[1::2], strict=False):
        _, mode, _, name, _ = facts.split(" ")
        found[path] = f"{mode} {name}"
    return found

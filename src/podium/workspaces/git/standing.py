"""How a worktree stands: what is checked out, what is not as committed, what was begun and not ended."""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from podium.domain.errors import NotPossibleNow, WorkspaceTampered
from podium.domain.workspaces import WorkspaceRecord, WorktreeState
from podium.workspaces.git.after_set_up import left_by_set_up
from podium.workspaces.git.desk import Desk
from podium.workspaces.git.documents import kind_of
from podium.workspaces.git.hygiene import same_as_blob
from podium.workspaces.git.private_refs import read_head, read_plain, read_ref

_BEGUN = (
    "MERGE_HEAD",
    "CHERRY_PICK_HEAD",
    "REVERT_HEAD",
    "BISECT_START",
    "rebase-merge",
    "rebase-apply",
    "sequencer",
)
_MOST_BYTES = 20_000_000
"""Of paths that are not as committed; whoever has more is told the first of them."""
_ID = re.compile(r"[0-9a-f]+")
_STATUS = (
    "status", "--porcelain=v2", "-z", "--untracked-files=all", "--no-renames", "--no-ahead-behind",
    "--ignore-submodules=dirty",
)  # fmt: skip


@dataclass(frozen=True)
class Standing:
    """What the private git directory says, read as the plain data it is."""

    head: str
    """Commit that is checked out; empty when that cannot be read."""
    tip: str
    """Of the workspace's branch; empty when there is none."""
    on_branch: bool
    begun: tuple[str, ...]
    merging_with: str
    """What is being merged in; empty when nothing is."""
    is_plain: bool
    """No link stands in place of a folder above the branch's file: git would write elsewhere."""

    @property
    def is_as_it_should_be(self) -> bool:
        return self.on_branch and bool(self.tip) and self.is_plain and not self.begun


def standing_of(record: WorkspaceRecord) -> Standing:
    git = Path(record.private, "git")
    own = git / "worktrees" / record.admin
    checked_out = read_head(git, record.admin)
    named = read_ref(git, checked_out) if checked_out.startswith("refs/") else checked_out
    merging = read_plain(own / "MERGE_HEAD", 5000).decode(errors="replace").split()
    return Standing(
        head=_id(named, record),
        tip=_id(read_ref(git, record.branch), record),
        on_branch=checked_out == record.branch,
        begun=tuple(name for name in _BEGUN if os.path.lexists(own / name)),
        merging_with=_id(merging[0] if merging else "", record),
        is_plain=_is_plain(git, record.branch),
    )


def _is_plain(git: Path, branch: str) -> bool:
    try:
        return kind_of(git, branch) in ("file", "missing")
    except (WorkspaceTampered, OSError):
        return False


def _id(text: str, record: WorkspaceRecord) -> str:
    fits = len(text) == len(record.base) and _ID.fullmatch(text) and text.strip("0")
    return text if fits else ""


def tip_to_work_on(record: WorkspaceRecord) -> str:
    """The branch's tip. Raises `NotPossibleNow` unless it is checked out and nothing is under way."""
    standing = standing_of(record)
    short = record.branch.removeprefix("refs/heads/")
    if not standing.on_branch or not standing.tip:
        raise NotPossibleNow(
            f"{short!r} is not checked out in the workspace any more; put the workspace back first"
        )
    if standing.begun:
        raise NotPossibleNow(
            f"something was begun in the workspace and not ended ({standing.begun[0]}); end it with a commit, "
            "or put the workspace back first"
        )
    return standing.tip


async def state_of(desk: Desk, record: WorkspaceRecord) -> WorktreeState:
    standing = await asyncio.to_thread(standing_of, record)
    found = await changes_since(desk, record, standing.head) if standing.head else None
    return WorktreeState(
        head=standing.head,
        on_branch=standing.on_branch and bool(standing.tip),
        changed=found.paths if found else (),
        merging="MERGE_HEAD" in standing.begun,
    )


@dataclass(frozen=True)
class Changes:
    """Paths that are not as in a commit, but for what the set-up left and nobody changed since."""

    tracked: tuple[str, ...]
    untracked: tuple[str, ...]

    @property
    def paths(self) -> tuple[str, ...]:
        return (*self.tracked, *self.untracked)


async def changes_since(desk: Desk, record: WorkspaceRecord, commit: str) -> Changes:
    """Of the worktree. Of very many, the first."""
    await desk.stand_at(commit)
    ended = await desk.run(*_STATUS, output_bytes=_MOST_BYTES, cut=True)
    whole = ended.stdout.rsplit(b"\0", 1)[0] if ended.stdout_dropped_bytes else ended.stdout
    rows = whole.decode(errors="surrogateescape").split("\0")
    tracked, untracked = _paths(rows, {"1": 8, "u": 10}), _paths(rows, {"?": 1})
    if not tracked and not untracked:
        return Changes((), ())
    left = set(await asyncio.to_thread(unchanged_set_up, record))
    return Changes(
        tuple(path for path in tracked if path not in left),
        tuple(path for path in untracked if path not in left),
    )


def _paths(rows: Iterable[str], words: Mapping[str, int]) -> list[str]:
    """Those of rows of these kinds, each with how many words stand before the path."""
    counted = [(row, words.get(row[:1])) for row in rows]
    return [row.split(" ", count)[count] for row, count in counted if count is not None]


def unchanged_set_up(record: WorkspaceRecord) -> list[str]:
    """Files that are still as the set-up left them."""
    left = left_by_set_up(record)
    return [path for path, entry in left.items() if _is_still(record, path, entry)]


def _is_still(record: WorkspaceRecord, path: str, entry: str) -> bool:
    mode, _, blob = entry.partition(" ")
    place = Path(record.path, path)
    if mode == "000000":
        return not os.path.lexists(place)
    return same_as_blob(place, blob)

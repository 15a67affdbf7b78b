"""Branches of different workspaces that cannot be merged with each other as they are."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Sequence
from pathlib import Path

from podium.domain.workspaces import Collision, WorkspaceRecord
from podium.workspaces.git.committable import make_scratch
from podium.workspaces.git.git import Git
from podium.workspaces.git.records import Records

_MOST_BYTES = 20_000_000


async def collisions_of(
    git: Git, records: Records, record: WorkspaceRecord, known: Sequence[WorkspaceRecord]
) -> list[Collision]:
    """Of what was delivered. Nothing is written into the user's repository, nor into a workspace.

    A git before 2.38 cannot try a merge without files: then there are none.
    """
    mine, found = records.delivered(record), []
    with tempfile.TemporaryDirectory(prefix="colliding-", dir=record.private) as folder:
        # Not the user's own directory: its settings may name programs that merge certain files.
        await asyncio.to_thread(make_scratch, Path(folder), record)
        others = await asyncio.to_thread(_others, records, record, known)
        theirs = [records.delivered(other) for other in others]
        answers = await _all_conflicts(git, folder, mine, theirs)
        for other, paths in zip(others, answers, strict=True):
            if paths:
                found.append(
                    Collision(branch=_short(record), other=_short(other), paths=tuple(paths))
                )
    return found


def _others(
    records: Records, record: WorkspaceRecord, known: Sequence[WorkspaceRecord]
) -> list[WorkspaceRecord]:
    """Other workspaces of the repository that brought something back."""
    return [
        each
        for each in known
        if each.id != record.id
        and each.git_dir == record.git_dir
        and records.delivered(each) != each.base
    ]


async def _all_conflicts(
    git: Git, scratch: str, mine: str, others: Sequence[str]
) -> list[list[str]]:
    """Paths in conflict with each of the others, asked of one process: there may be hundreds.

    What that one does not answer, because it is too old or one of the commits is gone, is asked singly.
    """
    if not others:
        return []
    wanted = "".join(f"{mine} {other}\n" for other in others).encode()
    ended = await git.run(
        "merge-tree", "--write-tree", "--name-only", "--no-messages", "--stdin",
        git_dir=scratch, stdin=wanted, output_bytes=_MOST_BYTES, cut=True,
        accept=(0, 1, 128, 129),
    )  # fmt: skip
    told = _told(ended.stdout.decode(errors="surrogateescape"))[: len(others)]
    rest = [await _conflicts(git, scratch, mine, other) for other in others[len(told) :]]
    return [*told, *rest]


def _told(output: str) -> list[list[str]]:
    """Of each merge that is answered whole: status, tree, names, an empty text; all ended by a NUL."""
    found: list[list[str]] = []
    *whole, _ = output.split("\0\0")
    for answer in whole:
        status, _, *paths = answer.split("\0")
        found.append(sorted(set(paths)) if status == "0" else [])
    return found


async def _conflicts(git: Git, scratch: str, mine: str, other: str) -> list[str]:
    """Paths in conflict; none too when git cannot say."""
    ended = await git.run(
        "merge-tree", "--write-tree", "--name-only", "--no-messages", "-z", mine, other,
        git_dir=scratch, output_bytes=_MOST_BYTES, cut=True, accept=(0, 1, 128, 129),
    )  # fmt: skip
    if ended.exit_code != 1:
        return []
    _, *paths = ended.stdout.decode(errors="surrogateescape").split("\0")
    return sorted({path for path in paths if path})


def _short(record: WorkspaceRecord) -> str:
    return record.branch.removeprefix("refs/heads/")

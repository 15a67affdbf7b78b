"""Files that are too large to be read into git objects, such as one that says it has terabytes and has none."""

from __future__ import annotations

import asyncio
import os
import stat
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path

from podium.domain.errors import NotPossibleNow
from podium.workspaces.git.adding import Run
from podium.workspaces.git.walking import files_within

LARGEST_IN_ALL_BYTES = 4_000_000_000
_LARGE_BYTES = 10_000_000
_MOST = 20_000
_MOST_TOLD = 5


async def too_large(run: Run, worktree: Path, head: str) -> dict[str, int]:
    """Sizes by path of what is left out, so that the rest is no more than may be read.

    What git ignores is not read anyway; nor, in all likelihood, what has the size that it has in the head.
    """
    found = await asyncio.to_thread(_large, worktree)
    if sum(found.values()) <= LARGEST_IN_ALL_BYTES:
        return {}
    names = b"".join(os.fsencode(path) + b"\0" for path in found)
    ignored = await run("check-ignore", "-z", "--stdin", stdin=names, accept=(0, 1))
    for name in ignored.split(b"\0"):
        found.pop(os.fsdecode(name), None)
    committed = await _sizes(run, head, list(found))
    total, left_out = 0, dict[str, int]()
    for path, size in sorted(found.items(), key=lambda each: each[1]):
        total += 0 if committed.get(path) == size else size
        if total > LARGEST_IN_ALL_BYTES and committed.get(path) != size:
            left_out[path] = size
    return left_out


def in_words(left_out: dict[str, int]) -> list[str]:
    told = [f"{path!r} has {size} bytes" for path, size in islice(left_out.items(), _MOST_TOLD)]
    more = len(left_out) - _MOST_TOLD
    return [*told, f"{more} more large files"] if more > 0 else told


async def _sizes(run: Run, head: str, paths: Sequence[str]) -> dict[str, int]:
    """As the head has them."""
    askable = [path for path in paths if "\n" not in path]
    names = b"".join(os.fsencode(f"{head}:{path}\n") for path in askable)
    answers = await run("cat-file", "--batch-check=%(objectsize)", stdin=names)
    rows = answers.decode(errors="replace").splitlines()
    return {path: int(row) for path, row in zip(askable, rows, strict=False) if row.isdecimal()}


def _large(worktree: Path) -> dict[str, int]:
    found = dict(islice(_sizes_of(worktree), _MOST + 1))
    if len(found) > _MOST:
        raise NotPossibleNow(
            f"there are more than {_MOST} large files in {str(worktree)!r}; delete what is not needed"
        )
    return found


def _sizes_of(worktree: Path) -> Iterator[tuple[str, int]]:
    skipped = len(os.fspath(worktree)) + 1
    for entry in files_within(worktree):
        try:
            about = entry.stat(follow_symlinks=False)
        except OSError:
            continue
        if about.st_size > _LARGE_BYTES and stat.S_ISREG(about.st_mode):
            yield entry.path[skipped:], about.st_size

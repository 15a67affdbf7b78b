"""Letting an index have everything in a worktree, whatever an agent left there.

`git add` asks each submodule in the index for changes by a git of its own, which obeys the settings of the
repository in that folder. So none is in the index meanwhile.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Protocol

_SUBMODULE = b"160000 "


class Run(Protocol):
    """Runs git on the index and the worktree; gives what it prints, or of a failed `add` what it complains of."""

    async def __call__(
        self, *words: str, stdin: bytes = b"", accept: tuple[int, ...] = (0,)
    ) -> bytes: ...


async def add_all(run: Run, options: Sequence[str], left_out: Sequence[str] = ()) -> bytes:
    """Add all but the paths that are left out. With `--ignore-errors`, what could not be read is given."""
    submodules = await _take_submodules_out(run)
    lenient = "--ignore-errors" in options
    said = await run(
        "add", "--all", *options, "--pathspec-from-file=-", "--pathspec-file-nul",
        stdin=_all_but(left_out), accept=(0, 1) if lenient else (0,),
    )  # fmt: skip
    await _put_submodules_back(run, submodules)
    return said if lenient else b""


def _all_but(paths: Sequence[str]) -> bytes:
    excluded = [b":(top,exclude,literal)" + os.fsencode(path) for path in paths]
    return b"".join(word + b"\0" for word in (b":/", *excluded))


async def _take_submodules_out(run: Run) -> dict[bytes, bytes]:
    """Gives their lines of the index by path."""
    rows = (await run("ls-files", "-z", "--stage")).split(b"\0")
    found = {row.split(b"\t", 1)[1]: row for row in rows if row.startswith(_SUBMODULE)}
    if found:
        # Its mode is what matters; the id is read and not used.
        gone = b"".join(
            b"0" + row[6:].split(b"\t")[0] + b"\t" + path + b"\0" for path, row in found.items()
        )
        await run("update-index", "-z", "--index-info", stdin=gone)
    return found


async def _put_submodules_back(run: Run, submodules: dict[bytes, bytes]) -> None:
    """Those in whose place nothing else was found."""
    if not submodules:
        return
    taken: set[bytes] = set()
    for path in (await run("ls-files", "-z")).split(b"\0"):
        parts = path.split(b"/")
        taken.update(b"/".join(parts[:count]) for count in range(1, len(parts) + 1))
    free = [row for path, row in submodules.items() if path not in taken]
    if free:
        await run("update-index", "-z", "--index-info", stdin=b"".join(r + b"\0" for r in free))

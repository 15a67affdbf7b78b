"""Files that git tracks, and files that it ignores: these come back in no commit, and must not decide how a commit is judged."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import PurePosixPath

from podium.workspaces.git.desk import Desk

_AT_ONCE = 200
_MOST_BYTES = 20_000_000
_LITERAL = {"GIT_LITERAL_PATHSPECS": "1"}


async def tracked_in(desk: Desk, patterns: Sequence[str]) -> list[str]:
    """Files in git's index that fit one of the pathspecs. None of them: all."""
    return await _listed(desk, "-z", "--", *patterns)


async def ignored_in(desk: Desk) -> list[str]:
    """Ignored files, and folders of which all is ignored; these end with `/`."""
    return await _listed(desk, "-z", "--others", "--ignored", "--exclude-standard", "--directory")


async def _listed(desk: Desk, *options: str) -> list[str]:
    ended = await desk.run("ls-files", *options, output_bytes=_MOST_BYTES, cut=True)
    names = ended.stdout.decode(errors="surrogateescape").split("\0")
    return [name for name in names if name]


async def clear_ignored_in(desk: Desk, keep: Sequence[str], kept_names: Sequence[str]) -> list[str]:
    """Remove them, but for the paths in `keep` and whatever lies in a folder with one of the names."""
    kept, names = set(keep), set(kept_names)
    found = await ignored_in(desk)
    gone = [
        path for path in found if path not in kept and names.isdisjoint(PurePosixPath(path).parts)
    ]
    for start in range(0, len(gone), _AT_ONCE):
        # Inside the fence, where a link leads nowhere; twice -f also takes planted repositories.
        some = gone[start : start + _AT_ONCE]
        await desk.run("clean", "-ffdxq", "--", *map(_text, some), env=_LITERAL, accept=(0, 1))
    return gone


def _text(path: str) -> str:
    return os.fsdecode(os.fsencode(path))

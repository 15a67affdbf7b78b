"""Object folders that a repository borrows from, however far that goes."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from podium.domain.errors import NotPossibleNow

_DEEPEST = 5
"""git follows no further either."""
_LARGEST_BYTES = 1_000_000


def alternates_of(objects: str) -> list[tuple[str, str]]:
    """Each folder as git names it and its real path, nearest first."""
    found: dict[str, str] = {}
    level = [objects]
    for _ in range(_DEEPEST):
        level = [path for folder in level for path in _named_in(folder) if path not in found]
        for path in level:
            found[path] = os.path.realpath(path)
    # A folder that is gone is git's own trouble, which it tells of by itself.
    return [(named, real) for named, real in found.items() if Path(real).is_dir()]


def _named_in(objects: str) -> list[str]:
    text = ""
    place = Path(objects, "info/alternates")
    with suppress(FileNotFoundError, NotADirectoryError), place.open("rb") as file:
        text = os.fsdecode(file.read(_LARGEST_BYTES))
    named = []
    for line in text.splitlines():
        if line.startswith('"'):
            raise NotPossibleNow(
                f"the repository borrows objects from {line}, whose path has odd characters; "
                "move that repository, or make this one whole with `git repack -a -d`"
            )
        if line and not line.startswith("#"):
            # git resolves links of the folder that borrows, then reads the path as text.
            named.append(os.path.normpath(Path(os.path.realpath(objects), line)))
    return named

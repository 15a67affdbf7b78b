"""The places of a folder that nobody may change, as they are there."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

from podium.domain.errors import NotPossibleNow
from podium.domain.protected_paths import protected_name

MOST_LOOKED_AT = 200_000
MOST_CLOSED = 500


def closed_places(root: Path, is_closed: Callable[[str], bool]) -> list[str]:
    """The outermost of them, from the root on. Ignore lists and links are not asked.

    Raises `NotPossibleNow` where there are more than can be looked at.
    """
    found: list[str] = []
    for path in _walk(root, is_closed):
        found.append(path)
        if len(found) > MOST_CLOSED:
            raise NotPossibleNow(
                f"more than {MOST_CLOSED} places here are closed to the agent, by the profile or as files of secrets; name "
                "the folders they are in, or work in a smaller folder with --root"
            )
    return sorted(found)


def is_memory(path: str) -> bool:
    """Whether it is of a kind that git, or Podium, takes its orders from."""
    return bool(protected_name(path.rpartition("/")[2]))


def _walk(root: Path, is_closed: Callable[[str], bool]) -> Iterator[str]:
    looked_at = 0
    for folder, folders, names in os.walk(root):
        place = os.path.relpath(folder, root)
        closed = {name for name in folders if is_memory(name)}
        for name in (*folders, *names):
            looked_at += 1
            if looked_at > MOST_LOOKED_AT:
                raise NotPossibleNow(
                    f"the folder holds more than {MOST_LOOKED_AT} files, too many to look for closed paths among; "
                    "work in a smaller one"
                )
            path = name if place == "." else f"{place}/{name}"
            if is_closed(path):
                closed.add(name)
                yield path
        folders[:] = [name for name in folders if name not in closed]

"""Resolves a path that an agent wrote to the real one that the gate judges."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from podium.domain.gating import PathArgument, PathUse
from podium.domain.model import Json

_LONGEST_PATH_BYTES = 4_096
_LONGEST_NAME_BYTES = 255


class PathUnusable(ValueError):
    """The text cannot be a path. The words say why."""


def path_uses(argument: PathArgument, value: Json, root: Path) -> Iterator[PathUse]:
    """One use for a text, one for each text of a list. None stands for a path that was not given."""
    if value is None:
        return
    for given in value if isinstance(value, list) else [value]:
        if not isinstance(given, str):
            raise PathUnusable(f"{given!r} is not a path; give it as text")
        yield PathUse(
            argument=argument.name,
            given=given,
            real=real_path(given, root),
            access=argument.access,
        )


def real_path(given: str, root: Path) -> str:
    """Absolute path with symlinks and `..` resolved, relative texts against `root`.

    What does not exist is its nearest real parent plus the rest.
    """
    _check_shape(given)
    place = real = os.path.realpath(root / given)
    # A loop of symlinks is left unresolved by realpath; what it would lead to cannot be judged.
    while (parent := os.path.dirname(place)) != place:  # noqa: PTH120
        if os.path.islink(place):  # noqa: PTH114 - a path object for each parent takes far longer
            name = os.path.basename(place)  # noqa: PTH119
            raise PathUnusable(f"{given!r} runs through a loop of symbolic links at {name!r}")
        place = parent
    return real


def _check_shape(given: str) -> None:
    if not given:
        raise PathUnusable("the path is empty; `.` is the workspace itself")
    if "\0" in given:
        raise PathUnusable("the path has a NUL character in it")
    if len(given.encode()) > _LONGEST_PATH_BYTES:
        raise PathUnusable(f"the path is longer than {_LONGEST_PATH_BYTES} bytes")
    if any(len(part.encode()) > _LONGEST_NAME_BYTES for part in given.split("/")):
        raise PathUnusable(f"a name in the path is longer than {_LONGEST_NAME_BYTES} bytes")

"""A confinement where nothing can be mounted: the trees that Landlock opens, and no others."""

from __future__ import annotations

import os
from collections.abc import Iterable

from podium.domain.launching import Confinement
from podium.sandbox.confining.inside import (
    LINKED,
    SYSTEM,
    Inside,
    is_under,
    normal,
    not_for_everybody,
)

_DEVICES = ("/dev/null", "/dev/zero", "/dev/full")
_READ_DEVICES = ("/dev/random", "/dev/urandom")


def reach(
    confinement: Confinement, temporary: str, *, as_root: bool
) -> tuple[list[str], list[str]]:
    """Trees that may be read, and those that may be changed too, by their real paths.

    Landlock cannot take a part out of an open tree. So a writable folder that holds something pinned is
    opened entry by entry: what lies in it can be changed, but nothing new can be made right there.
    """
    hidden = [path for path, _ in not_for_everybody("/etc")] if as_root else []
    readable = [tree for folder in (*SYSTEM, *LINKED) for tree in _without(folder, hidden)]
    readable += ["/proc", *_READ_DEVICES]
    writable = [temporary, *_DEVICES]
    kept = _kept(confinement)
    for mount in confinement.mounts:
        source = os.path.realpath(mount.source)
        readable.append(source)
        if mount.writable:
            writable += _without(source, kept)
    return readable, writable


def _kept(confinement: Confinement) -> list[str]:
    """Paths outside that may not be changed although they lie in something writable."""
    inside = Inside(confinement.mounts)
    pinned = [inside.outside(normal(path)) for path in confinement.pinned]
    fixed = [mount.source for mount in confinement.mounts if not (mount.writable or mount.put_back)]
    return [os.path.realpath(path) for path in (*pinned, *fixed) if path]


def _without(folder: str, kept: Iterable[str]) -> list[str]:
    """The folder as the largest trees that hold none of what is kept."""
    inner = [path for path in kept if is_under(path, folder)]
    if not inner:
        return [folder]
    if folder in inner:
        return []
    with os.scandir(folder) as entries:
        names = sorted(entry.path for entry in entries if not entry.is_symlink())
    return [tree for path in names for tree in _without(path, inner)]

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
    kept_from_root,
    normal,
)

_DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/ptmx", "/dev/tty")
"""The last two give a terminal that is new, and the tree's own if it has one; never another's."""
_READ_DEVICES = ("/dev/random", "/dev/urandom")


def reach(
    confinement: Confinement, temporary: str, *, as_root: bool
) -> tuple[list[str], list[str]]:
    """Trees that may be read, and those that may be changed too, by their real paths.

    Landlock cannot take a part out of an open tree. So a writable folder that holds something pinned is
    opened entry by entry: what lies in it can be changed, but nothing new can be made right there.
    """
    hidden = [path for path, _ in kept_from_root()] if as_root else []
    readable = [tree for folder in (*SYSTEM, *LINKED) for tree in _without(folder, hidden)]
    readable += ["/proc", *_READ_DEVICES]
    writable = [temporary, *_DEVICES]
    kept = _kept(confinement)
    put_back = [os.path.realpath(mount.source) for mount in confinement.mounts if mount.put_back]
    covered = _covered(confinement)
    for mount in confinement.mounts:
        source = os.path.realpath(mount.source)
        readable += _without(source, covered)
        if mount.writable:
            writable += _without(source, [*kept, *covered], put_back)
    return readable, writable


def shown_folders(search_path: str, trees: Iterable[str]) -> str:
    """The search path without folders that cannot be entered.

    Other files can still be seen, and a shell that sees a program looks no further when it cannot start it.
    """
    open_trees = [os.path.realpath(tree) for tree in trees]
    return os.pathsep.join(
        folder
        for folder in search_path.split(os.pathsep)
        if any(is_under(os.path.realpath(folder), tree) for tree in open_trees)
    )


def _covered(confinement: Confinement) -> list[str]:
    """Paths that something else is mounted over: where nothing can be, they are not shown at all."""
    targets = (
        mount.target for mount in confinement.mounts if normal(mount.source) != normal(mount.target)
    )
    return [os.path.realpath(target) for target in targets]


def _kept(confinement: Confinement) -> list[str]:
    """Paths outside that may not be changed although they lie in something writable."""
    inside = Inside(confinement.mounts)
    pinned = [inside.outside(normal(path)) for path in confinement.pinned]
    fixed = [mount.source for mount in confinement.mounts if not (mount.writable or mount.put_back)]
    return [os.path.realpath(path) for path in (*pinned, *fixed) if path]


def _without(folder: str, kept: Iterable[str], put_back: Iterable[str] = ()) -> list[str]:
    """The folder as the largest trees that hold none of what is kept.

    What is put back is no reason to take a folder apart, but is left out where one is.
    """
    inner = [path for path in kept if is_under(path, folder)]
    if not inner:
        return [folder]
    if folder in inner:
        return []
    with os.scandir(folder) as entries:
        names = sorted(entry.path for entry in entries if not entry.is_symlink())
    opened = (path for path in names if path not in put_back)
    return [tree for path in opened for tree in _without(path, inner, put_back)]

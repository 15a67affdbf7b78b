"""View from inside a confinement: the files behind paths, links that may not be there, and trees where nothing is mounted."""

from __future__ import annotations

import os
import stat
from collections import deque
from collections.abc import Iterable, Sequence
from functools import cache, cached_property, lru_cache
from pathlib import PurePosixPath

from podium.core.errors import NotPossibleNow, WorkspaceTampered
from podium.core.processes import Confinement, Mount

SYSTEM = ("/usr", "/etc", "/opt", "/nix/store", "/gnu/store")
"""Programs, libraries and their settings. Read-only inside, where they are there outside."""
LINKED = ("/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
"""Links into `/usr` on most machines, folders on some."""
PRIVATE = ("/tmp", "/var/tmp", "/run")  # noqa: S108 — the names of what is covered, not used
"""Empty and writable inside."""
_SHARED_MEMORY = "/dev/shm"  # noqa: S108 — as above


def is_under(path: str, folder: str) -> bool:
    """Tell whether the path is the folder or something in it. Both are absolute and normal."""
    return path == folder or path.startswith(folder.rstrip("/") + "/")


@lru_cache(10_000)
def normal(path: str) -> str:
    """Without `.`, `..` and doubled slashes. Links are left as they are."""
    return "/" + os.path.normpath(path).lstrip("/")


class ConfinedView:
    """The view of a confined tree, as far as names go."""

    def __init__(self, mounts: Sequence[Mount], home: str = "") -> None:
        """`home` is private and empty unless something is mounted there."""
        self._home = normal(home) if home.startswith("/") else ""
        # Once for each start, and not for each folder on the way to a program.
        self._mounts = [(normal(mount.target), mount) for mount in reversed(mounts)]
        self._steps: dict[str, str] = {}

    @cached_property
    def private(self) -> tuple[str, ...]:
        """Folders that are empty and writable at the start."""
        is_visible = any(is_under(self._home, folder) for folder in (*SYSTEM, *LINKED, *PRIVATE))
        if is_visible or self._home in ("", "/") or self.mount_of(self._home):
            return PRIVATE
        return (*PRIVATE, self._home)

    @property
    def temporary(self) -> tuple[str, ...]:
        """All of memory that can be written to as files."""
        return (*self.private, _SHARED_MEMORY)

    def outside(self, path: str) -> str:
        """The path outside of what this path shows inside, or "" where nothing is shown."""
        path = normal(path) if path else ""
        mount = self.mount_of(path)
        if mount is not None:
            return normal(mount.source + "/" + path[len(normal(mount.target).rstrip("/")) :])
        if any(is_under(path, folder) for folder in self.private):
            return ""
        return path if any(is_under(path, folder) for folder in (*SYSTEM, *LINKED)) else ""

    def mount_of(self, path: str) -> Mount | None:
        """The mount that shows this path: the last one that covers it."""
        return next((mount for target, mount in self._mounts if is_under(path, target)), None)

    def has_folder(self, path: str) -> bool:
        """Tell whether there is such a folder at the start."""
        path = normal(path)
        real = self.outside(path)
        if real:
            return os.path.isdir(real)  # noqa: PTH112 — `Path.is_dir` raises where one may not look
        folders = (*self.private, "/dev", "/proc", *(target for target, _ in self._mounts))
        return any(is_under(folder, path) for folder in folders)

    def program(self, name: str, cwd: str, search_path: str) -> str:
        """The path inside of the program that will be executed, or "" when none can be.

        Links are followed as the tree would follow them.
        """
        if "/" in name:
            candidates = [str(PurePosixPath(cwd, name))]
        else:
            folders = [folder for folder in search_path.split(":") if folder.startswith("/")]
            candidates = [f"{folder.rstrip('/')}/{name}" for folder in folders]
        return next((path for path in candidates if self._is_program(path)), "")

    def _is_program(self, path: str) -> bool:
        real = self.followed(path)
        return bool(real) and os.path.isfile(real) and os.access(real, os.X_OK)  # noqa: PTH113

    def followed(self, path: str) -> str:
        """The file outside at the end of all links, each read as it reads inside; or ""."""
        parts = normal(path).split("/")[1:]
        at = "/"
        links = 0
        while parts:
            at = normal(f"{at}/{parts.pop(0)}")
            target = self._link_at(at)
            if target:
                links += 1
                if links > 40:
                    return ""
                whole = target if target.startswith("/") else f"{at.rpartition('/')[0]}/{target}"
                parts = [*normal(whole).split("/")[1:], *parts]
                at = "/"
        return self.outside(at)

    def _link_at(self, path: str) -> str:
        """The target of a link inside; empty when there is none. Folders of a search path have many steps in common."""
        if path not in self._steps:
            real = self.outside(path)
            is_link = bool(real) and os.path.islink(real)  # noqa: PTH114 — as above
            self._steps[path] = os.readlink(real) if is_link else ""  # noqa: PTH115 — as above
        return self._steps[path]


_OWNED = ("/etc", "/opt", "/usr/local")
_MAX_ENTRIES = 100_000
"""Looked at in one folder: about a second. The rest of `/usr` comes from packages and is left out."""


def paths_closed_to_root() -> list[tuple[str, bool]]:
    """Paths of the system's folders that are closed to root inside, each with whether it is a folder."""
    entries = (one for folder in _OWNED for one in not_for_everybody(folder))
    return [one for one in entries if os.path.lexists(one[0])]


@cache
def not_for_everybody(folder: str) -> tuple[tuple[str, bool], ...]:
    """Paths in a folder that only its owner may read, each with whether it is a folder.

    Root inside a sandbox owns the machine's passwords and keys; it shall see what anybody may.
    """
    hidden: list[tuple[str, bool]] = []
    waiting = deque([folder])
    looked_at = 0
    while waiting and looked_at < _MAX_ENTRIES:
        try:
            entries = list(os.scandir(waiting.popleft()))
        except OSError:
            continue
        looked_at += len(entries)
        for entry in entries:
            if entry.is_symlink():
                continue
            is_folder = entry.is_dir(follow_symlinks=False)
            readable_bits = 0o005 if is_folder else 0o004
            try:
                mode = entry.stat(follow_symlinks=False).st_mode
            except OSError:  # Gone again.
                continue
            if mode & readable_bits != readable_bits:
                hidden.append((entry.path, is_folder))
            elif is_folder:
                waiting.append(entry.path)
    return tuple(sorted(hidden))


def refuse_what_was_tampered_with(confinement: Confinement) -> None:
    """Look at every name between a writable tree and what is bound from inside it.

    To be called while no process of an earlier turn lives. Raises `WorkspaceTampered` for a link, and
    `NotPossibleNow` for what is not there.
    """
    inside = ConfinedView(confinement.mounts)
    writable = [normal(mount.source) for mount in confinement.mounts if mount.writable]
    pinned = [inside.outside(path) for path in confinement.pinned]
    for path in (*pinned, *(normal(mount.source) for mount in confinement.mounts)):
        for top in writable:
            if path != top and is_under(path, top):
                _look(top, path)


def _look(top: str, path: str) -> None:
    at = top.rstrip("/")
    names = path[len(at) + 1 :].split("/")
    for count, name in enumerate(names, 1):
        at = f"{at}/{name}"
        try:
            mode = os.lstat(at).st_mode
        except FileNotFoundError:
            raise NotPossibleNow(
                f"the protected path {at!r} does not exist; create it first"
            ) from None
        whole = count == len(names)
        if stat.S_ISLNK(mode) or not (whole or stat.S_ISDIR(mode)):
            raise WorkspaceTampered(
                f"{at!r} is no longer a plain file or folder; check and restore it before anything "
                "runs there"
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
    hidden = [path for path, _ in paths_closed_to_root()] if as_root else []
    readable = [tree for folder in (*SYSTEM, *LINKED) for tree in _without(folder, hidden)]
    readable += ["/proc", *_READ_DEVICES]
    writable = [temporary, *_DEVICES]
    closed_paths = _closed_paths(confinement)
    put_back = [os.path.realpath(mount.source) for mount in confinement.mounts if mount.put_back]
    covered = _covered(confinement)
    for mount in confinement.mounts:
        source = os.path.realpath(mount.source)
        readable += _without(source, covered)
        if mount.writable:
            writable += _without(source, [*closed_paths, *covered], put_back)
    return readable, writable


def visible_folders(search_path: str, trees: Iterable[str]) -> str:
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


def _closed_paths(confinement: Confinement) -> list[str]:
    """Paths outside that may not be changed although they lie in something writable."""
    inside = ConfinedView(confinement.mounts)
    pinned = [inside.outside(normal(path)) for path in confinement.pinned]
    fixed = [mount.source for mount in confinement.mounts if not (mount.writable or mount.put_back)]
    return [os.path.realpath(path) for path in (*pinned, *fixed) if path]


def _without(folder: str, closed_paths: Iterable[str], put_back: Iterable[str] = ()) -> list[str]:
    """The folder as the largest trees that hold none of what is kept.

    What is put back is no reason to take a folder apart, but is left out where one is.
    """
    inner = [path for path in closed_paths if is_under(path, folder)]
    if not inner:
        return [folder]
    if folder in inner:
        return []
    with os.scandir(folder) as entries:
        names = sorted(entry.path for entry in entries if not entry.is_symlink())
    opened = (path for path in names if path not in put_back)
    return [tree for path in opened for tree in _without(path, inner, put_back)]

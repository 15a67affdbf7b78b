"""Bubblewrap: a confinement as the words of its command line."""

from __future__ import annotations

import os
from collections.abc import Mapping

from podium.core.processes import Confinement
from podium.sandbox.confining.view import (
    LINKED,
    SYSTEM,
    ConfinedView,
    is_under,
    normal,
    paths_closed_to_root,
)

# The machine's switches belong to root, who may turn them without any capability; one of them names a
# program to run outside. Bubblewrap means to cover these, but leaves most of them as they are.
_SWITCHES = ("acpi", "bus", "fs", "irq", "mtrr", "pressure", "scsi", "sys", "sysrq-trigger")

_NAMESPACES = (
    "--unshare-user",
    "--unshare-pid",
    "--unshare-ipc",
    "--unshare-uts",
    "--unshare-cgroup-try",
)


def options(
    confinement: Confinement,
    cwd: str,
    env: Mapping[str, str],
    *,
    disable_userns: bool,
    as_root: bool,
    temporary_bytes: int | None = None,
) -> list[str]:
    """The options of bubblewrap. Sources of pinned paths must exist and hold no links."""
    sized = ["--size", str(temporary_bytes)] if temporary_bytes else []
    inside = ConfinedView(confinement.mounts, env.get("HOME", ""))
    argv = [*_NAMESPACES, "--cap-drop", "ALL", "--die-with-parent", "--new-session"]
    argv += ["--disable-userns"] if disable_userns else []
    argv += ["--unshare-net"] if confinement.network != "open" else []
    argv += _system(as_root)
    for folder in inside.temporary if sized else inside.private:
        argv += [*sized, "--tmpfs", folder]
    # In memory too, and of no limited size. Without one, shared memory lies right in it.
    argv += ["--remount-ro", "/dev"] if sized else []
    argv += _name_resolution() if confinement.network == "open" else []
    argv += _MountPlan(confinement).options
    argv += ["--remount-ro", "/", "--chdir", cwd]
    for name, value in env.items():
        argv += ["--setenv", name, value]
    return argv


def _bind(writable: bool) -> str:
    return "--bind" if writable else "--ro-bind"


def _system(as_root: bool) -> list[str]:
    argv: list[str] = []
    for folder in SYSTEM:
        argv += ["--ro-bind-try", folder, folder]
    for folder in LINKED:
        if os.path.islink(folder):  # noqa: PTH114 — a text is what is needed
            argv += ["--symlink", os.readlink(folder), folder]  # noqa: PTH115 — as above
        else:
            argv += ["--ro-bind-try", folder, folder]
    return [*argv, "--dev", "/dev", "--proc", "/proc", *(_masked_from_root() if as_root else ())]


def _masked_from_root() -> list[str]:
    argv: list[str] = []
    for path, is_folder in paths_closed_to_root():
        hidden = ["--tmpfs", path, "--remount-ro", path]
        argv += hidden if is_folder else ["--ro-bind", os.devnull, path]
    for name in _SWITCHES:
        if os.path.exists(f"/proc/{name}"):  # noqa: PTH110 — as above
            argv += ["--ro-bind", f"/proc/{name}", f"/proc/{name}"]
    return argv


def _name_resolution() -> list[str]:
    """On many machines `/etc/resolv.conf` leads into `/run`, which is private inside."""
    real = os.path.realpath("/etc/resolv.conf")
    return ["--ro-bind-try", real, real] if is_under(real, "/run") else []


class _MountPlan:
    """The mounts in order, each followed by what is pinned in it.

    A mount point can be neither renamed nor removed. So each folder above a pinned path, or above a
    mount inside another, becomes one: else a tree would move it away and put its own in its place.
    """

    def __init__(self, confinement: Confinement) -> None:
        self.options: list[str] = []
        self._mounts = confinement.mounts
        self._pinned = sorted(map(normal, confinement.pinned))
        self._held: set[str] = set()
        self._done: set[str] = set()
        for count in range(len(self._mounts)):
            self._add(count)

    def _add(self, count: int) -> None:
        mount = self._mounts[count]
        target = normal(mount.target)
        self._hold_above(target, ConfinedView(self._mounts[:count]))
        self.options += [_bind(mount.writable), normal(mount.source), target]
        # What was there before is covered now.
        self._held = {path for path in self._held if not is_under(path, target)}
        self._done = {path for path in self._done if not is_under(path, target)}
        if mount.writable:
            for path in self._pinned:
                if is_under(path, target):
                    self._pin(path, ConfinedView(self._mounts[: count + 1]))

    def _pin(self, path: str, inside: ConfinedView) -> None:
        self._hold_above(path, inside)
        if not self._is_pinned(path):
            self.options += ["--ro-bind", inside.outside(path), path]
            self._done.add(path)

    def _hold_above(self, path: str, inside: ConfinedView) -> None:
        mount = inside.mount_of(path)
        if mount is None or not mount.writable:
            return
        for folder in _between(normal(mount.target), path):
            if folder not in self._held and not self._is_pinned(folder):
                self.options += ["--bind-try", inside.outside(folder), folder]
                self._held.add(folder)

    def _is_pinned(self, path: str) -> bool:
        return any(is_under(path, pinned) for pinned in self._done)


def _between(top: str, path: str) -> list[str]:
    """The folders below `top` and above `path`, from the outermost on."""
    names = path[len(top.rstrip("/")) :].strip("/").split("/")[:-1]
    return [top.rstrip("/") + "/" + "/".join(names[: count + 1]) for count in range(len(names))]

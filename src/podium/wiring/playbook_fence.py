"""The fence around commands of a playbook: its folder and nothing else, with closed places only to be read."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

from podium.domain.errors import CallRefused
from podium.domain.launching import Confinement, ExecRules, Held, Mount, NetworkPolicy
from podium.ports import Enclosures
from podium.wiring.enclosures import history_of
from podium.wiring.folders import STATE_FOLDER
from podium.wiring.settings import SandboxSettings

MOST_LOOKED_AT = 200_000
MOST_CLOSED = 500


class PlaybookFence:
    """Fences for the folder of one run; see `Enclosures`."""

    def __init__(
        self,
        settings: SandboxSettings,
        exec_rules: Callable[[], ExecRules],
        empty: Path,
        off_limits: Callable[[str], bool],
    ) -> None:
        """`empty` is a folder to show in place of what stays hidden; `off_limits` says of a path, from the
        root on, whether the profile lets nobody change it."""
        self._settings = settings
        self._exec_rules = exec_rules
        self._empty = empty
        self._off_limits = off_limits

    async def confinement(self, root: str) -> Confinement:
        if self._settings.kind == "none":
            return Confinement()
        return Confinement(
            kind="kernel",
            mounts=tuple(self._mounts(Path(root))),
            network=self._network,
            hosts=self._hosts,
            execs=self._exec_rules(),
        )

    def held(self, root: str) -> Held | None:
        if self._settings.kind != "kernel":
            return None
        return Held(network=self._network, hosts=self._hosts)

    @property
    def _network(self) -> NetworkPolicy:
        # A command of a tool has no model to reach.
        given = self._settings.network
        return given if given in ("listed", "open") else "none"

    @property
    def _hosts(self) -> tuple[str, ...]:
        return self._settings.hosts if self._settings.network == "listed" else ()

    def _mounts(self, root: Path) -> Iterator[Mount]:
        yield Mount(source=str(root), target=str(root), writable=True)
        yield from (Mount(source=str(each), target=str(each)) for each in history_of(root))
        state = root / STATE_FOLDER
        if state.is_dir():
            self._empty.mkdir(mode=0o700, parents=True, exist_ok=True)
            yield Mount(source=str(self._empty), target=str(state))
        # Not hidden: the plugin's own checks go through all of it. Tools that would read it are refused.
        yield from (Mount(source=str(each), target=str(each)) for each in self._closed(root))

    def _closed(self, root: Path) -> list[Path]:
        """What is there of the closed places, outermost first. Links are left to where they lead."""
        found: list[Path] = []
        for path in _walk(root, self._off_limits):
            found.append(path)
            if len(found) > MOST_CLOSED:
                raise CallRefused(
                    f"the profile's closed paths mean more than {MOST_CLOSED} places, too many to close for a "
                    "command; name the folders they are in"
                )
        return found


class DeskFence:
    """The fence of an agent without hands: the folder that its tools work in can only be looked at."""

    def __init__(self, beneath: Enclosures, ground: str) -> None:
        self._beneath = beneath
        self._ground = ground

    async def confinement(self, root: str) -> Confinement:
        fence = await self._beneath.confinement(root)
        if root != self._ground:
            return fence
        mounts = tuple(each.model_copy(update={"writable": False}) for each in fence.mounts)
        return fence.model_copy(update={"mounts": mounts})

    def held(self, root: str) -> Held | None:
        return self._beneath.held(root)


def _walk(root: Path, off_limits: Callable[[str], bool]) -> Iterator[Path]:
    looked_at = 0
    for folder, folders, names in os.walk(root):
        place = Path(folder)
        if place == root:
            folders[:] = [name for name in folders if name not in (".git", STATE_FOLDER)]
        for name in (*folders, *names):
            looked_at += 1
            if looked_at > MOST_LOOKED_AT:
                raise CallRefused(
                    f"the folder holds more than {MOST_LOOKED_AT} files, too many to look for closed paths among; "
                    "run the playbook in a smaller one with --root"
                )
            path = place / name
            if off_limits(os.path.relpath(path, root)) and not path.is_symlink():
                yield path
        folders[:] = [
            name for name in folders if not off_limits(os.path.relpath(place / name, root))
        ]

"""Confinement of a plain folder for the commands of its tools, and of an MCP-only agent that may only read it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

from podium.app.confinement import history_of, protected_mounts, repositories_of, take_state_name
from podium.config.settings import SandboxSettings
from podium.core.processes import Confinement, ExecRules, FolderConfinement, Mount, NetworkPolicy
from podium.ports import ConfinementProvider


class PlainFolderConfinement:
    """Fences for the folder of one run; see `ConfinementProvider`."""

    def __init__(
        self,
        settings: SandboxSettings,
        exec_rules: Callable[[], ExecRules],
        empty: Path,
        closed: Callable[[str], bool],
        hidden: Callable[[str], bool] = lambda path: False,
    ) -> None:
        """`empty` is a folder to show in place of what stays hidden. `closed` and `hidden` say of a path, from
        the root on, whether it can only be read, or not even that."""
        self._settings = settings
        self._exec_rules = exec_rules
        self._empty = empty
        self._closed = closed
        self._hidden = hidden

    async def confinement(self, root: str) -> Confinement:
        if self._settings.kind == "none":
            return Confinement()
        return Confinement(
            kind="kernel",
            mounts=tuple(self._mounts(Path(root))),
            network=self._network,
            hosts=self._hosts,
            execs=self._exec_rules().model_copy(
                update={"repositories": repositories_of(Path(root))}
            ),
        )

    def held(self, root: str) -> FolderConfinement | None:
        if self._settings.kind != "kernel":
            return None
        return FolderConfinement(network=self._network, hosts=self._hosts, holds_zones=True)

    @property
    def _network(self) -> NetworkPolicy:
        # A command of a tool has no model to reach.
        network = self._settings.network
        return network if network in ("listed", "open") else "none"

    @property
    def _hosts(self) -> tuple[str, ...]:
        return self._settings.hosts if self._settings.network == "listed" else ()

    def _mounts(self, root: Path) -> Iterator[Mount]:
        take_state_name(root)
        yield Mount(source=str(root), target=str(root), writable=True)
        yield from (Mount(source=str(path), target=str(path)) for path in history_of(root))
        yield from protected_mounts(root, self._empty, self._closed, self._hidden)


class ReadOnlyConfinement:
    """The fence of an agent without hands: the folder that its tools work in can only be looked at."""

    def __init__(self, inner: ConfinementProvider, folder: str) -> None:
        self._inner = inner
        self._folder = folder

    async def confinement(self, root: str) -> Confinement:
        confinement = await self._inner.confinement(root)
        if root != self._folder:
            return confinement
        mounts = tuple(mount.model_copy(update={"writable": False}) for mount in confinement.mounts)
        return confinement.model_copy(update={"mounts": mounts})

    def held(self, root: str) -> FolderConfinement | None:
        return self._inner.held(root)

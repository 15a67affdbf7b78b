"""The fence around commands of a playbook: its folder and nothing else, with closed places only to be read."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

from podium.domain.errors import CallRefused, NotPossibleNow
from podium.domain.launching import Confinement, ExecRules, Held, Mount, NetworkPolicy
from podium.ports import Enclosures
from podium.wiring.enclosures import history_of
from podium.wiring.folders import STATE_FOLDER
from podium.wiring.settings import SandboxSettings

DOT_GIT = ".git"


class PlaybookFence:
    """Fences for the folder of one run; see `Enclosures`."""

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
        # Nested ones too: a program that writes there gives git its orders.
        for place in self._places(root, lambda path: _is(DOT_GIT, path) or self._closed(path)):
            if _is_plain(place):
                yield Mount(source=str(place), target=str(place))
        folder, file = self._nothing()
        for place in self._places(root, lambda path: _is(STATE_FOLDER, path) or self._hidden(path)):
            if _is_plain(place):
                yield Mount(source=str(folder if place.is_dir() else file), target=str(place))

    def _nothing(self) -> tuple[Path, Path]:
        """An empty folder and an empty file, to show in place of others."""
        self._empty.mkdir(mode=0o700, parents=True, exist_ok=True)
        file = self._empty.with_name("empty-file")
        file.touch(mode=0o600)
        return self._empty, file

    def _places(self, root: Path, meant: Callable[[str], bool]) -> list[Path]:
        from podium.workspaces.git.folder_closed import closed_places

        try:
            found = closed_places(root, meant)
        except NotPossibleNow as error:
            raise CallRefused(str(error)) from None
        for path in found:
            if not path.isprintable():
                raise CallRefused(
                    f"{path!r} is closed, and no fence can be drawn around such a name"
                )
        return [root / path for path in found]


def _is(name: str, path: str) -> bool:
    return path.rpartition("/")[2] == name


def _is_plain(place: Path) -> bool:
    """Whether it is really there: a link would lead the mount somewhere else."""
    return place.exists() and not place.is_symlink() and place.resolve() == place


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

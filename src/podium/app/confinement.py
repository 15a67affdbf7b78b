"""Confinement of every folder that agents work in: a workspace's own, one for a plain folder, and one that is read-only."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

from podium.config.settings import SandboxSettings
from podium.core.errors import CallRefused, NotPossibleNow
from podium.core.processes import Confinement, ExecRules, FolderConfinement, Mount, NetworkPolicy
from podium.core.protected_paths import GIT_DIR, STATE_DIR, protected_name
from podium.platform import make_private_folder
from podium.ports import ConfinementProvider, Workspaces

UNCONFINED = (
    "`sandbox: none`: agents and their commands run with all your permissions; the gate judges what they "
    "ask for, and nothing confines what they do"
)

_POINTER_BYTES = 5_000


def held_in_workspaces(settings: SandboxSettings) -> FolderConfinement | None:
    """Confinement of commands in a workspace by the settings. None: only their text is judged."""
    if settings.kind != "kernel" or not settings.network:
        return None
    return FolderConfinement(
        network=settings.network, hosts=_listed(settings), disposable=True, holds_zones=True
    )


def _listed(settings: SandboxSettings) -> tuple[str, ...]:
    """Hosts count only where the network goes by them."""
    return settings.hosts if settings.network == "listed" else ()


class ProjectConfinement:
    """Fences as the settings want them; see `Enclosures`."""

    def __init__(
        self,
        workspaces: Workspaces,
        settings: SandboxSettings,
        exec_rules: Callable[[], ExecRules],
        empty: Path,
        warn: Callable[[str], None],
    ) -> None:
        """`empty` is a folder to show in place of what stays hidden; it is made when it is needed.

        `warn` is told once when agents are to run unconfined.
        """
        self._workspaces = workspaces
        self._settings = settings
        self._exec_rules = exec_rules
        self._empty = empty
        self._warn = warn
        self._warned = False

    async def confinement(self, root: str) -> Confinement:
        record = self._workspaces.at(root)
        if record is None:
            confinement, repositories = self._of_folder(Path(root)), repositories_of(Path(root))
        else:
            confinement = await (await self._workspaces.open(record.id)).confinement()
            # The checkout is not there inside, but its git directory is, and git finds it from above.
            checkout = (record.repository, record.git_dir)
            repositories = (record.path, *checkout, f"{record.private}/git")
        if self._settings.kind == "none":
            return self._let_go(confinement)
        return confinement.model_copy(
            update={
                "network": self._settings.network,
                "hosts": self._listed,
                "execs": self._exec_rules().model_copy(update={"repositories": repositories}),
            }
        )

    def _let_go(self, confinement: Confinement) -> Confinement:
        if not self._warned:
            self._warned = True
            self._warn(UNCONFINED)
        return Confinement(unmounted_env=confinement.unmounted_env, home=confinement.home)

    def held(self, root: str) -> FolderConfinement | None:
        return None if self._workspaces.at(root) is None else held_in_workspaces(self._settings)

    @property
    def _listed(self) -> tuple[str, ...]:
        return _listed(self._settings)

    def _of_folder(self, root: Path) -> Confinement:
        """All of it but git directories, which are read-only, and Podium's state, which is hidden."""
        take_state_name(root)
        return Confinement(
            kind="kernel",
            mounts=(
                Mount(source=str(root), target=str(root), writable=True),
                *(Mount(source=str(path), target=str(path)) for path in history_of(root)),
                *protected_mounts(root, self._empty),
            ),
        )


def take_state_name(root: Path) -> None:
    """Make an empty state folder where there is none, so that it can be covered and no command can make one.

    Raises `CallRefused` for a link: a mount would follow it.
    """
    state = root / STATE_DIR
    if not os.path.lexists(state):
        state.mkdir(mode=0o700)
    if state.is_symlink():
        raise CallRefused(
            f"{str(state)!r} is a symbolic link, but that name is reserved for Podium's state; move it away"
        )


def protected_mounts(
    root: Path,
    empty: Path,
    closed: Callable[[str], bool] = lambda path: False,
    hidden: Callable[[str], bool] = lambda path: False,
) -> Iterator[Mount]:
    """Mounts that cover every protected path in a writable folder, at any depth, and what else is closed or hidden.

    Git directories can only be read; state folders are replaced by `empty`. Raises `CallRefused` where no mount can
    cover a path.
    """
    for path in _covered_paths(root, lambda path: _name_of(path) == GIT_DIR or closed(path)):
        yield Mount(source=str(path), target=str(path))
    folder, file = _nothing(empty)
    for path in _covered_paths(root, lambda path: _name_of(path) == STATE_DIR or hidden(path)):
        yield Mount(source=str(folder if path.is_dir() else file), target=str(path))


def _covered_paths(root: Path, is_meant: Callable[[str], bool]) -> list[Path]:
    from podium.git.worktree_files import closed_paths

    try:
        paths = closed_paths(root, is_meant)
    except NotPossibleNow as error:
        raise CallRefused(str(error)) from None
    for path in paths:
        if not path.isprintable():
            raise CallRefused(
                f"{path!r} must be hidden, but a name with unprintable characters cannot be confined; rename it"
            )
    return [root / path for path in paths if _is_plain(root / path)]


def _name_of(path: str) -> str:
    return protected_name(path.rpartition("/")[2])


def _is_plain(path: Path) -> bool:
    """Tell whether it is really there: a link would lead the mount somewhere else."""
    return path.exists() and not path.is_symlink() and path.resolve() == path


def _nothing(empty: Path) -> tuple[Path, Path]:
    """An empty folder and an empty file, to show in place of others."""
    make_private_folder(empty)
    file = empty.with_name("empty-file")
    file.touch(mode=0o600)
    return empty, file


def repositories_of(root: Path) -> tuple[str, ...]:
    """A plain folder and its git directories, which rules for git are about: scratch repositories elsewhere are free."""
    return (str(root), *map(str, history_of(root)))


def history_of(root: Path) -> list[Path]:
    """Git directories of the folder.

    A pointer is believed only where its target points back: the file itself may be of the agent's making,
    and would else choose what the agent is shown.
    """
    git = root / ".git"
    if git.is_symlink() or not git.exists():
        return []
    admin = _pointed_to(git, "gitdir:") if git.is_file() else None
    if admin is None or _pointed_to(admin / "gitdir", "") != git:
        return [git]
    common = _pointed_to(admin / "commondir", "")
    if common is None or admin.parent != common / "worktrees" or not (common / "objects").is_dir():
        return [git]
    return [git, common]


def _pointed_to(file: Path, prefix: str) -> Path | None:
    try:
        with file.open("rb") as opened:
            text = os.fsdecode(opened.read(_POINTER_BYTES)).strip()
    except OSError:
        return None
    if not text.startswith(prefix):
        return None
    return Path(os.path.normpath(file.parent / text.removeprefix(prefix).strip()))


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

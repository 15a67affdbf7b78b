"""The launch spec of an attendant, in a private folder that it removes."""

from __future__ import annotations

import fcntl
import marshal
import os
import shutil
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path

_PREFIX = "podium-terminal-"
_ORDER, _TEMPORARY = "order", "tmp"
_YOUNG_SECONDS = 3600.0


@dataclass(frozen=True)
class LaunchSpec:
    """An order, and what is to be served to its tree."""

    order: bytes
    """As `Order` encodes it. Holds variables, and secrets among them."""
    hosts: tuple[str, ...] = ()
    proxy_port: int = 0
    """The proxy's port on the tree's own loopback; 0: it has no proxy there."""
    opens_proxy: bool = False
    """True where the tree has no loopback of its own: a port for its proxy is opened on the machine's."""
    named: tuple[str, ...] = ()
    """Variables that were set for this program: they count whatever the terminal says."""
    upstream: tuple[tuple[str, str], ...] = ()
    """Variables that name the machine's own proxy."""


class LaunchFolder:
    """A private folder for the launch spec of one program, and for its temporary files."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @classmethod
    def make(cls) -> LaunchFolder:
        return cls(Path(os.path.realpath(tempfile.mkdtemp(prefix=_PREFIX))))

    def make_temporary(self) -> str:
        made = self.path / _TEMPORARY
        made.mkdir(mode=0o700)
        return str(made)

    def write(self, spec: LaunchSpec) -> None:
        descriptor = os.open(self.path / _ORDER, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(marshal.dumps(asdict(spec)))

    def take(self) -> LaunchSpec:
        """Read the launch spec and remove it. Raises `OSError` when it was read before."""
        self._lock = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY)
        fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        data = (self.path / _ORDER).read_bytes()
        (self.path / _ORDER).unlink()
        if not (self.path / _TEMPORARY).exists():
            self.remove()
        return LaunchSpec(**marshal.loads(data))  # noqa: S302 — from Podium, in a folder of this user alone

    def remove(self) -> None:
        shutil.rmtree(self.path, ignore_errors=True)


def remove_stale_launch_folders() -> None:
    """Remove folders of this user that nobody came for, or whose attendant was killed."""
    for path in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        if _is_stale(path):
            shutil.rmtree(path, ignore_errors=True)


def _is_stale(path: Path) -> bool:
    try:
        about = path.lstat()
        if about.st_uid != os.geteuid() or time.time() - about.st_mtime < _YOUNG_SECONDS:
            return False
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        finally:
            os.close(descriptor)
    except OSError:
        return False
    return True

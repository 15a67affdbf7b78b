"""Private files of agents' homes: written in one step, and never through a link that an agent laid there."""

from __future__ import annotations

import errno
import hashlib
import os
import secrets
import shutil
import stat
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, suppress
from fnmatch import fnmatchcase
from pathlib import Path

from podium.core.errors import NotPossibleNow

MAX_NAME = 80


def plain_name(name: str) -> str:
    """The name as that of a folder. Different names never become the same one."""
    plain = "".join(
        character if character.isalnum() or character in "-_" else "-" for character in name
    )
    if plain == name and 0 < len(name) <= MAX_NAME:
        return name
    return f"{plain[:MAX_NAME]}-{hashlib.sha256(name.encode(errors='replace')).hexdigest()[:8]}"


def write_private(target: Path, content: bytes, *, survives: bool = True) -> None:
    """Replace a file in one step, readable by nobody else. On return it survives a crash, unless it need not."""
    folder = os.open(target.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        write_private_at(folder, target.name, content, survives=survives)
    finally:
        os.close(folder)


def write_private_at(folder: int, name: str, content: bytes, *, survives: bool = True) -> None:
    """The same for a folder that was opened, whatever has its path by now."""
    draft = f".{secrets.token_hex(8)}"
    anew = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    handle = os.open(draft, anew, 0o600, dir_fd=folder)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            if survives:
                os.fsync(file.fileno())
        os.replace(draft, name, src_dir_fd=folder, dst_dir_fd=folder)
    except BaseException:
        with suppress(FileNotFoundError):
            os.unlink(draft, dir_fd=folder)
        raise


_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_PLAIN = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
"""Not blocking: what lies there may be a pipe."""


def real_folder(folder: Path) -> None:
    """Make it a folder of its own. A link an agent laid there would lead our sweeping elsewhere."""
    try:
        if folder.is_symlink() or not folder.is_dir():
            folder.unlink(missing_ok=True)
            folder.mkdir(mode=0o700)
    except OSError as error:
        raise NotPossibleNow(
            f"the private home {str(folder)!r} cannot be made ({error}); look at what stands there"
        ) from None


def make_folder(home: Path, name: str) -> None:
    """Have a folder of the home, and on the way to it nothing but folders. What else stood there is removed."""
    with _opened_way(home, Path(name), make=True):
        pass


def write_within(home: Path, name: str, content: bytes) -> Path:
    """Write a private file of the home, in one step. A link in its place or on the way to it is removed."""
    target = home / name
    with _opened_way(home, Path(name).parent, make=True) as folder:
        # A folder cannot be replaced by a file.
        if target.is_dir() and not target.is_symlink():
            remove(target)
        write_private_at(folder, target.name, content)
    return target


def open_plain(home: Path, name: str | Path) -> int | None:
    """A plain file of the home for reading. None: there is none, or a link is on the way to it."""
    way = Path(name)
    try:
        with _opened_way(home, way.parent, make=False) as folder:
            handle = os.open(way.name, _PLAIN, dir_fd=folder)
    except OSError:
        return None
    if stat.S_ISREG(os.fstat(handle).st_mode):
        return handle
    os.close(handle)
    return None


def is_really_in(home: Path, name: str | Path) -> bool:
    """Return whether no link is on the way to what the home has under this name."""
    parts = Path(name).parts
    return not any(home.joinpath(*parts[: at + 1]).is_symlink() for at in range(len(parts)))


def real_paths(home: Path, name: str, pattern: str) -> list[Path]:
    """Return what matches below a folder of the home and is no link, nor behind one."""
    paths = [home / name] if is_really_in(home, name) else []
    for part in pattern.split("/"):
        paths = [path for folder in paths for path in _unlinked(folder, part)]
    return paths


def take_away(home: Path, name: str) -> None:
    """Remove a file of the home. A link on the way to it goes instead: what it leads to is not ours."""
    parts = Path(name).parts
    for count in range(1, len(parts) + 1):
        path = home.joinpath(*parts[:count])
        if path.is_symlink() or count == len(parts):
            remove(path)
            return


def remove(path: Path) -> None:
    """Remove whatever stands there, also a tree that was made unwritable."""
    try:
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, onerror=_after_allowing)
        else:
            path.unlink(missing_ok=True)
    except OSError as error:
        raise NotPossibleNow(
            f"{str(path)!r} of an agent's private home cannot be removed ({error}); remove it"
        ) from None


def sweep(folder: Path, keep: Collection[Path], inner: Path = Path()) -> None:
    """Remove everything that is not kept and not above something kept. Who could lay links there must have ended."""
    for entry in os.scandir(folder):
        path = inner / entry.name
        real = entry.is_dir(follow_symlinks=False)
        if path in keep and (real or entry.is_file(follow_symlinks=False)):
            continue
        if real and any(path in protected.parents for protected in keep):
            sweep(Path(entry.path), keep, path)
        else:
            remove(Path(entry.path))


@contextmanager
def _opened_way(home: Path, way: Path, *, make: bool) -> Iterator[int]:
    """The folder at the end of the way, reached step by step, so that nobody leads us elsewhere meanwhile."""
    folder = os.open(home, _FOLDER)
    try:
        for part in way.parts:
            child = _made(folder, part) if make else os.open(part, _FOLDER, dir_fd=folder)
            os.close(folder)
            folder = child
        yield folder
    finally:
        os.close(folder)


def _made(folder: int, name: str) -> int:
    """The folder of this name, made if it is not there; what else has the name is removed."""
    try:
        return os.open(name, _FOLDER, dir_fd=folder)
    except OSError as error:
        if error.errno in (errno.ENOTDIR, errno.ELOOP):
            os.unlink(name, dir_fd=folder)
        elif error.errno != errno.ENOENT:
            raise
    with suppress(FileExistsError):
        os.mkdir(name, 0o700, dir_fd=folder)
    return os.open(name, _FOLDER, dir_fd=folder)


def _unlinked(folder: Path, pattern: str) -> list[Path]:
    try:
        with os.scandir(folder) as entries:
            return [
                Path(entry.path)
                for entry in entries
                if fnmatchcase(entry.name, pattern) and not entry.is_symlink()
            ]
    except OSError:
        return []


def _after_allowing(function: Callable[[str], object], path: str, error: object) -> None:
    """Go mod and others make their folders unwritable, and those cannot be removed."""
    for entry in (Path(path).parent, Path(path)):
        if not entry.is_symlink() and entry.is_dir():
            entry.chmod(0o700)
    if Path(path).is_dir() and not Path(path).is_symlink():
        shutil.rmtree(path)
    else:
        Path(path).unlink(missing_ok=True)

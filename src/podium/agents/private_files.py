"""Private files of agents' homes: written in one step, and never through a link that an agent laid there."""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Callable, Collection
from fnmatch import fnmatchcase
from pathlib import Path

from podium.core.errors import NotPossibleNow
from podium.platform.atomic_write import atomic_write_at
from podium.platform.folders import PRIVATE
from podium.platform.safe_open import open_folder, open_plain

MAX_NAME = 80


def plain_name(name: str) -> str:
    """The name as that of a folder. Different names never become the same one."""
    plain = "".join(
        character if character.isalnum() or character in "-_" else "-" for character in name
    )
    if plain == name and 0 < len(name) <= MAX_NAME:
        return name
    return f"{plain[:MAX_NAME]}-{hashlib.sha256(name.encode(errors='replace')).hexdigest()[:8]}"


def real_folder(folder: Path) -> None:
    """Make it a folder of its own. A link an agent laid there would lead our sweeping elsewhere."""
    try:
        if folder.is_symlink() or not folder.is_dir():
            folder.unlink(missing_ok=True)
            folder.mkdir(mode=0o700)
    except OSError as error:
        raise NotPossibleNow(
            f"the private home {str(folder)!r} cannot be created ({error}); check what is at this path"
        ) from None


def make_folder(home: Path, name: str) -> None:
    """Have a folder of the home, and on the way to it nothing but folders. What else stood there is removed."""
    with open_folder(home, name, make=True, mode=PRIVATE, replace=True):
        pass


def write_within(home: Path, name: str, content: bytes) -> Path:
    """Write a private file of the home, in one step. A link in its place or on the way to it is removed."""
    target, parent = home / name, str(Path(name).parent)
    with open_folder(home, parent, make=True, mode=PRIVATE, replace=True) as folder:
        # A folder cannot be replaced by a file.
        if target.is_dir() and not target.is_symlink():
            remove(target)
        atomic_write_at(folder, target.name, content)
    return target


def open_within(home: Path, name: str | Path) -> int | None:
    """Open a plain file of the home for reading. None: there is none, or a link is on the way to it."""
    path = Path(name)
    try:
        with open_folder(home, str(path.parent)) as folder:
            return open_plain(path.name, folder)
    except OSError:
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
            f"{str(path)!r} of an agent's private home cannot be removed ({error}); remove it yourself"
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

"""What git ignores, as far as that is certain. Where it is not, nothing is ignored."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from podium.tools.walking import matches

_OF_GIT = ".gitignore"
_OF_SEARCHES = (".ignore", ".rgignore")
_LARGEST_BYTES = 200_000
_MOST_LINES = 2_000
# Of braces git and ripgrep think differently.
_UNCERTAIN = re.compile(r"[\[\]\\{}]")


class _Line(NamedTuple):
    """One line of such a file."""

    base: str
    """The folder that the file lies in."""
    glob: str
    only_folders: bool
    takes_back: bool

    def may_fit(self, path: str, *, is_folder: bool) -> bool:
        if self.takes_back and _UNCERTAIN.search(self.glob):
            return True
        if self.only_folders and not is_folder:
            return False
        return matches(os.path.relpath(path, self.base), self.glob)


@dataclass(frozen=True)
class Ignoring:
    """The lines that hold in one folder."""

    of_git: tuple[_Line, ...] = ()
    of_searches: tuple[_Line, ...] = ()
    in_repository: bool = False

    @classmethod
    def above(cls, folder: Path) -> Ignoring:
        """What the folders above this one say. Its own files are read by `within`."""
        found = cls()
        for place in reversed(folder.parents):
            names = [
                name for name in (".git", _OF_GIT, *_OF_SEARCHES) if os.path.lexists(place / name)
            ]
            found = found.within(str(place), names)
        return found

    def within(self, folder: str, names: Collection[str]) -> Ignoring:
        """What holds in a folder with these names in it. A repository of its own begins anew."""
        begins = ".git" in names
        if not begins and _OF_GIT not in names and not set(_OF_SEARCHES) & set(names):
            return self
        mine = tuple(_lines(folder, _OF_GIT)) if _OF_GIT in names else ()
        beside = [line for name in _OF_SEARCHES if name in names for line in _lines(folder, name)]
        kept = () if begins else self.of_git
        return Ignoring((*kept, *mine), (*self.of_searches, *beside), begins or self.in_repository)

    def holds(self, path: str, *, is_folder: bool) -> bool:
        """Whether the entry is certainly ignored: a line fits and none may take it back."""
        lines = (*(self.of_git if self.in_repository else ()), *self.of_searches)
        fitting = [line for line in lines if line.may_fit(path, is_folder=is_folder)]
        return bool(fitting) and not any(line.takes_back for line in fitting)


def _lines(folder: str, name: str) -> Iterator[_Line]:
    for written in _text(Path(folder, name)).split("\n")[:_MOST_LINES]:
        line = written.rstrip("\r")
        if not line.strip() or line.startswith("#"):
            continue
        takes_back = line.startswith("!")
        glob = line.removeprefix("!").rstrip(" ")
        if _UNCERTAIN.search(glob) and not takes_back:
            continue
        yield _Line(folder, _as_path(glob), glob.endswith("/"), takes_back)


def _as_path(glob: str) -> str:
    """With a slash at the beginning or in the middle it is meant from its own folder on."""
    plain = glob.rstrip("/")
    if plain.endswith("/**"):
        plain += "/*"  # all that lies in the folder, and not the folder
    return f"/{plain.lstrip('/')}" if "/" in plain else plain


def _text(file: Path) -> str:
    """What it says, whole. One that cannot be read so says nothing that is certain."""
    try:
        if not file.is_file() or file.is_symlink() or file.stat().st_size > _LARGEST_BYTES:
            return "!*"
        return file.read_text(errors="replace")
    except OSError:
        return "!*"

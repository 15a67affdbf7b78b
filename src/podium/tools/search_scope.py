"""Scope of searches that agents make themselves: protected files they would read, files that git ignores.

Podium's own search leaves protected files out; ripgrep, which the CLIs search with, does not. It
passes over what git ignores, and Claude Code and opencode let it look into hidden files. So we walk
as it would. Where we cannot tell, a file counts as read.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from podium.tools.text_search import matches

_OF_GIT = ".gitignore"
_OF_SEARCHES = (".ignore", ".rgignore")
_MAX_BYTES_SIZE = 200_000
_MAX_LINES = 2_000
# Of braces git and ripgrep think differently.
_UNCERTAIN_IGNORE = re.compile(r"[\[\]\\{}]")


class _IgnoreLine(NamedTuple):
    """One line of such a file."""

    base: str
    """The folder that the file lies in."""
    glob: str
    only_folders: bool
    takes_back: bool

    def may_fit(self, path: str, *, is_folder: bool) -> bool:
        if self.takes_back and _UNCERTAIN_IGNORE.search(self.glob):
            return True
        if self.only_folders and not is_folder:
            return False
        return matches(os.path.relpath(path, self.base), self.glob)


@dataclass(frozen=True)
class IgnoreRules:
    """The lines that hold in one folder."""

    of_git: tuple[_IgnoreLine, ...] = ()
    of_searches: tuple[_IgnoreLine, ...] = ()
    in_repository: bool = False

    @classmethod
    def above(cls, folder: Path) -> IgnoreRules:
        """Collect the rules of the folders above this one. Its own files are read by `within`."""
        rules = cls()
        for parent in reversed(folder.parents):
            names = [
                name for name in (".git", _OF_GIT, *_OF_SEARCHES) if os.path.lexists(parent / name)
            ]
            rules = rules.within(str(parent), names)
        return rules

    def within(self, folder: str, names: Collection[str]) -> IgnoreRules:
        """Return the rules in a folder with these names in it. A repository of its own begins anew."""
        begins = ".git" in names
        if not begins and _OF_GIT not in names and not set(_OF_SEARCHES) & set(names):
            return self
        mine = tuple(_lines(folder, _OF_GIT)) if _OF_GIT in names else ()
        beside = [line for name in _OF_SEARCHES if name in names for line in _lines(folder, name)]
        inherited = () if begins else self.of_git
        return IgnoreRules(
            (*inherited, *mine), (*self.of_searches, *beside), begins or self.in_repository
        )

    def holds(self, path: str, *, is_folder: bool) -> bool:
        """Check that an entry is certainly ignored: a line matches and none may take it back."""
        lines = (*(self.of_git if self.in_repository else ()), *self.of_searches)
        fitting = [line for line in lines if line.may_fit(path, is_folder=is_folder)]
        return bool(fitting) and not any(line.takes_back for line in fitting)


def _lines(folder: str, name: str) -> Iterator[_IgnoreLine]:
    for written in _text(Path(folder, name)).split("\n")[:_MAX_LINES]:
        line = written.rstrip("\r")
        if not line.strip() or line.startswith("#"):
            continue
        takes_back = line.startswith("!")
        glob = line.removeprefix("!").rstrip(" ")
        if _UNCERTAIN_IGNORE.search(glob) and not takes_back:
            continue
        yield _IgnoreLine(folder, _as_path(glob), glob.endswith("/"), takes_back)


def _as_path(glob: str) -> str:
    """With a slash at the beginning or in the middle it is meant from its own folder on."""
    plain = glob.rstrip("/")
    if plain.endswith("/**"):
        plain += "/*"  # all that lies in the folder, and not the folder
    return f"/{plain.lstrip('/')}" if "/" in plain else plain


def _text(file: Path) -> str:
    """Return the whole text. An unreadable file makes every rule uncertain."""
    try:
        if not file.is_file() or file.is_symlink() or file.stat().st_size > _MAX_BYTES_SIZE:
            return "!*"
        return file.read_text(errors="replace")
    except OSError:
        return "!*"


MAX_ENTRIES = 100_000
MAX_REACHED = 500

_NOT_ENTERED = ".git"
_UNCERTAIN = re.compile(r"[\[\]\\{}]")
_BRACES = re.compile(r"\{([^{}]{0,1000})\}")
_MAX_GLOBS = 64


class SearchTooLarge(ValueError):
    """More lies below the folder than can be looked through. The message says what to do."""


def reached(
    root: str, folder: str, glob: str | None, is_protected: Callable[[str], bool]
) -> Iterator[str]:
    """The path of every protected file that a search in `folder` would read.

    `glob` are the files that the search names, as ripgrep understands it: what it names is read
    although git ignores it. None: all files.
    """
    files = _walk(root, folder, [_SearchGlobs.of(globs) for globs in _readings(glob)])
    for number, path in enumerate(filter(is_protected, files)):
        if number == MAX_REACHED:
            raise SearchTooLarge(
                f"more than {MAX_REACHED} protected files would be read; search another folder"
            )
        yield path


def _walk(root: str, folder: str, searches: Sequence[_SearchGlobs]) -> Iterator[str]:
    """Files that the search would read. Links are not followed, as ripgrep does not."""
    # Globs are meant from the workspace on, whichever folder of it is searched.
    prefix = "" if folder == root else f"{os.path.relpath(folder, root)}/"
    waiting = [(folder, prefix, IgnoreRules.above(Path(folder)))]
    count = 0
    while waiting:
        current, prefix, above = waiting.pop()
        try:
            entries = list(os.scandir(current))
        except OSError:
            continue  # not a folder, or one that the search cannot read either
        count += len(entries)
        if count > MAX_ENTRIES:
            raise SearchTooLarge(
                f"the folder has more than {MAX_ENTRIES} files; search a smaller folder"
            )
        ignoring = above.within(current, {entry.name for entry in entries})
        for entry in entries:
            inner, path = prefix + entry.name, entry.path
            if entry.is_dir(follow_symlinks=False):
                if entry.name != _NOT_ENTERED and any(
                    request.enters(inner, path, ignoring) for request in searches
                ):
                    waiting.append((path, f"{inner}/", ignoring))
            elif entry.is_file(follow_symlinks=False) and any(
                request.reads(inner, path, ignoring) for request in searches
            ):
                yield path


def _readings(glob: str | None) -> list[list[str]]:
    """Claude Code takes blanks and commas to part several globs; to others they are one name."""
    if not glob or not glob.strip():
        return [[]]
    parted = [
        part
        for piece in glob.split()
        for part in ([piece] if "{" in piece and "}" in piece else piece.split(","))
        if part
    ]
    return [parted] if parted == [glob] else [parted, [glob]]


@dataclass(frozen=True)
class _SearchGlobs:
    """The globs of a search."""

    named: tuple[str, ...]
    """Only these are searched, also when git ignores them."""
    left_out: tuple[str, ...] = ()
    everything: bool = False
    """The globs could not be read, so they may match anything."""

    @classmethod
    def of(cls, globs: Sequence[str]) -> _SearchGlobs:
        single = [pattern for glob in globs for pattern in _unbraced(glob)]
        named = tuple(pattern.lower() for pattern in single if not pattern.startswith("!"))
        if any(_UNCERTAIN.search(pattern) for pattern in named):
            return cls((), everything=True)
        # Of several globs the last that fits counts: beside names, leaving out is not certain.
        left_out = () if named else tuple(pattern[1:] for pattern in single)
        return cls(named, tuple(filter(_surely_leaves_out, left_out)))

    def enters(self, inner: str, path: str, ignoring: IgnoreRules) -> bool:
        if self._leaves_out(inner):
            return False
        return self._names(inner) or not ignoring.holds(path, is_folder=True)

    def reads(self, inner: str, path: str, ignoring: IgnoreRules) -> bool:
        if self._names(inner):
            return True
        if self.named or self._leaves_out(inner):
            return False
        return not ignoring.holds(path, is_folder=False)

    def _names(self, inner: str) -> bool:
        return self.everything or any(_fits(inner.lower(), glob) for glob in self.named)

    def _leaves_out(self, inner: str) -> bool:
        return any(_fits(inner, glob) for glob in self.left_out)


def _unbraced(glob: str) -> list[str]:
    """`*.{a,b}` as `*.a` and `*.b`. What has too many choices stays as it is."""
    done: list[str] = []
    waiting = [glob]
    while waiting and len(done) + len(waiting) <= _MAX_GLOBS:
        pattern = waiting.pop()
        braces = _BRACES.search(pattern)
        if braces is None:
            done.append(pattern)
            continue
        before, after = pattern[: braces.start()], pattern[braces.end() :]
        waiting += [f"{before}{one}{after}" for one in braces[1].split(",")]
    return [glob] if waiting else done


def _surely_leaves_out(glob: str) -> bool:
    plain = glob.removeprefix("**/")
    return bool(plain) and "/" not in plain and not _UNCERTAIN.search(plain)


def _fits(inner: str, glob: str) -> bool:
    """Check that a glob matches a path, from any folder on."""
    plain = glob.strip("/")
    return matches(inner, f"**/{plain}" if "/" in plain else plain)

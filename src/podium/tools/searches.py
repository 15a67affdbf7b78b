"""Which protected files a search that an agent makes itself would read.

Podium's own search leaves protected files out; ripgrep, which the CLIs search with, does not. It
passes over what git ignores, and Claude Code and opencode let it look into hidden files. So we walk
as it would. Where we cannot tell, a file counts as read.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from podium.tools.ignoring import Ignoring
from podium.tools.walking import matches

MOST_ENTRIES = 100_000
MOST_REACHED = 500

_NOT_ENTERED = ".git"
_UNCERTAIN = re.compile(r"[\[\]\\{}]")
_BRACES = re.compile(r"\{([^{}]{0,1000})\}")
_MOST_GLOBS = 64


class TooMuch(ValueError):
    """More lies below the folder than can be looked through. The words say what to do."""


def reached(
    root: str, folder: str, glob: str | None, is_protected: Callable[[str], bool]
) -> Iterator[str]:
    """The path of every protected file that a search in `folder` would read.

    `glob` are the files that the search names, as ripgrep understands it: what it names is read
    although git ignores it. None: all files.
    """
    files = _walk(root, folder, [_Wish.of(globs) for globs in _readings(glob)])
    for number, path in enumerate(filter(is_protected, files)):
        if number == MOST_REACHED:
            raise TooMuch(
                f"more than {MOST_REACHED} protected files would be read; search elsewhere"
            )
        yield path


def _walk(root: str, folder: str, wishes: Sequence[_Wish]) -> Iterator[str]:
    """Files that the search would read. Links are not followed, as ripgrep does not."""
    # Globs are meant from the workspace on, whichever folder of it is searched.
    prefix = "" if folder == root else f"{os.path.relpath(folder, root)}/"
    waiting = [(folder, prefix, Ignoring.above(Path(folder)))]
    seen = 0
    while waiting:
        place, prefix, above = waiting.pop()
        try:
            entries = list(os.scandir(place))
        except OSError:
            continue  # not a folder, or one that the search cannot read either
        seen += len(entries)
        if seen > MOST_ENTRIES:
            raise TooMuch(f"more than {MOST_ENTRIES} files lie there; search a smaller folder")
        ignoring = above.within(place, {entry.name for entry in entries})
        for entry in entries:
            inner, path = prefix + entry.name, entry.path
            if entry.is_dir(follow_symlinks=False):
                if entry.name != _NOT_ENTERED and any(
                    wish.enters(inner, path, ignoring) for wish in wishes
                ):
                    waiting.append((path, f"{inner}/", ignoring))
            elif entry.is_file(follow_symlinks=False) and any(
                wish.reads(inner, path, ignoring) for wish in wishes
            ):
                yield path


def _readings(glob: str | None) -> list[list[str]]:
    """Claude Code takes blanks and commas to part several globs; to others they are one name."""
    if not glob or not glob.strip():
        return [[]]
    parted = [
        part
        for word in glob.split()
        for part in ([word] if "{" in word and "}" in word else word.split(","))
        if part
    ]
    return [parted] if parted == [glob] else [parted, [glob]]


@dataclass(frozen=True)
class _Wish:
    """The globs of a search."""

    named: tuple[str, ...]
    """Only these are searched, also when git ignores them."""
    left_out: tuple[str, ...] = ()
    everything: bool = False
    """What is named could not be read, so it may be anything."""

    @classmethod
    def of(cls, globs: Sequence[str]) -> _Wish:
        single = [each for glob in globs for each in _unbraced(glob)]
        named = tuple(each.lower() for each in single if not each.startswith("!"))
        if any(_UNCERTAIN.search(each) for each in named):
            return cls((), everything=True)
        # Of several globs the last that fits counts: beside names, leaving out is not certain.
        left_out = () if named else tuple(each[1:] for each in single)
        return cls(named, tuple(filter(_surely_leaves_out, left_out)))

    def enters(self, inner: str, path: str, ignoring: Ignoring) -> bool:
        if self._leaves_out(inner):
            return False
        return self._names(inner) or not ignoring.holds(path, is_folder=True)

    def reads(self, inner: str, path: str, ignoring: Ignoring) -> bool:
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
    while waiting and len(done) + len(waiting) <= _MOST_GLOBS:
        each = waiting.pop()
        found = _BRACES.search(each)
        if found is None:
            done.append(each)
            continue
        before, after = each[: found.start()], each[found.end() :]
        waiting += [f"{before}{one}{after}" for one in found[1].split(",")]
    return [glob] if waiting else done


def _surely_leaves_out(glob: str) -> bool:
    plain = glob.removeprefix("**/")
    return bool(plain) and "/" not in plain and not _UNCERTAIN.search(plain)


def _fits(inner: str, glob: str) -> bool:
    """Whether it names this place, from whatever folder on it is meant."""
    plain = glob.strip("/")
    return matches(inner, f"**/{plain}" if "/" in plain else plain)

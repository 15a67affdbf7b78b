"""The files that a source looks at, and the mark that changes with them. None of them is read here."""

from __future__ import annotations

import fnmatch
import heapq
import math
import operator
import os
import re
import stat
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from podium.bridge.sources.finding import Found, find, found_as, real_place, said_as_fault
from podium.bridge.sources.kit import NotSensed, mark_of

SECOND_NS = 1_000_000_000
_SETTLING_NS = 2 * SECOND_NS
"""File systems note times in steps of up to two seconds. A file that was changed more recently may change
once more and keep its times, so it is looked at once more when it has settled."""
_KIND = 0o170000
"""Bits of a mode that say what kind of thing it is; a function call each is too much here."""

_Row = tuple[int, str, os.stat_result | Found]
"""Sorts newest first, then by name."""
IsOwn = Callable[[str], bool]
"""Whether the loop itself writes this path, from the root on."""


@dataclass(frozen=True)
class FileSelection:
    """One file, or the newest files of a folder, from the root on.

    Of a folder only files lying in it itself count, and none whose name begins with a dot: that is what a file is
    called until it is complete.
    """

    path: str
    pattern: str | None = None
    """Glob of the names in a folder. None: `path` is a file."""
    newest: int = 20
    stale_seconds: float | None = None

    def files(self, root: Path, is_own: IsOwn) -> tuple[Sequence[Found], int]:
        """The files that are shown, in order, and how many there are."""
        if self.pattern is None:
            file = find(root, self.path, is_own)
            return (file,), 1 if file.signature else 0
        folder = self.path.rstrip("/")
        try:
            real = real_place(root, folder)
            with said_as_fault(root / folder):
                rows, total = self._newest_rows(root, folder, real, is_own)
        except NotSensed as fault:
            return [Found(folder or ".", fault=fault)], 0
        return [_found_as(folder, real, name, seen) for _, name, seen in rows], total

    def mark(self, files: Sequence[Found], total: int, now_ns: int) -> str:
        """A text that changes exactly when looking would find something else."""
        return mark_of(
            total,
            *((each.facts, self.is_stale(each, now_ns), settles(each, now_ns)) for each in files),
        )

    def is_stale(self, file: Found, now_ns: int) -> bool:
        if self.stale_seconds is None or not file.signature:
            return False
        return now_ns - file.changed_ns > int(self.stale_seconds * SECOND_NS)

    def _newest_rows(
        self, root: Path, folder: str, real: str, is_own: IsOwn
    ) -> tuple[list[_Row], int]:
        """The rows that are shown, in order, and how many files there are."""
        rows: list[_Row] = []
        total, oldest, room = 0, -math.inf, 4 * self.newest + 100
        for name, status in self._entries(root, real, is_own):
            total += 1
            changed = status.st_mtime_ns
            if status.st_mode & _KIND == stat.S_IFLNK:
                linked = find(root, _beginning(folder) + name, is_own)
                rows.append((-linked.changed_ns, name, linked))
            elif changed >= oldest:
                rows.append((-changed, name, status))
            if len(rows) > room:
                # What is older than all of these is counted and not kept.
                rows = heapq.nsmallest(self.newest, rows)
                oldest = -rows[-1][0]
        return heapq.nsmallest(self.newest, rows), total

    def _entries(
        self, root: Path, real: str, is_own: IsOwn
    ) -> Iterator[tuple[str, os.stat_result]]:
        """Everything in the folder that counts. Thousands come by here at every tick."""
        matches, beginning = _matcher(self.pattern or "*"), _beginning(real)
        with os.scandir(root / real) as entries:
            for entry in entries:
                name = entry.name
                if name[0] == "." or not matches(name) or is_own(beginning + name):
                    continue
                try:
                    status = entry.stat(follow_symlinks=False)
                except FileNotFoundError:
                    continue  # somebody took it away just now
                if status.st_mode & _KIND != stat.S_IFDIR:
                    yield name, status


def settles(file: Found, now_ns: int) -> bool:
    """Whether it was changed so recently that its times may not tell another change."""
    return bool(file.signature) and 0 <= now_ns - file.changed_ns < _SETTLING_NS


def _found_as(folder: str, real: str, name: str, seen: os.stat_result | Found) -> Found:
    if isinstance(seen, Found):
        return seen
    return found_as(_beginning(folder) + name, _beginning(real) + name, seen)


def _beginning(folder: str) -> str:
    """Of the paths of its files. The root has none."""
    return "" if folder in ("", ".") else f"{folder}/"


def _matcher(pattern: str) -> Callable[[str], object]:
    """Whether a name counts. `*.json` and the like are the usual ones, and are told quickly."""
    ending = pattern[1:]
    if pattern[:1] == "*" and not re.search(r"[*?\[]", ending):
        return operator.methodcaller("endswith", ending)
    return re.compile(fnmatch.translate(pattern)).match

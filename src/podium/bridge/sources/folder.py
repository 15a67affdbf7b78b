"""The newest files of a folder, such as answers of a worker or states of sessions."""

from __future__ import annotations

import asyncio
import fnmatch
import heapq
import math
import operator
import os
import re
import stat
from collections.abc import Callable, Iterator

from podium.bridge.sources.finding import (
    Found,
    find,
    found_as,
    read_whole,
    real_place,
    said_as_fault,
)
from podium.bridge.sources.kit import NotSensed, SourceKit
from podium.bridge.sources.understanding import understand
from podium.bridge.sources.watching import Watched
from podium.domain.model import Json
from podium.domain.sensing import Condition, Look

_KIND = 0o170000
"""Bits of a mode that say what kind of thing it is; a function call each is too much here."""

_Row = tuple[int, str, os.stat_result | Found]
"""Sorts newest first, then by name."""


class FolderSource:
    """Reads the newest files of a folder and counts the others.

    Only files lying in the folder itself count, and none whose name begins with a dot: that is what a file is called
    until it is complete.
    """

    def __init__(
        self,
        kit: SourceKit,
        name: str,
        path: str,
        *,
        pattern: str = "*",
        newest: int = 20,
        stale_seconds: float | None = None,
    ) -> None:
        self._kit = kit
        self._name = name
        self._path = path.rstrip("/")
        self._matches = _matcher(pattern)
        self._newest = newest
        self._room = 4 * newest + 100
        self._watched = Watched(kit, name, stale_seconds)

    @property
    def name(self) -> str:
        return self._name

    async def mark(self) -> str:
        return await asyncio.to_thread(lambda: self._watched.mark(*self._found()))

    async def look(self) -> Look:
        return await asyncio.to_thread(lambda: self._watched.look(*self._found(), self._read))

    def _found(self) -> tuple[list[Found], int]:
        try:
            real = real_place(self._kit.root, self._path)
            with said_as_fault(self._kit.root / self._path):
                newest, total = self._newest_rows(real)
        except NotSensed as fault:
            return [Found(self._path or ".", fault=fault)], 0
        return [self._found_as(real, name, seen) for _, name, seen in newest], total

    def _newest_rows(self, real: str) -> tuple[list[_Row], int]:
        """The rows that are shown, in order, and how many files there are."""
        rows: list[_Row] = []
        total, oldest = 0, -math.inf
        for name, status in self._files(real):
            total += 1
            changed = status.st_mtime_ns
            if status.st_mode & _KIND == stat.S_IFLNK:
                rows.append(self._linked(name))
            elif changed >= oldest:
                rows.append((-changed, name, status))
            if len(rows) > self._room:
                # What is older than all of these is counted and not kept.
                rows = heapq.nsmallest(self._newest, rows)
                oldest = -rows[-1][0]
        return heapq.nsmallest(self._newest, rows), total

    def _files(self, real: str) -> Iterator[tuple[str, os.stat_result]]:
        """Everything in the folder that counts. Thousands come by here at every tick."""
        matches, is_own, beginning = self._matches, self._kit.is_own, _beginning(real)
        with os.scandir(self._kit.root / real) as entries:
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

    def _linked(self, name: str) -> _Row:
        found = find(self._kit.root, _beginning(self._path) + name, self._kit.is_own)
        return -found.changed_ns, name, found

    def _found_as(self, real: str, name: str, seen: os.stat_result | Found) -> Found:
        if isinstance(seen, Found):
            return seen
        return found_as(_beginning(self._path) + name, _beginning(real) + name, seen)

    def _read(self, found: Found) -> tuple[Condition, str, Json]:
        content = read_whole(self._kit.root, found, self._kit.file_bytes)
        return "ok", "", understand(found.place, content)


def _beginning(folder: str) -> str:
    """Of the paths of its files. The root has none."""
    return "" if folder in ("", ".") else f"{folder}/"


def _matcher(pattern: str) -> Callable[[str], object]:
    """Whether a name counts. `*.json` and the like are the usual ones, and are told quickly."""
    ending = pattern[1:]
    if pattern[:1] == "*" and not re.search(r"[*?\[]", ending):
        return operator.methodcaller("endswith", ending)
    return re.compile(fnmatch.translate(pattern)).match

"""Files that a source looks at, reached without leaving the root, and the stamp that changes with them. No pydantic."""

from __future__ import annotations

import fnmatch
import hashlib
import heapq
import math
import operator
import os
import re
import stat
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from podium.platform.safe_files import open_parent
from podium.platform.safe_open import NotFolder, NotPlainFile, open_plain

if TYPE_CHECKING:
    from podium.core.model import Json
    from podium.jobs.sense.models import Condition
    from podium.ports.engine import Clock


@dataclass(frozen=True)
class SourceDeps:
    """Dependencies of all sources of a root."""

    root: Path
    """The project folder. Sources that look at files see nothing outside it."""
    clock: Clock
    redact: Callable[[str], str]
    """Takes secrets out of a text."""
    is_own: Callable[[str], bool]
    """True if the loop itself writes this path, relative to the root. Called for every file, so it must be quick."""
    file_bytes: int = 200_000
    """Maximum size of a file that is shown; larger ones are only named."""


class NotSensed(Exception):
    """A source could not be read as it should; the look records the condition."""

    def __init__(self, condition: Condition, why: str, content: Json = None) -> None:
        super().__init__(why)
        self.condition: Condition = condition
        self.why = why
        self.content = content


def etag_of(*facts: object) -> str:
    """Hash these facts to a short text, the same in every process."""
    return hashlib.sha256(repr(facts).encode(errors="backslashreplace")).hexdigest()[:32]


def trim_cut_end(text: str) -> str:
    """Drop the last, perhaps incomplete, word of a text that was cut at its end: half a secret would not be recognised."""
    return text[: len(text) - len(re.split(r"\s", text)[-1])]


def text_tail(text: str, characters: int) -> str:
    """Return the end of a text, without an incomplete first word."""
    if len(text) <= characters:
        return text
    return "".join(re.split(r"\s", text[-characters:], maxsplit=1)[1:])


def without_login(url: str) -> str:
    """Remove the login from a URL. Other text stays as it is."""
    before, at, after = url.partition("@")
    scheme, slashes, _ = before.partition("://")
    return f"{scheme}://…@{after}" if at and slashes else url or "(no address)"


_TRIES = 3
_KINDS = {
    stat.S_IFDIR: "a folder, not a file",
    stat.S_IFIFO: "a named pipe, not a file",
    stat.S_IFSOCK: "a socket, not a file",
    stat.S_IFCHR: "a device, not a file",
    stat.S_IFBLK: "a device, not a file",
}

Signature = tuple[int, ...]
"""Device, inode, size, times of content and of properties: what changes with every write that counts."""


@dataclass(frozen=True, slots=True)
class WatchedFile:
    """A file with its status in the file system."""

    path: str
    """From the root on, as it was asked for."""
    real: str = ""
    """From the root on, with all symlinks resolved."""
    signature: Signature = ()
    changed_ns: int = 0
    problem: NotSensed | None = None
    """Reason why it cannot be read."""

    @property
    def size(self) -> int:
        return self.signature[2]

    @property
    def facts(self) -> tuple[object, ...]:
        problem = (self.problem.condition, self.problem.why) if self.problem else ()
        return (self.path, self.real, self.signature, *problem)


def find(root: Path, path: str, is_own: Callable[[str], bool]) -> WatchedFile:
    """Look up a file. Never raises for its state: that is in `problem`."""
    try:
        # Asked before it is looked for: that the loop begins to write it must not be news either.
        if is_own(os.path.normpath(path)) or is_own(real := real_path(root, path)):
            raise NotSensed("unreadable", "Podium's own loop writes it, so it is not read")
        full = root / real
        with as_not_sensed(full):
            return file_from_status(path, real, os.lstat(full))
    except NotSensed as problem:
        return WatchedFile(path, problem=problem)


def file_from_status(path: str, real: str, status: os.stat_result) -> WatchedFile:
    """Describe a file whose status is known and that is no symlink."""
    problem = None
    if not stat.S_ISREG(status.st_mode):
        kind = _KINDS.get(stat.S_IFMT(status.st_mode), "not a regular file")
        problem = NotSensed("unreadable", f"it is {kind}")
    if stat.S_ISDIR(status.st_mode):
        # Its times change with every file that is made in it, also with the loop's own.
        return WatchedFile(path, real, problem=problem)
    return WatchedFile(path, real, signature_of(status), status.st_mtime_ns, problem)


def signature_of(status: os.stat_result) -> Signature:
    return (
        status.st_dev,
        status.st_ino,
        status.st_size,
        status.st_mtime_ns,
        status.st_ctime_ns,
    )


def real_path(root: Path, path: str) -> str:
    """Resolve a path, relative to the root. Raises `NotSensed` if it does not exist or lies outside."""
    top = os.path.realpath(root)
    link = Path(top, path)
    with as_not_sensed(link):
        full = os.path.realpath(link, strict=True)
    if os.path.commonpath((top, full)) != top:
        raise NotSensed("unreadable", "it leads outside the project folder, so it is not followed")
    return os.path.relpath(full, top)


@contextmanager
def as_not_sensed(path: Path) -> Iterator[None]:
    """Turn errors of the file system into the condition of a reading."""
    try:
        yield
    except FileNotFoundError:
        if path.is_symlink():
            raise NotSensed("unreadable", "broken link") from None
        raise NotSensed("missing", "not found") from None
    except NotPlainFile:
        raise NotSensed("unreadable", "it is no longer a regular file") from None
    except NotFolder:
        raise NotSensed("unreadable", "not a directory") from None
    except OSError as error:
        raise NotSensed("unreadable", f"{error.strerror or error}".lower()) from None
    except ValueError:
        raise NotSensed("unreadable", "not a valid file name") from None


def read_whole(root: Path, file: WatchedFile, limit_bytes: int) -> bytes:
    """Read the whole file. Raises `NotSensed` if it is too large or keeps changing."""
    if file.size > limit_bytes:
        raise _too_large(file.size, limit_bytes)
    with _opened(root, file) as handle:
        for _ in range(_TRIES):
            before = signature_of(os.fstat(handle))
            content = os.pread(handle, limit_bytes + 1, 0)
            if len(content) > limit_bytes:
                raise _too_large(before[2], limit_bytes)
            if signature_of(os.fstat(handle)) == before and len(content) == before[2]:
                return content
    raise NotSensed("malformed", "it changed while it was read")


def read_end(root: Path, file: WatchedFile, limit_bytes: int) -> tuple[bytes, bool]:
    """Read the last bytes of a file; True: these are all of it."""
    with _opened(root, file) as handle:
        start = max(0, os.fstat(handle).st_size - limit_bytes)
        return os.pread(handle, limit_bytes, start), start == 0


def _too_large(size: int, limit_bytes: int) -> NotSensed:
    return NotSensed("too_large", f"it has {size} bytes; the limit is {limit_bytes}")


@contextmanager
def _opened(root: Path, file: WatchedFile) -> Iterator[int]:
    with as_not_sensed(root / file.path):
        top = Path(os.path.realpath(root))
        with open_parent(top, file.real) as (folder, name):
            handle = open_plain(name, folder)
        try:
            yield handle
        finally:
            os.close(handle)


SECOND_NS = 1_000_000_000
_SETTLE_NS = 2 * SECOND_NS
"""File systems note times in steps of up to two seconds. A file that was changed more recently may change
once more and keep its times, so it is looked at once more when it has settled."""
_KIND = 0o170000
"""Bits of a mode that say what kind of thing it is; a function call each is too much here."""

_Row = tuple[int, str, os.stat_result | WatchedFile]
"""Sorts newest first, then by name."""
IsOwn = Callable[[str], bool]
"""True if the loop itself writes this path, relative to the root."""


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

    def files(self, root: Path, is_own: IsOwn) -> tuple[Sequence[WatchedFile], int]:
        """Return the files that are shown, in order, and the total number."""
        if self.pattern is None:
            file = find(root, self.path, is_own)
            return (file,), 1 if file.signature else 0
        folder = self.path.rstrip("/")
        try:
            real = real_path(root, folder)
            with as_not_sensed(root / folder):
                rows, total = self._newest_rows(root, folder, real, is_own)
        except NotSensed as problem:
            return [WatchedFile(folder or ".", problem=problem)], 0
        return [_file_in_folder(folder, real, name, entry) for _, name, entry in rows], total

    def etag(self, files: Sequence[WatchedFile], total: int, now_ns: int) -> str:
        """Return a text that changes exactly when looking would find something else."""
        return etag_of(
            total,
            *((file.facts, self.is_stale(file, now_ns), settles(file, now_ns)) for file in files),
        )

    def is_stale(self, file: WatchedFile, now_ns: int) -> bool:
        if self.stale_seconds is None or not file.signature:
            return False
        return now_ns - file.changed_ns > int(self.stale_seconds * SECOND_NS)

    def _newest_rows(
        self, root: Path, folder: str, real: str, is_own: IsOwn
    ) -> tuple[list[_Row], int]:
        """Return the rows that are shown, in order, and the total number of files."""
        rows: list[_Row] = []
        total, oldest, capacity = 0, -math.inf, 4 * self.newest + 100
        for name, status in self._entries(root, real, is_own):
            total += 1
            changed = status.st_mtime_ns
            if status.st_mode & _KIND == stat.S_IFLNK:
                linked = find(root, _beginning(folder) + name, is_own)
                rows.append((-linked.changed_ns, name, linked))
            elif changed >= oldest:
                rows.append((-changed, name, status))
            if len(rows) > capacity:
                # What is older than all of these is counted and not kept.
                rows = heapq.nsmallest(self.newest, rows)
                oldest = -rows[-1][0]
        return heapq.nsmallest(self.newest, rows), total

    def _entries(
        self, root: Path, real: str, is_own: IsOwn
    ) -> Iterator[tuple[str, os.stat_result]]:
        """Yield the files of the folder that count. Called for thousands of files at every tick."""
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


def settles(file: WatchedFile, now_ns: int) -> bool:
    """True if it was changed so recently that its times may not show another change."""
    return bool(file.signature) and 0 <= now_ns - file.changed_ns < _SETTLE_NS


def _file_in_folder(
    folder: str, real: str, name: str, entry: os.stat_result | WatchedFile
) -> WatchedFile:
    if isinstance(entry, WatchedFile):
        return entry
    return file_from_status(_beginning(folder) + name, _beginning(real) + name, entry)


def _beginning(folder: str) -> str:
    """Return the prefix of the paths of its files; empty for the root."""
    return "" if folder in ("", ".") else f"{folder}/"


def _matcher(pattern: str) -> Callable[[str], object]:
    """Return a test of file names. `*.json` and the like are common and tested quickly."""
    ending = pattern[1:]
    if pattern[:1] == "*" and not re.search(r"[*?\[]", ending):
        return operator.methodcaller("endswith", ending)
    return re.compile(fnmatch.translate(pattern)).match

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
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from podium.core.model import Json
    from podium.jobs.sense.models import Condition
    from podium.ports.engine import Clock


@dataclass(frozen=True)
class SourceKit:
    """One for all sources of a root."""

    root: Path
    """The project folder. Sources that look at files see nothing outside it."""
    clock: Clock
    redact: Callable[[str], str]
    """Takes secrets out of a text."""
    is_own: Callable[[str], bool]
    """Whether the loop itself writes this path, from the root on. Asked for every file: it must be quick."""
    file_bytes: int = 200_000
    """What is larger is named, not shown."""


class NotSensed(Exception):
    """Something is not as it should be; what it is stands in the look."""

    def __init__(self, condition: Condition, why: str, content: Json = None) -> None:
        super().__init__(why)
        self.condition: Condition = condition
        self.why = why
        self.content = content


def mark_of(*facts: object) -> str:
    """One short text for these facts, the same in every process."""
    return hashlib.sha256(repr(facts).encode(errors="backslashreplace")).hexdigest()[:32]


def whole_words(text: str) -> str:
    """What is left of a text that was cut at its end: half a secret would not be known for one."""
    return text[: len(text) - len(re.split(r"\s", text)[-1])]


def last_words(text: str, characters: int) -> str:
    """The end of a text, likewise."""
    if len(text) <= characters:
        return text
    return "".join(re.split(r"\s", text[-characters:], maxsplit=1)[1:])


def without_login(url: str) -> str:
    """An address as it may be shown. What is none stays as it is."""
    before, at, after = url.partition("@")
    scheme, slashes, _ = before.partition("://")
    return f"{scheme}://…@{after}" if at and slashes else url or "(no address)"


_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC
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
class Found:
    """A file as the file system tells of it."""

    place: str
    """From the root on, as it was asked for."""
    real: str = ""
    """From the root on, with all symlinks resolved."""
    signature: Signature = ()
    changed_ns: int = 0
    fault: NotSensed | None = None
    """Why there is nothing to read."""

    @property
    def size(self) -> int:
        return self.signature[2]

    @property
    def facts(self) -> tuple[object, ...]:
        said = (self.fault.condition, self.fault.why) if self.fault else ()
        return (self.place, self.real, self.signature, *said)


def find(root: Path, place: str, is_own: Callable[[str], bool]) -> Found:
    """What is at this place. Never raises for what is found there."""
    try:
        # Asked before it is looked for: that the loop begins to write it must not be news either.
        if is_own(os.path.normpath(place)) or is_own(real := real_place(root, place)):
            raise NotSensed("unreadable", "Podium's own loop writes it, so it is not looked at")
        path = root / real
        with said_as_fault(path):
            return found_as(place, real, os.lstat(path))
    except NotSensed as fault:
        return Found(place, fault=fault)


def found_as(place: str, real: str, status: os.stat_result) -> Found:
    """The same, of a file whose status is known and that is no symlink."""
    fault = None
    if not stat.S_ISREG(status.st_mode):
        kind = _KINDS.get(stat.S_IFMT(status.st_mode), "not a plain file")
        fault = NotSensed("unreadable", f"it is {kind}")
    if stat.S_ISDIR(status.st_mode):
        # Its times change with every file that is made in it, also with the loop's own.
        return Found(place, real, fault=fault)
    return Found(place, real, signature_of(status), status.st_mtime_ns, fault)


def signature_of(status: os.stat_result) -> Signature:
    return (
        status.st_dev,
        status.st_ino,
        status.st_size,
        status.st_mtime_ns,
        status.st_ctime_ns,
    )


def real_place(root: Path, place: str) -> str:
    """Where it really is, from the root on. Raises `NotSensed` when it is not there or not inside."""
    top = os.path.realpath(root)
    path = Path(top, place)
    with said_as_fault(path):
        full = os.path.realpath(path, strict=True)
    if os.path.commonpath((top, full)) != top:
        raise NotSensed("unreadable", "it leads out of the project folder, so it is not followed")
    return os.path.relpath(full, top)


@contextmanager
def said_as_fault(path: Path) -> Iterator[None]:
    """Turns what the file system says into the fault of a look."""
    try:
        yield
    except FileNotFoundError:
        if path.is_symlink():
            raise NotSensed("unreadable", "it is a link that leads nowhere") from None
        raise NotSensed("missing", "it is not there") from None
    except OSError as error:
        raise NotSensed("unreadable", f"{error.strerror or error}".lower()) from None
    except ValueError:
        raise NotSensed("unreadable", "no file can have this name") from None


def read_whole(root: Path, found: Found, limit_bytes: int) -> bytes:
    """The whole file. Raises `NotSensed` when it is too large, or never stands still."""
    if found.size > limit_bytes:
        raise _too_large(found.size, limit_bytes)
    with _opened(root, found) as handle:
        for _ in range(_TRIES):
            before = signature_of(os.fstat(handle))
            content = os.pread(handle, limit_bytes + 1, 0)
            if len(content) > limit_bytes:
                raise _too_large(before[2], limit_bytes)
            if signature_of(os.fstat(handle)) == before and len(content) == before[2]:
                return content
    raise NotSensed("malformed", "it was being written while it was read")


def read_end(root: Path, found: Found, limit_bytes: int) -> tuple[bytes, bool]:
    """The last bytes of a file, and whether these are all of it."""
    with _opened(root, found) as handle:
        start = max(0, os.fstat(handle).st_size - limit_bytes)
        return os.pread(handle, limit_bytes, start), start == 0


def _too_large(size: int, limit_bytes: int) -> NotSensed:
    return NotSensed("too_large", f"it has {size} bytes; up to {limit_bytes} are read")


@contextmanager
def _opened(root: Path, found: Found) -> Iterator[int]:
    *folders, name = PurePosixPath(found.real).parts
    with said_as_fault(root / found.place):
        handle = os.open(os.path.realpath(root), _FOLDER)
        try:
            for folder in folders:
                deeper = os.open(folder, _FOLDER, dir_fd=handle)
                os.close(handle)
                handle = deeper
            file = os.open(name, _FILE, dir_fd=handle)
        finally:
            os.close(handle)
        try:
            if not stat.S_ISREG(os.fstat(file).st_mode):
                raise NotSensed("unreadable", "it is not a plain file any more")
            yield file
        finally:
            os.close(file)


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

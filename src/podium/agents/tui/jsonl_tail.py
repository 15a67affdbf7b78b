"""The end of what a program writes down of its conversation, one JSON record a line, read from where one stopped."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import BinaryIO, Protocol

from podium.agents.private_files import is_really_in, open_within, real_paths
from podium.agents.program import record_of
from podium.agents.tui.adapter import TranscriptEntry
from podium.core.model import Json

Record = Mapping[str, Json]
Read = Callable[[Record], list[TranscriptEntry]]
"""Returns the entries of a record. Takes any shape that a record may have, and raises nothing."""

MAX_LINE_BYTES = 32 * 1024 * 1024
"""A longer line is passed over. The longest answers and what tools gave are far below."""
_BLOCK_BYTES = 64 * 1024
"""Larger ones cost more than the reading: mostly little was written since."""
_DIGEST_BYTES = 4096
"""So much of a line's end tells it from others."""


class TranscriptLocation(Protocol):
    """The file that a conversation is kept in."""

    @property
    def home(self) -> Path:
        """The private home. What is behind a link in it is not read."""
        ...

    def find(self) -> Path | None:
        """The file of the home that it is in now. None: it has not begun."""
        ...

    def folders(self) -> Sequence[Path]:
        """Folders in which a change is a reason to look."""
        ...


@dataclass(frozen=True)
class NewestFile:
    """The file of a private folder that was written to last."""

    home: Path
    pattern: str
    """Of its path from the folder on, such as `*/rollout-*.jsonl`."""
    folder: str = ""
    """From the home on."""

    def find(self) -> Path | None:
        return next(self.newest_first(), None)

    def newest_first(self) -> Iterator[Path]:
        files = real_paths(self.home, self.folder, self.pattern)
        if len(files) > 1:
            files.sort(key=lambda file: (_changed(file), file), reverse=True)
        yield from files

    def folders(self) -> Sequence[Path]:
        """The folder itself, and as far down as the pattern leads."""
        depth = self.pattern.count("/")
        subfolders = [
            real_paths(self.home, self.folder, "/".join(["*"] * levels))
            for levels in range(1, depth + 1)
        ]
        first = (self.home / self.folder,) if is_really_in(self.home, self.folder) else ()
        return (*first, *(path for level in subfolders for path in level if path.is_dir()))


@dataclass(frozen=True)
class TranscriptPosition:
    """Position in a file: whole lines alone, and how the last of them is recognised."""

    path: str = ""
    offset: int = 0
    last: str = ""

    @classmethod
    def of(cls, value: Json) -> TranscriptPosition:
        """A mark as it was kept. What is none marks the beginning."""
        fields = value if isinstance(value, dict) else {}
        path, offset, last = (fields.get(name) for name in ("path", "offset", "last"))
        if isinstance(path, str) and isinstance(offset, int) and isinstance(last, str):
            return cls(path, max(offset, 0), last)
        return cls()

    @property
    def json(self) -> Json:
        return {"path": self.path, "offset": self.offset, "last": self.last}


class JsonlTail:
    """Reads what comes after a mark. Nothing is told twice, also when the file was written anew.

    Of a file that was cut, or written anew without the last line that was read, only what comes later is told.
    """

    def __init__(
        self, location: TranscriptLocation, read: Read, session: Callable[[Path | None], str]
    ) -> None:
        """`session` names the conversation by its file, None while there is none."""
        self._location = location
        self._read = read
        self._session = session
        self._begun: tuple[TranscriptPosition, int] = (TranscriptPosition(), 0)
        """Position up to which a line was searched that has only begun: no byte is looked at twice for its end."""

    @property
    def session(self) -> str:
        return self._session(self._location.find())

    def folders(self) -> Sequence[Path]:
        return self._location.folders()

    def end_position(self) -> Json:
        with opened(self._location.home, self._location.find()) as file:
            return (TranscriptPosition() if file is None else _end_of(file)).json

    def since(self, position: Json) -> tuple[list[TranscriptEntry], Json]:
        with opened(self._location.home, self._location.find()) as file:
            if file is None:
                return [], position
            at = _resume_at(file, TranscriptPosition.of(position))
            entries: list[TranscriptEntry] = []
            for line in _whole_lines(file, at.offset) if self._has_whole_lines(file, at) else ():
                at = TranscriptPosition(file.name, line.end, line.end_digest)
                entries.extend(_writable(entry) for entry in self._read(line.record))
            return entries, at.json

    def _has_whole_lines(self, file: BinaryIO, at: TranscriptPosition) -> bool:
        """Return whether a line ends after the position. One that has only begun is searched from where it was the last time."""
        position, searched = self._begun
        size = os.fstat(file.fileno()).st_size
        file.seek(searched if position == at and searched <= size else at.offset)
        while block := file.read(_BLOCK_BYTES):
            if b"\n" in block:
                return True
        self._begun = (at, file.tell())
        return False


@dataclass
class _Line:
    """A line as far as it was read, without its newline."""

    content: bytearray = field(default_factory=bytearray)
    size: int = 0
    end: int = 0
    """Offset of its end in the file, its newline included."""

    def add(self, piece: bytes) -> None:
        self.size += len(piece)
        self.content += piece
        if self.size > MAX_LINE_BYTES:
            del self.content[:-_DIGEST_BYTES]

    @property
    def record(self) -> dict[str, Json]:
        """Nothing for a line that holds none, or is too long."""
        return {} if self.size > MAX_LINE_BYTES else record_of(bytes(self.content))

    @property
    def end_digest(self) -> str:
        return _digest(bytes(self.content[-_DIGEST_BYTES:]))


def _whole_lines(file: BinaryIO, start: int) -> Iterator[_Line]:
    file.seek(start)
    line, end = _Line(), start
    while block := file.read(_BLOCK_BYTES):
        *pieces, rest = block.split(b"\n")
        for piece in pieces:
            line.add(piece)
            line.end = end = end + line.size + 1
            yield line
            line = _Line()
        line.add(rest)


def _resume_at(file: BinaryIO, position: TranscriptPosition) -> TranscriptPosition:
    """Return where to read on. A file that was written anew, or taken over by another, is searched for the last line."""
    if position.path == file.name and _last_before(file, position.offset) == position.last:
        return position
    matches = [
        line for line in _whole_lines(file, 0) if position.last and line.end_digest == position.last
    ]
    if matches:
        return TranscriptPosition(file.name, matches[-1].end, position.last)
    return _end_of(file) if position.path == file.name else TranscriptPosition(file.name)


def _end_of(file: BinaryIO) -> TranscriptPosition:
    """The end of its last whole line."""
    at = os.fstat(file.fileno()).st_size
    while at > 0:
        start = max(at - _BLOCK_BYTES, 0)
        file.seek(start)
        newline = file.read(at - start).rfind(b"\n")
        if newline >= 0:
            offset = start + newline + 1
            return TranscriptPosition(file.name, offset, _last_before(file, offset) or "")
        at = start
    return TranscriptPosition(file.name)


def _last_before(file: BinaryIO, offset: int) -> str | None:
    """Return the digest of the line that ends there. None: no line does."""
    if offset == 0:
        return ""
    start = max(offset - 1 - _DIGEST_BYTES, 0)
    file.seek(start)
    content = file.read(offset - start)
    if len(content) != offset - start or not content.endswith(b"\n"):
        return None
    return _digest(content[:-1].rpartition(b"\n")[2])


def _digest(end: bytes) -> str:
    return hashlib.sha256(end).hexdigest()


@contextmanager
def opened(home: Path, path: Path | None) -> Iterator[BinaryIO | None]:
    """The file of the home for reading. None: there is none, it is no plain one, or a link leads to it."""
    handle = None if path is None else open_within(home, path.relative_to(home))
    if path is None or handle is None:
        yield None
        return
    with open(str(path), "rb", opener=lambda *_: handle) as file:
        yield file


def _changed(path: Path) -> int:
    try:
        return path.lstat().st_mtime_ns
    except OSError:
        return 0


def _writable(entry: TranscriptEntry) -> TranscriptEntry:
    """Half a character, which JSON can name, can be neither written nor sent."""
    return replace(entry, text=entry.text.encode(errors="replace").decode())

"""A cassette: a file of recorded answers, one JSON object a line, without anybody's key."""

from __future__ import annotations

import base64
import fcntl
import json
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from podium.domain.errors import BadInput, ConfigFault, ConfigInvalid

VERSION = 1
REMOVED = b"[removed]"


@dataclass(frozen=True)
class Recorded:
    """One answer: what was asked, and each piece of what came back with its second since the request."""

    digest: str
    method: str
    path: str
    model: str
    status: int
    headers: Mapping[str, str]
    chunks: Sequence[tuple[float, bytes]]

    def line(self) -> bytes:
        """As it stands in the file."""
        record = {
            "cassette": VERSION,
            "digest": self.digest,
            "method": self.method,
            "path": self.path,
            "model": self.model,
            "status": self.status,
            "headers": dict(self.headers),
            "chunks": [{"at": round(at, 4), **_shown(data)} for at, data in self.chunks],
        }
        return json.dumps(record, ensure_ascii=False).encode() + b"\n"


def without_secrets(
    chunks: Sequence[tuple[float, bytes]], secrets: Iterable[str]
) -> list[tuple[float, bytes]]:
    """The pieces with every secret cut out, also one that two pieces share."""
    kept = list(chunks)
    for secret in {each.encode() for each in secrets}:
        kept = [(at, data.replace(secret, REMOVED)) for at, data in kept]
        whole = b"".join(data for _, data in kept)
        if secret in whole:
            kept = [(kept[0][0], whole.replace(secret, REMOVED))]
    return kept


class CassetteWriter:
    """Adds answers to a file. Each line is there whole or not at all."""

    def __init__(self, path: Path) -> None:
        """Makes the file if there is none. Raises `BadInput` where it cannot be written."""
        self._path = path
        try:
            os.close(self._opened())
        except OSError as error:
            raise BadInput(f"{str(path)!r} cannot be written: {error.strerror}") from None

    def add(self, recorded: Recorded) -> None:
        """Raises `OSError` when the line cannot be written; the file is then as before."""
        line = recorded.line()
        descriptor = self._opened()
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            end = _end_of_lines(descriptor)
            os.ftruncate(descriptor, end)  # what a crash left half written is of no use
            try:
                _write_at(descriptor, end, line)
            except OSError:
                os.ftruncate(descriptor, end)
                raise
        finally:
            os.close(descriptor)

    def _opened(self) -> int:
        return os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)


class CassetteReader:
    """Finds answers by the digest of the request; equal requests get theirs in the recorded order."""

    def __init__(self, path: Path) -> None:
        """Raises `ConfigInvalid` with the line that cannot be used."""
        self._path = path
        self._places: dict[str, list[tuple[int, int]]] = {}
        self._given: Counter[str] = Counter()
        try:
            self._index()
        except OSError as error:
            raise _invalid(path, f"cannot be read: {error.strerror}") from None

    def __len__(self) -> int:
        return sum(map(len, self._places.values()))

    def next(self, digest: str) -> Recorded | None:
        """The next answer for this request; the last one again when all were given."""
        places = self._places.get(digest)
        if not places:
            return None
        number = min(self._given[digest], len(places) - 1)
        self._given[digest] += 1
        offset, size = places[number]
        with self._path.open("rb") as file:
            file.seek(offset)
            return _recorded(json.loads(file.read(size)))

    def _index(self) -> None:
        offset = 0
        with self._path.open("rb") as file:
            for number, line in enumerate(file, start=1):
                if line.endswith(b"\n") and line.strip():
                    digest = self._checked(line, number)
                    self._places.setdefault(digest, []).append((offset, len(line)))
                offset += len(line)

    def _checked(self, line: bytes, number: int) -> str:
        try:
            return _recorded(json.loads(line)).digest
        except (ValueError, KeyError, TypeError, RecursionError):
            raise _invalid(self._path, "is no line of a cassette; record it anew", number) from None


def _recorded(data: Mapping[str, Any]) -> Recorded:
    if data["cassette"] != VERSION:
        raise ValueError("another version")
    return Recorded(
        digest=str(data["digest"]),
        method=str(data["method"]),
        path=str(data["path"]),
        model=str(data["model"]),
        status=int(data["status"]),
        headers={str(name): str(value) for name, value in dict(data["headers"]).items()},
        chunks=[(float(each["at"]), _bytes_of(each)) for each in data["chunks"]],
    )


def _shown(data: bytes) -> dict[str, str]:
    """As text where it is text; a piece may end within a character."""
    try:
        return {"text": data.decode()}
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(data).decode()}


def _bytes_of(chunk: Mapping[str, Any]) -> bytes:
    if "text" in chunk:
        return str(chunk["text"]).encode()
    return base64.b64decode(chunk["base64"], validate=True)


def _end_of_lines(descriptor: int) -> int:
    """Where the last whole line ends."""
    end = os.fstat(descriptor).st_size
    for start in _blocks_backwards(end):
        found = os.pread(descriptor, min(_BLOCK, end - start), start).rfind(b"\n")
        if found >= 0:
            return start + found + 1
    return 0


def _blocks_backwards(end: int) -> Iterator[int]:
    while end > 0:
        end = max(0, end - _BLOCK)
        yield end


def _write_at(descriptor: int, place: int, data: bytes) -> None:
    while data:
        written = os.pwrite(descriptor, data, place)
        place, data = place + written, data[written:]


def _invalid(path: Path, problem: str, line: int | None = None) -> ConfigInvalid:
    return ConfigInvalid(str(path), [ConfigFault(problem, line=line)])


_BLOCK = 64 * 1024

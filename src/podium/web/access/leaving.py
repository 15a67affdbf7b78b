"""Sessions that people have left: no cookie of theirs lets anybody in again, also after a restart."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pydantic import Field, ValidationError

from podium.domain.errors import UserMustAct
from podium.domain.model import Noun, json_of
from podium.wiring.writing import write_whole

MOST_LEFT = 10_000
MOST_BYTES = 2_000_000


class _Left(Noun):
    over_until: float = 0.0
    """Whatever ends by then is over, whether it was left or not."""
    names: dict[str, float] = Field(default_factory=dict)
    """Session → when it would have ended, in seconds of the epoch."""


class LeftBook:
    """Remembers each until it would have ended, for every process, in a file that only its owner can read.

    With too many at once, those that end first are forgotten together with all others that end by then:
    some people come in anew, and nobody comes in again who left.
    """

    def __init__(self, file: Path, most: int = MOST_LEFT) -> None:
        self._file = file
        self._most = most
        self._read_at: tuple[int, int] | None = None
        self._kept = _Left()

    def add(self, name: str, until: float, now: float) -> None:
        """Let this session be over. On return that survives a restart."""
        with self._alone():
            kept = self._fresh()
            names = {each: end for each, end in kept.names.items() if end > now}
            self._kept = _bounded(kept.over_until, {**names, name: until}, self._most)
            write_whole(self._file, json_of(self._kept), mode=0o600)
            self._read_at = None

    def has(self, name: str, until: float) -> bool:
        kept = self._fresh()
        return name in kept.names or until <= kept.over_until

    def _fresh(self) -> _Left:
        try:
            stat = self._file.stat()
        except FileNotFoundError:
            self._kept, self._read_at = _Left(), None
            return self._kept
        if self._read_at != (stat.st_mtime_ns, stat.st_ino):
            self._kept = self._read()
            self._read_at = (stat.st_mtime_ns, stat.st_ino)
        return self._kept

    def _read(self) -> _Left:
        with self._file.open("rb") as file:
            content = file.read(MOST_BYTES)
        try:
            return _Left.model_validate_json(content)
        except ValidationError as error:
            raise UserMustAct(
                f"{self._file} cannot be read, so nobody knows which sessions were left; move it away together "
                "with session.key beside it, and everybody comes in anew"
            ) from error

    @contextmanager
    def _alone(self) -> Iterator[None]:
        self._file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        lock = os.open(self._file.with_suffix(".lock"), os.O_CREAT | os.O_RDWR, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield
        finally:
            os.close(lock)


def _bounded(over_until: float, names: dict[str, float], most: int) -> _Left:
    if len(names) > most:
        over_until = max(over_until, sorted(names.values())[most // 2])
    return _Left(
        over_until=over_until,
        names={name: until for name, until in names.items() if until > over_until},
    )

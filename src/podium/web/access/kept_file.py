"""A small file of the console's own: read when it changed, changed by one process at a time."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Generic, TypeVar

from pydantic import TypeAdapter, ValidationError

from podium.domain.errors import UserMustAct
from podium.platform import make_private_folder
from podium.wiring.writing import write_whole

Kept = TypeVar("Kept")


class KeptFile(Generic[Kept]):
    """What stands in it, for its owner alone. Where there is no file, it is `nothing`."""

    def __init__(
        self,
        file: Path,
        shape: TypeAdapter[Kept],
        nothing: Kept,
        most_bytes: int,
        when_broken: str,
    ) -> None:
        """`when_broken` tells a person what to do about a file that cannot be read."""
        self._file = file
        self._shape = shape
        self._nothing = nothing
        self._most_bytes = most_bytes
        self._when_broken = when_broken
        self._read_at: tuple[int, int] | None = None
        self._kept = nothing

    def read(self) -> Kept:
        """What stands there now. Raises `UserMustAct` when that is nothing of ours."""
        try:
            stat = self._file.stat()
        except FileNotFoundError:
            return self._nothing
        if self._read_at != (stat.st_mtime_ns, stat.st_ino):
            self._kept = self._parsed()
            self._read_at = (stat.st_mtime_ns, stat.st_ino)
        return self._kept

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Nobody else changes it meanwhile, in any process: read it, then write."""
        make_private_folder(self._file.parent)
        lock = os.open(self._file.with_suffix(".lock"), os.O_CREAT | os.O_RDWR, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield
        finally:
            os.close(lock)

    def write(self, kept: Kept) -> None:
        """Put this in its place, whole or not at all. On return it survives a restart."""
        write_whole(self._file, self._shape.dump_json(kept, indent=1).decode(), mode=0o600)
        self._read_at = None

    def _parsed(self) -> Kept:
        with self._file.open("rb") as file:
            content = file.read(self._most_bytes)
        try:
            return self._shape.validate_json(content)
        except ValidationError as error:
            raise UserMustAct(f"{self._file} cannot be read, {self._when_broken}") from error

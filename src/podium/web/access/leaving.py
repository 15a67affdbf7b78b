"""Sessions that people have left: no cookie of theirs lets anybody in again, also after a restart."""

from __future__ import annotations

from pathlib import Path

from pydantic import Field, TypeAdapter

from podium.domain.model import Noun
from podium.web.access.kept_file import KeptFile

MOST_LEFT = 10_000
MOST_BYTES = 2_000_000
_WHEN_BROKEN = (
    "so nobody knows which sessions were left; move it away together with session.key beside it, and everybody comes in "
    "anew"
)


class _Left(Noun):
    over_until: float = 0.0
    """Whatever ends by then is over, whether it was left or not."""
    names: dict[str, float] = Field(default_factory=dict)
    """Session → when it would have ended, in seconds of the epoch."""


_SHAPE = TypeAdapter(_Left)


class LeftBook:
    """Remembers each until it would have ended, for every process, in a file that only its owner can read.

    With too many at once, those that end first are forgotten together with all others that end by then:
    some people come in anew, and nobody comes in again who left.
    """

    def __init__(self, file: Path, most: int = MOST_LEFT) -> None:
        self._file = KeptFile(file, _SHAPE, _Left(), MOST_BYTES, _WHEN_BROKEN)
        self._most = most

    def add(self, name: str, until: float, now: float) -> None:
        """Let this session be over. On return that survives a restart."""
        with self._file.alone():
            kept = self._file.read()
            names = {each: end for each, end in kept.names.items() if end > now}
            self._file.write(_bounded(kept.over_until, {**names, name: until}, self._most))

    def has(self, name: str, until: float) -> bool:
        kept = self._file.read()
        return name in kept.names or until <= kept.over_until


def _bounded(over_until: float, names: dict[str, float], most: int) -> _Left:
    if len(names) > most:
        over_until = max(over_until, sorted(names.values())[most // 2])
    return _Left(
        over_until=over_until,
        names={name: until for name, until in names.items() if until > over_until},
    )

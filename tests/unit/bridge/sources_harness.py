"""A root to look at, and a kit whose parts tests can see into."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from podium.jobs.sense.io import SourceDeps
from podium.jobs.sense.models import Look, Sensed
from podium.jobs.sense.ports import StateSource
from podium.testing import FixedClock

SECRET = "hunter2-hunter2"
NOON = datetime(2030, 1, 1, 12, 0, tzinfo=UTC)
LONG_AGO = NOON.timestamp() - 3600
"""When files of a rig were changed unless a test says otherwise."""


@dataclass
class Harness:
    root: Path
    clock: FixedClock = field(default_factory=lambda: FixedClock(NOON))
    own: set[str] = field(default_factory=set)
    cleaned: list[str] = field(default_factory=list)
    """Texts that were looked through for secrets."""
    file_bytes: int = 200_000

    @property
    def deps(self) -> SourceDeps:
        return SourceDeps(self.root, self.clock, self._redact, self._is_own, self.file_bytes)

    def write(self, path: str, content: str | bytes, at: float = LONG_AGO) -> Path:
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content.encode() if isinstance(content, str) else content)
        os.utime(file, (at, at))
        return file

    def _redact(self, text: str) -> str:
        self.cleaned.append(text)
        return text.replace(SECRET, "[redacted]").replace(
            "Authorization: Basic", "Authorization: -"
        )

    def _is_own(self, path: str) -> bool:
        return path in self.own


async def only(source: StateSource) -> Sensed:
    """The one thing that a source finds."""
    look = await source.look()
    assert look.mark == await source.etag()
    [sensed] = look.found
    return sensed


def names(look: Look) -> list[str]:
    return [item.place.rpartition("/")[2] for item in look.found]

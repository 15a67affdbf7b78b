"""How large a folder is and when something in it last changed, without following a link out of it."""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from podium.workspaces.git.walking import entries_within

_BLOCK_BYTES = 512


@dataclass
class Measure:
    """What was found beneath some folders."""

    bytes: int = 0
    """What it takes on the disk; a file with several names counts once."""
    changed_seconds: float = 0.0
    """Since the epoch."""

    def changed_at(self, now: datetime, earliest: datetime) -> datetime:
        """The newest change. Whoever works in a folder sets its times, so they are held to what can be."""
        latest = min(self.changed_seconds, now.timestamp())
        return datetime.fromtimestamp(max(latest, earliest.timestamp()), UTC)


def measure(*folders: Path) -> Measure:
    """Look through the folders. What cannot be looked into counts as nothing."""
    found = Measure()
    seen: set[tuple[int, int]] = set()
    for entry in entries_within(*folders):
        with suppress(OSError):
            _add(found, seen, entry.stat(follow_symlinks=False))
    return found


def _add(found: Measure, seen: set[tuple[int, int]], entry: os.stat_result) -> None:
    found.changed_seconds = max(found.changed_seconds, entry.st_mtime)
    if entry.st_nlink > 1:
        identity = (entry.st_dev, entry.st_ino)
        if identity in seen:
            return
        seen.add(identity)
    found.bytes += entry.st_blocks * _BLOCK_BYTES

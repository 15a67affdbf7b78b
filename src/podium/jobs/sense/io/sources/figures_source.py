"""Figures of the machine, coarse enough to stay the same while it idles, and the readings remembered between ticks."""

from __future__ import annotations

import asyncio
import math
import os
from datetime import datetime, timedelta
from pathlib import Path
from typing import Annotated
from urllib.parse import quote

from pydantic import Field, ValidationError

from podium.core.errors import NotPossibleNow
from podium.core.model import FrozenModel, Json, UtcDatetime, json_of
from podium.jobs.sense.io.safe_files import opened_folder, read_plain, replace_file
from podium.jobs.sense.io.sources.asked_sources import AskedSource
from podium.jobs.sense.io.sources.file_selection import SourceDeps, as_not_sensed, real_path
from podium.jobs.sense.io.tick_files import STATE
from podium.jobs.sense.models import Condition

MAX_READINGS = 8
MAX_LENGTH = timedelta(days=14)
"""Older readings say nothing of the trend."""
APART = timedelta(hours=1)
_LIMIT_BYTES = 20_000


class DiskReading(FrozenModel):
    """Fill level of the disk when it had moved on."""

    at: UtcDatetime
    percent: Annotated[int, Field(ge=0, le=100)]


class FigureMemory(FrozenModel):
    """Content of the file."""

    steps: dict[str, int] = Field(default_factory=dict)
    """Figure → the step it was at: one that lies between two stays where it is, also for the next process."""
    readings: tuple[DiskReading, ...] = ()
    """Oldest first, at least an hour apart."""

    def with_step(self, key: str, value: float) -> FigureMemory:
        """Move a figure to its next step when it is clearly beyond the present one."""
        before = self.steps.get(key)
        if before is not None and abs(value - before) < 0.75:
            return self
        return self.model_copy(update={"steps": {**self.steps, key: round(value)}})

    def with_reading(self, percent: int, now: datetime) -> FigureMemory:
        """Add a reading if the disk has moved on and the last is old enough; drop old ones."""
        # A clock that was set back leaves readings of the future behind.
        past = [reading for reading in self.readings if reading.at <= now]
        if past and (past[-1].percent == percent or now - past[-1].at < APART):
            return self
        recent = [reading for reading in past if now - reading.at <= MAX_LENGTH]
        readings = (*recent, DiskReading(at=now, percent=percent))[-MAX_READINGS:]
        return self.model_copy(update={"readings": readings})

    def disk_summary(self, percent: int) -> dict[str, Json]:
        """Summarise the readings for a planner, the present one last. Stays the same until the disk moves on."""
        moved = not self.readings or self.readings[-1].percent != percent
        readings = self.readings[-MAX_READINGS + moved :]
        percents = [reading.percent for reading in readings] + [percent] * moved
        if len(percents) < 2:
            return {"disk_readings": percents}
        trend = {
            "from": percents[0],
            "to": percent,
            "readings": len(percents),
            "hours": (readings[-1].at - readings[0].at) // timedelta(hours=1),
            "last_reading_at": readings[-1].at.isoformat(timespec="seconds"),
        }
        return {"disk_readings": percents, "disk_trend": trend}


class FiguresFile:
    """File of the readings in the loop's state. An unusable file counts as empty; one that cannot be written is ignored."""

    def __init__(self, root: Path, source: str) -> None:
        self._root = root
        self._name = f"figures-{quote(source, safe='')}.json"
        self._memory: FigureMemory | None = None

    def remembered(self) -> FigureMemory:
        if self._memory is None:
            self._memory = self._read()
        return self._memory

    def remember(self, remembered: FigureMemory) -> None:
        """Write the readings if they changed."""
        if remembered == self.remembered():
            return
        self._memory = remembered
        try:
            with opened_folder(self._root, STATE, make=True, mode=0o700) as folder:
                replace_file(folder, self._name, json_of(remembered).encode(), mode=0o600)
        except (NotPossibleNow, OSError):
            return  # this process still knows, and looking goes on

    def _read(self) -> FigureMemory:
        try:
            with opened_folder(self._root, STATE) as folder:
                return FigureMemory.model_validate_json(
                    read_plain(folder, self._name, _LIMIT_BYTES)
                )
        except (NotPossibleNow, OSError, ValidationError):
            return FigureMemory()


_PROCESSES = Path("/proc")
_PROCESSES_POWER = "processes_power_of_two"


class FiguresSource(AskedSource):
    """Use of the disk that a path lies on, load, and the order of the number of processes.

    A figure moves on when it is clearly beyond the step it was at, so that one that lies between two steps does not
    go back and forth. Where it was, and a few readings of the disk, are kept in the loop's state.
    """

    def __init__(self, deps: SourceDeps, name: str, path: str = ".") -> None:
        super().__init__(deps, name, path or ".")
        self._path = path or "."
        self._file = FiguresFile(deps.root, name)

    async def _ask(self) -> tuple[Condition, str, Json]:
        return "ok", "", await asyncio.to_thread(self._figures)

    def _figures(self) -> dict[str, Json]:
        measured = self._measured()
        memory = self._file.remembered()
        for key, value in measured.items():
            memory = memory.with_step(key, value)
        steady: dict[str, Json] = {key: memory.steps[key] for key in measured}
        if _PROCESSES_POWER in steady:
            steady["processes_about"] = 1 << steady.pop(_PROCESSES_POWER)
        percent = steady["disk_used_percent"]
        memory = memory.with_reading(percent, self._deps.clock.now())
        self._file.remember(memory)
        return {**steady, **memory.disk_summary(percent)}

    def _measured(self) -> dict[str, float]:
        real = self._deps.root / real_path(self._deps.root, self._path)
        with as_not_sensed(real):
            disk = os.statvfs(real)
        used = disk.f_blocks - disk.f_bfree
        # As `df` counts: what only the system may use is not there for others.
        figures = {"disk_used_percent": 100 * used / max(1, used + disk.f_bavail)}
        if disk.f_files:
            figures["files_used_percent"] = 100 * (disk.f_files - disk.f_ffree) / disk.f_files
        figures["load_per_core"] = os.getloadavg()[2] / (os.cpu_count() or 1)
        if processes := _processes():
            figures[_PROCESSES_POWER] = math.log2(processes)
        return figures


def _processes() -> int:
    """Count the processes, where the system shows them as files. Zero: it does not."""
    try:
        return sum(entry.name.isdecimal() for entry in _PROCESSES.iterdir())
    except OSError:
        return 0

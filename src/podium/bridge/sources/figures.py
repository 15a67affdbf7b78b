"""Figures of the machine, coarse enough that an idle machine gives the same ones at every look."""

from __future__ import annotations

import asyncio
import math
import os
from pathlib import Path

from podium.bridge.sources.asked import AskedSource
from podium.bridge.sources.finding import real_place, said_as_fault
from podium.bridge.sources.kit import SourceKit
from podium.bridge.sources.readings import FiguresFile
from podium.domain.model import Json
from podium.domain.sensing import Condition

_PROCESSES = Path("/proc")
_PROCESSES_POWER = "processes_power_of_two"


class FiguresSource(AskedSource):
    """Use of the disk that a path lies on, load, and the order of the number of processes.

    A figure moves on when it is clearly beyond the step it was at, so that one that lies between two steps does not
    go back and forth. Where it was, and a few readings of the disk, are kept in the loop's state.
    """

    def __init__(self, kit: SourceKit, name: str, path: str = ".") -> None:
        super().__init__(kit, name, path or ".")
        self._path = path or "."
        self._file = FiguresFile(kit.root, name)

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
        memory = memory.with_reading(percent, self._kit.clock.now())
        self._file.remember(memory)
        return {**steady, **memory.told(percent)}

    def _measured(self) -> dict[str, float]:
        real = self._kit.root / real_place(self._kit.root, self._path)
        with said_as_fault(real):
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
    """How many there are, where the system shows them as files. Zero: it does not."""
    try:
        return sum(each.name.isdecimal() for each in _PROCESSES.iterdir())
    except OSError:
        return 0

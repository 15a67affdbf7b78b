"""What a source of figures remembers from look to look, and from process to process: steps, and readings of the disk."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path
from typing import Annotated
from urllib.parse import quote

from pydantic import Field, ValidationError

from podium.bridge.folders import opened_folder, read_plain, replace_file
from podium.bridge.tick_files import STATE
from podium.domain.errors import NotPossibleNow
from podium.domain.model import Json, Moment, Noun, json_of

MOST_READINGS = 8
LONGEST = timedelta(days=14)
"""What is older than that when a reading is taken says nothing of its trend."""
APART = timedelta(hours=1)
_LIMIT_BYTES = 20_000


class Reading(Noun):
    """How full the disk was when it was found to have moved on."""

    at: Moment
    percent: Annotated[int, Field(ge=0, le=100)]


class Remembered(Noun):
    """What is in the file."""

    steps: dict[str, int] = Field(default_factory=dict)
    """Figure → the step it was at: one that lies between two stays where it is, also for the next process."""
    readings: tuple[Reading, ...] = ()
    """Oldest first, at least an hour apart."""

    def with_step(self, key: str, value: float) -> Remembered:
        """The figure moves on when it is clearly beyond its step."""
        before = self.steps.get(key)
        if before is not None and abs(value - before) < 0.75:
            return self
        return self.model_copy(update={"steps": {**self.steps, key: round(value)}})

    def with_reading(self, percent: int, now: datetime) -> Remembered:
        """One more reading, if the disk has moved on and the last is old enough. Old ones are forgotten with it."""
        # A clock that was set back leaves readings of the future behind.
        past = [each for each in self.readings if each.at <= now]
        if past and (past[-1].percent == percent or now - past[-1].at < APART):
            return self
        recent = [each for each in past if now - each.at <= LONGEST]
        readings = (*recent, Reading(at=now, percent=percent))[-MOST_READINGS:]
        return self.model_copy(update={"readings": readings})

    def told(self, percent: int) -> dict[str, Json]:
        """The readings as a planner sees them, the present one last. It is the same until the disk moves on."""
        moved = not self.readings or self.readings[-1].percent != percent
        known = self.readings[-MOST_READINGS + moved :]
        shown = [each.percent for each in known] + [percent] * moved
        if len(shown) < 2:
            return {"disk_readings": shown}
        trend = {
            "from": shown[0],
            "to": percent,
            "readings": len(shown),
            "hours": (known[-1].at - known[0].at) // timedelta(hours=1),
            "last_reading_at": known[-1].at.isoformat(timespec="seconds"),
        }
        return {"disk_readings": shown, "disk_trend": trend}


class FiguresFile:
    """Holds it in the loop's state. A file that cannot be used is forgotten; one that cannot be written is done without."""

    def __init__(self, root: Path, source: str) -> None:
        self._root = root
        self._name = f"figures-{quote(source, safe='')}.json"
        self._kept: Remembered | None = None

    def remembered(self) -> Remembered:
        if self._kept is None:
            self._kept = self._read()
        return self._kept

    def remember(self, remembered: Remembered) -> None:
        """Written when it differs from what was there."""
        if remembered == self.remembered():
            return
        self._kept = remembered
        try:
            with opened_folder(self._root, STATE, make=True, mode=0o700) as folder:
                replace_file(folder, self._name, json_of(remembered).encode(), mode=0o600)
        except (NotPossibleNow, OSError):
            return  # this process still knows, and looking goes on

    def _read(self) -> Remembered:
        try:
            with opened_folder(self._root, STATE) as folder:
                return Remembered.model_validate_json(read_plain(folder, self._name, _LIMIT_BYTES))
        except (NotPossibleNow, OSError, ValidationError):
            return Remembered()

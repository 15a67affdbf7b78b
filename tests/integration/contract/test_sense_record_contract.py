"""Contract of every record of a sense loop: one loop at a time, and memory that lasts."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Protocol

import pytest

from podium.core.errors import LockHeld
from podium.core.model import Json
from podium.jobs.sense.models import Bundle, Look, PlannerStatus, Sensed, SenseMemory, TickOutcome
from podium.jobs.sense.ports import SenseRecord
from podium.jobs.sense.testing import MemorySenseRecord
from tests.integration.bridge.test_record import FILES, MEMORY, record_at
from tests.integration.contract.test_inbox_contract import NOON

BUNDLE = Bundle(
    root="/srv/x",
    looks=(Look(source="health", found=(Sensed(source="health", place="h.json", content=1),)),),
)


class Room(Protocol):
    """A root, its record, and what can be read of it from outside."""

    def record(self) -> SenseRecord:
        """The record as another process would open it."""
        ...

    def lines(self, kind: str) -> list[str]: ...
    def telemetry(self) -> int:
        """Return the number of ticks recorded in the telemetry."""
        ...

    def refuse_memory(self) -> None:
        """From now on memory cannot be written."""
        ...

    def take_memory(self) -> None:
        """From now on it can again."""
        ...


class OnFiles:
    def __init__(self, root: Path) -> None:
        self._root = root

    def record(self) -> SenseRecord:
        return record_at(self._root)

    def lines(self, kind: str) -> list[str]:
        return self._read(FILES.log if kind == "main" else FILES.parser_log)

    def telemetry(self) -> int:
        return len(self._read(FILES.telemetry))

    def refuse_memory(self) -> None:
        (self._root / ".podium/sense/memory.json").mkdir(parents=True)

    def take_memory(self) -> None:
        (self._root / ".podium/sense/memory.json").rmdir()

    def _read(self, place: str) -> list[str]:
        file = self._root / place
        return file.read_text().splitlines() if file.exists() else []


class InMemory:
    def __init__(self) -> None:
        self._record = MemorySenseRecord()

    def record(self) -> SenseRecord:
        return self._record

    def lines(self, kind: str) -> list[str]:
        return self._record.lines if kind == "main" else self._record.parser_lines

    def telemetry(self) -> int:
        return len(self._record.outcomes)

    def refuse_memory(self) -> None:
        self._record.problem = "the disk is full"

    def take_memory(self) -> None:
        self._record.problem = ""


ROOMS: dict[str, Callable[[Path], Room]] = {
    "FileRecord": OnFiles,
    "MemorySenseRecord": lambda root: InMemory(),
}


@pytest.fixture(params=list(ROOMS.values()), ids=list(ROOMS))
def room(request: pytest.FixtureRequest, tmp_path: Path) -> Room:
    made: Room = request.param(tmp_path)
    return made


def test_the_first_memory_is_a_fresh_one(room: Room) -> None:
    assert room.record().memory() == SenseMemory()


def test_what_was_remembered_comes_back_to_whoever_opens_the_record_next(room: Room) -> None:
    room.record().remember(MEMORY)
    assert room.record().memory() == MEMORY
    room.record().remember(MEMORY.model_copy(update={"ticks": 8}))
    assert room.record().memory().ticks == 8


def test_persistence_is_reported_and_a_loop_continues_without_it(room: Room) -> None:
    record = room.record()
    room.refuse_memory()
    with record.alone():
        assert record.remember(MEMORY) is False
        assert record.memory() == MEMORY
        assert len(record.problems) == 1
    assert record.memory() == SenseMemory(), "others may have ticked here since"
    room.take_memory()
    with record.alone():
        assert record.remember(MEMORY) is True
    assert list(record.problems) == []
    assert room.record().memory() == MEMORY


def test_one_loop_at_a_time_and_the_next_one_after_it(room: Room) -> None:
    with room.record().alone():
        with pytest.raises(LockHeld), room.record().alone():
            pass
        room.record().remember(MEMORY)
    with room.record().alone():
        assert room.record().memory() == MEMORY


def test_a_loop_that_broke_off_leaves_no_lock(room: Room) -> None:
    with pytest.raises(ValueError, match="broken"), room.record().alone():
        raise ValueError("broken")
    with room.record().alone():
        pass


def test_lines_go_to_the_log_they_are_for(room: Room) -> None:
    record = room.record()
    record.log("a word", at=NOON)
    record.log("a skipped item", at=NOON, kind="parser")
    [main], [parser] = room.lines("main"), room.lines("parser")
    assert main.endswith("a word")
    assert parser.endswith("a skipped item")
    assert list(record.problems) == []


def test_a_tick_that_ended_is_one_summary_and_one_record(room: Room) -> None:
    outcome = TickOutcome(tick=3, at=NOON, mode="sensing", status=PlannerStatus.SKIPPED)
    room.record().tick_ended(outcome)
    [line] = room.lines("main")
    assert line.endswith(outcome.summary())
    assert room.telemetry() == 1


@pytest.mark.parametrize("document", [{"items": []}, None, ["odd"], "\ud800 half a character"])
def test_any_planner_output_is_kept_and_breaks_nothing(room: Room, document: Json) -> None:
    record = room.record()
    assert record.keep_bundle(BUNDLE).endswith("context_bundle.json")
    assert record.keep_plan(document).endswith("plan.json")
    assert list(record.problems) == []

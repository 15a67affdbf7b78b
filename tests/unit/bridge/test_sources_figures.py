"""Figures of the machine: coarse, steady from process to process, with a few readings of the disk."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from podium.core.model import Json
from podium.jobs.sense.io import FiguresSource
from podium.jobs.sense.models import Bundle
from podium.jobs.sense.planning.rules import load_rules, plan_by_rules
from tests.unit.bridge.sources_harness import Harness, only

HOUR = 3600.0
DAY = 24 * HOUR
Fill = Callable[[float], None]


@pytest.fixture
def harness(tmp_path: Path) -> Harness:
    return Harness(tmp_path)


@pytest.fixture
def fill(monkeypatch: pytest.MonkeyPatch) -> Fill:
    """Says how full the disk is. Patched, for a test cannot fill a disk; the rest of the machine stands still too."""

    def to(percent: float) -> None:
        used = round(percent * 100)
        disk = SimpleNamespace(f_blocks=10_000, f_bfree=10_000 - used, f_bavail=10_000 - used, f_files=0)  # fmt: skip
        monkeypatch.setattr(os, "statvfs", lambda _: disk)

    monkeypatch.setattr(os, "getloadavg", lambda: (0.0, 0.0, 0.0))
    monkeypatch.setattr("podium.jobs.sense.io.sources.figures_source._PROCESSES", Path("/nowhere"))
    return to


def state_file(harness: Harness) -> Path:
    return harness.root / ".podium/sense/figures-machine.json"


async def content(harness: Harness) -> dict[str, Any]:
    """As a process sees it that has just begun."""
    found: Json = (await only(FiguresSource(harness.deps, "machine"))).content
    return dict(found)


async def readings(harness: Harness) -> list[int]:
    return list((await content(harness))["disk_readings"])


async def risen(
    harness: Harness, fill: Fill, *percents: float, every: float = HOUR
) -> dict[str, Any]:
    """Return the content after the disk was filled to these percentages, one after the other."""
    for percent in percents:
        fill(percent)
        await content(harness)
        harness.clock.advance(every)
    return await content(harness)


async def planned(harness: Harness) -> list[str]:
    """Summaries of what the rules that come with Podium say of the figures."""
    look = await FiguresSource(harness.deps, "figures").look()
    bundle = Bundle(root=str(harness.root), looks=(look,))
    plan = plan_by_rules(load_rules(None).book, bundle, now=harness.clock.now())
    return [item["wo_suggestion"]["summary"] for item in plan["items"]]


async def test_figures_are_coarse_and_the_same_at_every_look(harness: Harness) -> None:
    source = FiguresSource(harness.deps, "machine")
    found = (await only(source)).content
    assert 0 <= found["disk_used_percent"] <= 100
    assert found.pop("disk_readings") == [found["disk_used_percent"]]
    assert all(isinstance(value, int) for value in found.values())
    assert {await source.etag() for _ in range(20)} == {(await source.look()).mark}


async def test_an_idle_machine_gives_the_same_look_for_ever_and_nothing_is_written(
    harness: Harness, fill: Fill
) -> None:
    await risen(harness, fill, 70, 75, 80)
    mark, written = await FiguresSource(harness.deps, "machine").etag(), state_file(harness).stat()
    for _ in range(40):
        harness.clock.advance(3 * DAY)
        assert await FiguresSource(harness.deps, "machine").etag() == mark
    assert state_file(harness).stat() == written


async def test_a_figure_between_two_steps_does_not_go_back_and_forth_between_processes(
    harness: Harness, fill: Fill
) -> None:
    shown = []
    for percent in (57.4, 57.6, 57.4, 57.74, 58.0, 57.3, 57.2):
        fill(percent)
        shown.append((await content(harness))["disk_used_percent"])
    assert shown == [57, 57, 57, 57, 58, 58, 57]


async def test_a_reading_is_taken_when_the_disk_moved_on_and_an_hour_has_passed(
    harness: Harness, fill: Fill
) -> None:
    fill(80)
    assert await readings(harness) == [80]
    fill(82)
    assert await readings(harness) == [80, 82]
    fill(83)
    harness.clock.advance(HOUR - 1)
    assert await readings(harness) == [80, 83]  # 82 was too soon to be kept
    harness.clock.advance(1)
    assert await readings(harness) == [80, 83]
    fill(85)
    assert await readings(harness) == [80, 83, 85]


async def test_at_most_eight_readings_are_kept_and_old_ones_go_with_the_next(
    harness: Harness, fill: Fill
) -> None:
    seen = await risen(harness, fill, *range(60, 72))
    assert seen["disk_readings"] == [*range(64, 72)]
    assert (seen["disk_trend"]["readings"], seen["disk_trend"]["hours"]) == (8, 7)
    harness.clock.advance(timedelta(days=14).total_seconds() - 2 * HOUR)
    fill(72)
    assert await readings(harness) == [70, 71, 72]


async def test_emptied_disk_is_reported_too(harness: Harness, fill: Fill) -> None:
    assert (await risen(harness, fill, 80, 90, 40))["disk_readings"] == [80, 90, 40]


@pytest.mark.parametrize(
    "garbage",
    [
        "",
        "{",
        "[]",
        '{"steps": {"disk_used_percent": 1e400}}',
        '{"readings": [{"at": "yesterday", "percent": 3}]}',
        '{"readings": [{"at": "2029-12-31T00:00:00Z", "percent": 3000}]}',
        "[" * 100_000,
    ],
)
async def test_what_was_remembered_is_forgotten_when_it_is_garbage(
    harness: Harness, fill: Fill, garbage: str
) -> None:
    fill(80)
    harness.write(".podium/sense/figures-machine.json", garbage)
    assert await readings(harness) == [80]
    fill(81)
    assert await readings(harness) == [80, 81]


async def test_readings_of_the_future_count_no_more_when_the_disk_moves_on(
    harness: Harness, fill: Fill
) -> None:
    future = '{"readings": [{"at": "2031-01-01T00:00:00Z", "percent": 70}]}'
    harness.write(".podium/sense/figures-machine.json", future)
    fill(80)
    assert await readings(harness) == [80]


async def test_only_the_owner_may_read_what_is_remembered(harness: Harness, fill: Fill) -> None:
    fill(80)
    await content(harness)
    assert stat.S_IMODE(state_file(harness).stat().st_mode) == 0o600
    assert stat.S_IMODE(state_file(harness).parent.stat().st_mode) == 0o700


async def test_where_nothing_can_be_kept_a_source_still_looks_and_stays_steady(
    harness: Harness, fill: Fill
) -> None:
    harness.write(".podium", "a file in the way")
    source = FiguresSource(harness.deps, "machine")
    fill(57.4)
    mark = await source.etag()
    fill(57.6)
    assert (await source.look()).mark == mark
    assert (await only(source)).condition == "ok"


async def test_a_name_leads_nowhere_else(harness: Harness, fill: Fill) -> None:
    fill(80)
    await FiguresSource(harness.deps, "../../up").look()
    assert [path.name for path in (harness.root / ".podium/sense").iterdir()] == [
        "figures-..%2F..%2Fup.json"
    ]


async def test_figures_of_a_place_that_is_not_there_are_missing(harness: Harness) -> None:
    assert (await only(FiguresSource(harness.deps, "machine", "gone"))).condition == "missing"
    (harness.root / "out").symlink_to("/")
    assert (await only(FiguresSource(harness.deps, "machine", "out"))).condition == "unreadable"


async def test_rules_report_a_disk_that_rose_over_hours_with_its_start_and_end(
    harness: Harness, fill: Fill
) -> None:
    for percent in (80, 82):
        fill(percent)
        assert await planned(harness) == []
        harness.clock.advance(3 * HOUR)
    fill(85)
    assert await planned(harness) == [
        "It rose from 80 to 85 % in 6 hours; the readings are [80, 82, 85] (.)"
    ]
    harness.clock.advance(4 * DAY)
    assert await planned(harness) == []  # it does not rise any more


async def test_a_disk_that_filled_within_an_hour_or_once_is_no_trend(
    harness: Harness, fill: Fill
) -> None:
    for percent, minutes in ((80, 60), (82, 10), (83, 10)):
        fill(percent)
        assert await planned(harness) == []
        harness.clock.advance(60 * minutes)

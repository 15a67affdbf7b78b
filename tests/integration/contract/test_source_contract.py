"""Contract of every source: it looks, reports the state that it finds, and never breaks a tick."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

import pytest

from podium.core.processes import Confinement
from podium.jobs.sense.io import (
    CommandSource,
    FileSource,
    FolderSource,
    GitSource,
    LogSource,
    SourceDeps,
)
from podium.jobs.sense.models import Sensed
from podium.jobs.sense.ports import StateSource
from podium.jobs.sense.testing import FixedSource
from podium.sandbox import LauncherSettings, ProcessLauncher
from podium.testing import FixedClock
from tests.unit.bridge.sources_harness import NOON

EARLIER = NOON.timestamp() - 3600


class Place(Protocol):
    """Something to look at that can be changed."""

    def source(self) -> StateSource:
        """A source that knows nothing yet, as in another process."""
        ...

    def say(self, text: str) -> None: ...
    def vanish(self) -> None: ...


class FilePlace:
    """A file beneath a root, looked at by one of the sources of `bridge`."""

    def __init__(self, root: Path, make: Callable[[SourceDeps], StateSource]) -> None:
        self._root, self._make = root, make
        self._file = root / "place" / "said.txt"
        self._file.parent.mkdir(parents=True)
        self._written = 0

    def source(self) -> StateSource:
        deps = SourceDeps(self._root, FixedClock(NOON), lambda text: text, lambda path: False)
        return self._make(deps)

    def say(self, text: str) -> None:
        self._file.write_text(f"{text}\n")
        self._written += 1
        at = EARLIER + self._written
        os.utime(self._file, (at, at))

    def vanish(self) -> None:
        self._file.unlink()


class FixedPlace:
    """The fake, which is its own place."""

    def __init__(self) -> None:
        self._source = FixedSource("state")

    def source(self) -> StateSource:
        return self._source

    def say(self, text: str) -> None:
        self._source.show("place/said.txt", f"{text}\n")

    def vanish(self) -> None:
        self._source.show("place/said.txt", condition="missing", why="not found")


def _launcher() -> ProcessLauncher:
    return ProcessLauncher(LauncherSettings())


PLACES: dict[str, Callable[[Path], Place]] = {
    "FixedSource": lambda root: FixedPlace(),
    "FileSource": lambda root: FilePlace(root, lambda deps: FileSource(deps, "state", "place/said.txt")),
    "FolderSource": lambda root: FilePlace(root, lambda deps: FolderSource(deps, "state", "place")),
    "LogSource": lambda root: FilePlace(root, lambda deps: LogSource(deps, "state", "place/said.txt")),
    "CommandSource": lambda root: FilePlace(
        root,
        lambda deps: CommandSource(
            deps, "state", ("cat", "place/said.txt"), launcher=_launcher(), confine=Confinement
        ),
    ),
}  # fmt: skip
UNREACHABLE: dict[str, Callable[[SourceDeps], StateSource]] = {
    "FileSource": lambda deps: FileSource(deps, "state", "../outside"),
    "FolderSource": lambda deps: FolderSource(deps, "state", "nowhere"),
    "LogSource": lambda deps: LogSource(deps, "state", "nowhere.log"),
    "GitSource": lambda deps: GitSource(deps, "state", "nowhere", launcher=_launcher()),
    "CommandSource": lambda deps: CommandSource(
        deps, "state", ("no-such-program",), launcher=_launcher(), confine=Confinement
    ),
}


@pytest.fixture(params=list(PLACES.values()), ids=list(PLACES))
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    made: Place = request.param(tmp_path)
    made.say("all is well")
    return made


async def test_look_reports_what_is_there_with_its_source_and_its_mark(place: Place) -> None:
    source = place.source()
    look = await source.look()
    [sensed] = look.found
    assert (look.source, sensed.source, look.total) == ("state", source.name, 1)
    assert sensed.condition == "ok"
    assert "all is well" in str(sensed.content)
    assert look.mark == await source.etag()


async def test_the_mark_is_the_same_while_nothing_changes_also_in_another_process(
    place: Place,
) -> None:
    first, second = place.source(), place.source()
    before = await first.etag()
    assert await first.etag() == before
    assert (await first.look()).mark == before
    assert await second.etag() == before


async def test_what_changed_changes_the_mark_and_is_seen(place: Place) -> None:
    source = place.source()
    before = await source.etag()
    place.say("the disk is full")
    assert await source.etag() != before
    [sensed] = (await source.look()).found
    assert "the disk is full" in str(sensed.content)


async def test_what_vanished_changes_the_mark_and_breaks_nothing(place: Place) -> None:
    source = place.source()
    before = await source.etag()
    place.vanish()
    assert await source.etag() != before
    found = (await source.look()).found
    assert not any(_says_all_is_well(item) for item in found)


@pytest.mark.parametrize("make", UNREACHABLE.values(), ids=list(UNREACHABLE))
async def test_unreadable_source_is_reported_and_nothing_is_raised(
    tmp_path: Path, make: Callable[[SourceDeps], StateSource]
) -> None:
    source = make(SourceDeps(tmp_path, FixedClock(NOON), str, lambda path: False))
    assert await source.etag()
    [sensed] = (await source.look()).found
    assert sensed.condition != "ok"
    assert sensed.why


async def test_fake_finds_what_it_is_given_and_counts_how_often_it_was_asked() -> None:
    source = FixedSource("acks", {"a": {"status": "done"}, "b": 1})
    source.hide("b")
    look = await source.look()
    assert [(item.place, item.content) for item in look.found] == [("a", {"status": "done"})]
    assert await source.etag() == look.mark
    assert (source.looks, source.etags_read) == (1, 1)


def _says_all_is_well(sensed: Sensed) -> bool:
    return "all is well" in str(sensed.content)

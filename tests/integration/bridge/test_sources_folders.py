"""Folders of many files: the newest are shown, the others counted, and what did not change is not read again."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from podium.jobs.sense.io import FileSource, FolderSource, LogSource
from podium.jobs.sense.models import Look
from podium.jobs.sense.ports import StateSource
from tests.soaking import examples
from tests.unit.bridge.sources_harness import LONG_AGO, NOON, Harness, names


@pytest.fixture
def harness(tmp_path: Path) -> Harness:
    return Harness(tmp_path)


def acks(harness: Harness, newest: int = 20, stale_seconds: float | None = None) -> FolderSource:
    return FolderSource(
        harness.deps,
        "acks",
        "acks",
        pattern="*.ack.json",
        newest=newest,
        stale_seconds=stale_seconds,
    )


async def test_the_newest_files_are_shown_and_all_are_counted(harness: Harness) -> None:
    for number in range(30):
        harness.write(f"acks/{number:02}.ack.json", str(number), at=LONG_AGO + number % 10)
    look = await acks(harness, newest=4).look()
    assert [item.content for item in look.found] == [9, 19, 29, 8]
    assert look.total == 30
    assert look.found[0].provenance == "acks:acks/09.ack.json"
    assert look.found[0].seen_at is not None


async def test_newest_of_very_many_are_found_even_among_files_of_the_same_time(
    harness: Harness,
) -> None:
    ages = {f"{number:04}": number * 7919 % 5 for number in range(700)}
    for name, age in ages.items():
        harness.write(f"acks/{name}.ack.json", name, at=LONG_AGO - age)
    for newest in (1, 3, 150):
        look = await acks(harness, newest=newest).look()
        expected = sorted(ages, key=lambda name: (ages[name], name))[:newest]
        assert names(look) == [f"{name}.ack.json" for name in expected]
        assert look.total == 700


async def test_only_files_of_the_pattern_count_and_none_that_is_not_complete(
    harness: Harness,
) -> None:
    for name in ("a.ack.json", ".a.ack.json", "b.json", "c.ack.json.tmp", "under/d.ack.json"):
        harness.write(f"acks/{name}", "1")
    (harness.root / "acks/folder.ack.json").mkdir()
    assert names(await acks(harness).look()) == ["a.ack.json"]
    every = FolderSource(harness.deps, "all", "acks/")
    assert sorted(names(await every.look())) == ["a.ack.json", "b.json", "c.ack.json.tmp"]
    picked = FolderSource(harness.deps, "some", "acks", pattern="[a-b]*.json")
    assert sorted(names(await picked.look())) == ["a.ack.json", "b.json"]


async def test_the_root_itself_may_be_the_folder(harness: Harness) -> None:
    harness.write("a.json", "1")
    harness.write("b.json", "2")
    harness.own.add("b.json")
    for path in (".", ""):
        look = await FolderSource(harness.deps, "top", path, pattern="*.json").look()
        assert [(item.place, item.content) for item in look.found] == [("a.json", 1)]


async def test_missing_empty_or_invalid_folder_is_reported(harness: Harness) -> None:
    missing = await acks(harness).look()
    assert (missing.total, missing.found[0].condition) == (0, "missing")
    (harness.root / "acks").mkdir()
    empty = await acks(harness).look()
    assert (empty.total, empty.found) == (0, ())
    assert empty.mark != missing.mark
    (harness.root / "acks").rmdir()
    harness.write("acks", "a file")
    assert (await acks(harness).look()).found[0].condition == "unreadable"


async def test_one_bad_file_says_so_and_the_others_are_read(harness: Harness) -> None:
    harness.write("acks/good.ack.json", "1", at=LONG_AGO + 3)
    harness.write("acks/half.ack.json", '{"wo', at=LONG_AGO + 2)
    os.mkfifo(harness.root / "acks/pipe.ack.json")
    os.utime(harness.root / "acks/pipe.ack.json", (LONG_AGO + 1, LONG_AGO + 1))
    (harness.root / "acks/out.ack.json").symlink_to("/etc/passwd")
    harness.write(os.fsdecode(b"acks/\xff.ack.json"), "2", at=LONG_AGO)
    look = await acks(harness).look()
    assert [item.condition for item in look.found] == [
        "ok", "malformed", "unreadable", "ok", "unreadable",
    ]  # fmt: skip
    assert look.total == 5
    assert look.found[3].place == "acks/?.ack.json"


async def test_what_did_not_change_is_not_opened_again(
    harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(5):
        harness.write(f"acks/{number}.ack.json", str(number))
    harness.write("app.log", "one\n")
    sources = (acks(harness), FileSource(harness.deps, "one", "acks/0.ack.json"))
    log = LogSource(harness.deps, "log", "app.log")
    first = [await item.look() for item in (*sources, log)]
    opened: list[str] = []
    real = os.open

    def counted(path: str | Path, *flags: int, **options: int) -> int:
        opened.append(os.fspath(path))
        return real(path, *flags, **options)

    # Whether a file was read cannot be seen from outside.
    monkeypatch.setattr(os, "open", counted)
    assert [await item.look() for item in (*sources, log)] == first
    assert opened == []
    harness.write("acks/3.ack.json", "33", at=LONG_AGO + 1)
    assert (await sources[0].look()).found[0].content == 33
    assert [name for name in opened if name.endswith(".json")] == ["3.ack.json"]


async def test_asking_for_the_mark_reads_nothing_in_a_new_process_too(
    harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    harness.write("acks/0.ack.json", "0")
    harness.write("health.json", "{}")
    before = [
        (await acks(harness).look()).mark,
        (await FileSource(harness.deps, "h", "health.json").look()).mark,
    ]
    monkeypatch.delattr(os, "open")
    assert [
        await acks(harness).etag(),
        await FileSource(harness.deps, "h", "health.json").etag(),
    ] == before


def test_two_processes_give_the_same_mark(harness: Harness) -> None:
    for number in range(5):
        harness.write(f"acks/ä{number}.ack.json", "1")
    program = (
        "import asyncio, sys; from pathlib import Path\n"
        "from podium.testing import FixedClock; from podium.jobs.sense.io import FolderSource, SourceDeps\n"
        "kit = SourceDeps(Path(sys.argv[1]), FixedClock(), str, lambda path: False)\n"
        "print(asyncio.run(FolderSource(kit, 'acks', 'acks').etag()))"
    )
    marks = {
        subprocess.run(
            [sys.executable, "-c", program, str(harness.root)],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(marks) == 1


@pytest.mark.parametrize("act", ["write", "add", "remove", "touch", "replace", "chmod", "older"])
async def test_every_change_that_a_look_would_show_changes_the_mark(
    harness: Harness, act: str
) -> None:
    file = harness.write("acks/0.ack.json", "0")
    harness.write("acks/1.ack.json", "1", at=LONG_AGO - 1)
    source = acks(harness)
    before = await source.etag()
    if act == "write":
        harness.write("acks/0.ack.json", "7")  # same size, same time
    elif act == "add":
        harness.write("acks/2.ack.json", "2")
    elif act == "remove":
        file.unlink()
    elif act == "touch":
        os.utime(file, (LONG_AGO + 5, LONG_AGO + 5))
    elif act == "replace":
        os.replace(harness.write("draft", "7"), file)
    elif act == "chmod":
        file.chmod(0o600)
    else:
        harness.write("acks/0.ack.json", "0", at=LONG_AGO - 5)
    assert await source.etag() != before
    assert (await source.look()).mark == await source.etag()


async def test_a_change_to_a_file_that_is_not_shown_changes_nothing(harness: Harness) -> None:
    harness.write("acks/new.ack.json", "1")
    harness.write("acks/old.ack.json", "2", at=LONG_AGO - 10)
    source = acks(harness, newest=1)
    before = await source.look()
    harness.write("acks/old.ack.json", "3", at=LONG_AGO - 9)
    assert await source.look() == before


async def test_what_the_loop_writes_itself_is_neither_shown_nor_counted_nor_a_change(
    harness: Harness,
) -> None:
    harness.write("acks/a.ack.json", "1")
    harness.write("app.log", "one\n")
    harness.own |= {"acks/own.ack.json", "app.log"}
    sources = (acks(harness), LogSource(harness.deps, "log", "app.log"))
    before = [await source.look() for source in sources]
    harness.write("acks/own.ack.json", "2", at=LONG_AGO + 100)
    harness.write("app.log", "one\ntwo\n", at=LONG_AGO + 100)
    (harness.root / "acks/link.ack.json").symlink_to("own.ack.json")
    after = [await source.look() for source in sources]
    assert after[1] == before[1]
    assert after[1].found[0].condition == "unreadable"
    assert names(after[0]) == ["a.ack.json", "link.ack.json"]
    assert after[0].found[1].content is None
    (harness.root / "acks/link.ack.json").unlink()
    assert await sources[0].look() == before[0]


async def test_that_the_loop_begins_to_write_is_no_change(harness: Harness) -> None:
    (harness.root / "logs").mkdir()
    (harness.root / "link").symlink_to("logs")
    harness.own |= {"logs/loop.log"}
    sources: list[StateSource] = [
        LogSource(harness.deps, "log", "logs/loop.log"),
        LogSource(harness.deps, "around", "logs/../logs/loop.log"),
        FolderSource(harness.deps, "top", "."),
        FolderSource(harness.deps, "logs", "logs"),
    ]
    before = [await source.look() for source in sources]
    harness.write("logs/loop.log", "a line\n", at=LONG_AGO + 100)
    assert [await source.look() for source in sources] == before
    assert [await source.etag() for source in sources] == [item.mark for item in before]


async def test_a_file_grows_stale_without_being_read_again_and_that_changes_the_mark(
    harness: Harness,
) -> None:
    harness.write("acks/a.ack.json", "1", at=NOON.timestamp() - 50)
    source = acks(harness, stale_seconds=60)
    fresh = await source.look()
    harness.clock.advance(9)
    assert await source.look() == fresh
    harness.clock.advance(2)
    read_before = len(harness.cleaned)
    stale = await source.look()
    assert (fresh.found[0].stale, stale.found[0].stale) == (False, True)
    assert stale.mark != fresh.mark
    assert len(harness.cleaned) == read_before
    harness.clock.advance(1_000)
    assert await source.look() == stale


async def test_just_changed_file_is_reread_until_its_time_reveals_changes(
    harness: Harness,
) -> None:
    now = NOON.timestamp()
    harness.write("acks/a.ack.json", "1", at=now - 1)
    source = acks(harness)
    before = await source.look()
    file = harness.root / "acks/a.ack.json"
    known = source._cache
    assert known == {}
    file.write_text("2")
    os.utime(file, (now - 1, now - 1))
    assert (await source.look()).found[0].content == 2
    harness.clock.advance(2)
    settled = await source.look()
    assert settled.mark != before.mark
    assert set(source._cache) == {"acks/a.ack.json"}
    assert await source.etag() == settled.mark


@pytest.mark.parametrize("at", [-(2.0**33), 0.0, 2.0**38])
async def test_times_beyond_every_calendar_break_nothing(harness: Harness, at: float) -> None:
    file = harness.write("acks/a.ack.json", "1")
    try:
        os.utime(file, (at, at))
    except OSError:
        pytest.skip("this file system does not know such times")
    look = await acks(harness, stale_seconds=60).look()
    assert look.found[0].content == 1


async def test_a_file_that_vanishes_between_listing_and_reading_is_missing(
    harness: Harness,
) -> None:
    harness.write("acks/a.ack.json", "1")
    source = acks(harness)
    files, total = source._files()
    (harness.root / "acks/a.ack.json").unlink()
    look = source._look(files, total)
    assert look.found[0].condition == "missing"


FILES = st.dictionaries(
    st.text("abc", min_size=1, max_size=3),
    st.tuples(st.integers(0, 5), st.integers() | st.text(max_size=5)),
    max_size=12,
)


@given(files=FILES, newest=st.integers(1, 5), reverse=st.booleans())
@settings(
    max_examples=examples(40),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
async def test_the_same_files_give_the_same_look_in_whatever_order_they_came(
    files: dict[str, tuple[int, object]],
    newest: int,
    reverse: bool,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    looks: list[Look] = []
    for turned in (False, reverse):
        harness = Harness(tmp_path_factory.mktemp("root"))
        (harness.root / "acks").mkdir()
        for name in sorted(files, reverse=turned):
            at, content = files[name]
            harness.write(f"acks/{name}.ack.json", json.dumps(content), at=LONG_AGO + at)
        source = acks(harness, newest=newest)
        looks.append(await source.look())
        assert await source.look() == looks[-1]
        assert await source.etag() == looks[-1].mark
    assert looks[0].found == looks[1].found
    expected = sorted(files, key=lambda name: (-files[name][0], f"{name}.ack.json"))[:newest]
    assert names(looks[0]) == [f"{name}.ack.json" for name in expected]
    assert [item.content for item in looks[0].found] == [files[name][1] for name in expected]

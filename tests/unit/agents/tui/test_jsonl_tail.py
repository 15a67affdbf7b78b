"""Reading of a program's transcript: once, whole, and from the last position."""

from __future__ import annotations

import json
import os
import shutil
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from podium.agents.tui import jsonl_tail
from podium.agents.tui.adapter import TranscriptEntry
from podium.agents.tui.jsonl_tail import JsonlTail, NewestFile, Record
from podium.core.model import Json
from tests.soaking import examples


def words(record: Record) -> list[TranscriptEntry]:
    return [TranscriptEntry("words", str(record["say"]))] if "say" in record else []


def name_of(path: Path | None) -> str:
    return path.stem if path else ""


def tail_of(folder: Path, pattern: str = "*.jsonl") -> JsonlTail:
    return JsonlTail(NewestFile(folder, pattern), words, name_of)


def say(path: Path, *texts: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as file:
        file.writelines(json.dumps({"say": text}) + "\n" for text in texts)


def read_lines(tail: JsonlTail, mark: Json) -> tuple[list[str], Json]:
    output, end = tail.since(json.loads(json.dumps(mark)))
    return [item.text for item in output], end


def test_entries_after_a_mark_are_reported_once(tmp_path: Path) -> None:
    tail, file = tail_of(tmp_path), tmp_path / "a.jsonl"
    say(file, "before")
    mark = tail.end_position()
    assert read_lines(tail, mark) == ([], mark)
    say(file, "one", "two\nlines")
    texts, end = read_lines(tail, mark)
    assert texts == ["one", "two\nlines"]
    assert read_lines(tail, end) == ([], end)
    assert end == tail.end_position()
    say(file, "three")
    assert read_lines(tail_of(tmp_path), end)[0] == ["three"]


def test_a_file_that_is_not_there_yet_is_read_from_its_beginning(tmp_path: Path) -> None:
    tail = tail_of(tmp_path / "later", "*/*.jsonl")
    mark = tail.end_position()
    assert read_lines(tail, mark) == ([], mark)
    assert (tail.session, list(tail.folders())) == ("", [tmp_path / "later"])
    file = tmp_path / "later/sub/name.jsonl"
    say(file, "first")
    assert read_lines(tail, mark)[0] == ["first"]
    assert (tail.session, list(tail.folders())) == ("name", [tmp_path / "later", file.parent])


def test_a_line_counts_only_when_it_is_whole(tmp_path: Path) -> None:
    tail, file = tail_of(tmp_path), tmp_path / "a.jsonl"
    say(file, "before")
    with file.open("a") as begun:
        begun.write('{"say": "on')
    mark = tail.end_position()
    assert read_lines(tail, mark) == ([], mark)
    with file.open("a") as begun:
        begun.write('e"}\n{"say": "tw')
    texts, end = read_lines(tail, mark)
    assert texts == ["one"]
    assert read_lines(tail, end) == ([], end)


def test_damaged_records_are_passed_over(tmp_path: Path) -> None:
    tail, file = tail_of(tmp_path), tmp_path / "a.jsonl"
    damaged = [b'{"say": "cut', b"", b"\xff\xfe", b"[1]", b"null", b"[" * 100_000, b'{"say":1e999}']
    file.write_bytes(b"\n".join([*damaged, b'{"say": "good"}', b""]))
    assert read_lines(tail, {})[0] == ["inf", "good"]


def test_half_a_character_is_made_one_that_can_be_written(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"say": "\\ud83d and \\ud83c\\udfad"}\n')
    assert read_lines(tail_of(tmp_path), {})[0] == ["? and 🎭"]


def test_a_line_without_measure_is_passed_over_in_bounded_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The real measure would take seconds for the same path.
    monkeypatch.setattr(jsonl_tail, "MAX_LINE_BYTES", 1_500_000)
    file = tmp_path / "a.jsonl"
    say(file, "x" * 1_400_000)
    # Its end alone would be a record.
    within = json.dumps({"say": "within"}).rjust(4096)
    with file.open("a") as longest:
        longest.write(f"{'y' * 6_000_000}{within}\n")
    say(file, "short")
    texts, end = read_lines(tail_of(tmp_path), {})
    assert [len(text) for text in texts] == [1_400_000, 5]
    with file.open("rb") as opened:
        held = [len(line.content) for line in jsonl_tail._whole_lines(opened, 0)]
    assert held[1] == 4096
    assert end == tail_of(tmp_path).end_position()


class Counted:
    """A file that counts what is read of it."""

    def __init__(self, file: Any, read: Counter[str]) -> None:
        self._file = file
        self._read = read

    def read(self, size: int) -> bytes:
        block: bytes = self._file.read(size)
        self._read["bytes"] += len(block)
        return block

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)


def test_a_line_that_grows_slowly_is_searched_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tail, file = tail_of(tmp_path), tmp_path / "a.jsonl"
    say(file, "before")
    mark = tail.end_position()
    read = Counter[str]()
    opened = jsonl_tail.opened

    @contextmanager
    def counted(home: Path, path: Path | None) -> Iterator[Any]:
        with opened(home, path) as file:
            yield Counted(file, read)

    monkeypatch.setattr(jsonl_tail, "opened", counted)
    with file.open("a") as begun:
        begun.write('{"say": "')
        for _ in range(200):
            begun.write("x" * 10_000)
            begun.flush()
            assert read_lines(tail, mark) == ([], mark)
        begun.write('"}\n')
    assert [len(text) for text in read_lines(tail, mark)[0]] == [2_000_000]
    assert read.total() < 3 * 2_000_000


def test_a_file_that_was_written_anew_repeats_nothing(tmp_path: Path) -> None:
    tail, file = tail_of(tmp_path), tmp_path / "a.jsonl"
    say(file, "one", "two")
    mark = tail.end_position()
    file.unlink()
    say(file, "a summary of one", "and more of it", "two", "three")
    texts, end = read_lines(tail, mark)
    assert texts == ["three"]
    assert read_lines(tail, end) == ([], end)


@pytest.mark.parametrize("left", [0, 5, 16])
def test_truncated_file_yields_only_what_comes_later(tmp_path: Path, left: int) -> None:
    tail, file = tail_of(tmp_path), tmp_path / "a.jsonl"
    say(file, "one", "two", "three")
    mark = tail.end_position()
    os.truncate(file, left)
    texts, end = read_lines(tail, mark)
    assert texts == []
    with file.open("a") as on:
        on.write("\n")
    say(file, "four")
    assert read_lines(tail, end)[0] == ["four"]


def test_a_conversation_that_moved_to_another_file_goes_on_after_what_was_read(
    tmp_path: Path,
) -> None:
    tail, old, new = tail_of(tmp_path), tmp_path / "old.jsonl", tmp_path / "new.jsonl"
    say(old, "one", "two")
    mark = tail.end_position()
    shutil.copy(old, new)
    say(new, "three")
    os.utime(old, (1, 1))
    assert read_lines(tail, mark)[0] == ["three"]


def test_another_conversation_is_read_from_its_beginning(tmp_path: Path) -> None:
    tail, old, new = tail_of(tmp_path), tmp_path / "old.jsonl", tmp_path / "new.jsonl"
    say(old, "one")
    mark = tail.end_position()
    say(new, "two")
    os.utime(old, (1, 1))
    assert read_lines(tail, mark)[0] == ["two"]


@pytest.mark.parametrize(
    "mark", [None, 7, {}, {"path": 1}, {"path": "x", "offset": -9, "last": "y"}]
)
def test_a_mark_that_is_none_is_the_beginning(tmp_path: Path, mark: Json) -> None:
    say(tmp_path / "a.jsonl", "one")
    assert read_lines(tail_of(tmp_path), mark)[0] == ["one"]


def test_a_mark_before_the_beginning_is_the_beginning(tmp_path: Path) -> None:
    file = tmp_path / "a.jsonl"
    say(file, "one")
    assert read_lines(tail_of(tmp_path), {"path": str(file), "offset": -9, "last": ""})[0] == [
        "one"
    ]


@pytest.mark.parametrize("planted", ["pipe", "folder", "link"])
def test_what_is_no_plain_file_is_not_read(tmp_path: Path, planted: str) -> None:
    place = tmp_path / "kept/a.jsonl"
    place.parent.mkdir()
    if planted == "pipe":
        os.mkfifo(place)
    elif planted == "folder":
        place.mkdir()
    else:
        say(tmp_path / "elsewhere", "private")
        place.symlink_to(tmp_path / "elsewhere")
    tail = tail_of(place.parent)
    assert read_lines(tail, {})[0] == []
    assert read_lines(tail, tail.end_position())[0] == []


@settings(max_examples=examples(50), deadline=None)
@given(st.lists(st.tuples(st.text(max_size=30), st.integers(1, 40)), max_size=20))
def test_however_a_file_grows_every_record_is_reported_once_and_in_order(
    tmp_path_factory: pytest.TempPathFactory, growth: list[tuple[str, int]]
) -> None:
    folder = tmp_path_factory.mktemp("grown")
    tail, output, mark = tail_of(folder), list[str](), tail_of(folder).end_position()
    with (folder / "a.jsonl").open("a") as file:
        for text, piece in growth:
            line = json.dumps({"say": text}) + "\n"
            for at in range(0, len(line), piece):
                file.write(line[at : at + piece])
                file.flush()
                texts, mark = read_lines(tail, mark)
                output += texts
    assert output == [text.encode(errors="replace").decode() for text, _ in growth]

"""Reading a trace gives what can be read, names what cannot, and takes no more memory for it."""

from __future__ import annotations

import io
import json
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from podium.core import events
from podium.core.errors import BadInput
from podium.core.events import Event, NoteTaken
from podium.store import TraceWriter, trace_reader
from podium.store.trace_reader import LINES_TRIED, TraceReader, open_trace

RUN = "run_one"


def line(seq: int, **more: Any) -> bytes:
    event = {"run": RUN, "seq": seq, "at": "2026-01-02T00:00:00+00:00", "type": "note_taken"}
    return json.dumps({**event, "text": f"note {seq}", **more}).encode() + b"\n"


def read(content: bytes, after_seq: int = 0) -> tuple[list[int], TraceReader]:
    reading = TraceReader(io.BytesIO(content), "t")
    return [event.data["seq"] for event in reading.events(after_seq)], reading


def test_a_trace_of_the_journal_is_read_event_by_event(tmp_path: Path) -> None:
    at = datetime(2026, 1, 2, tzinfo=UTC)
    written = [
        Event(run_id=RUN, seq=seq, position=seq, at=at, body=NoteTaken(text=f"\u2028 {seq} \ud83d"))
        for seq in (1, 2, 3)
    ]
    writer = TraceWriter(tmp_path)
    writer.catch_up(RUN, lambda after: written[after:])
    with open_trace(writer.path(RUN)) as file:
        reading = TraceReader(file, "t")
        assert [traced.data for traced in reading.events()] == [event.line() for event in written]
    assert (reading.problems, reading.torn) == ([], False)


def test_the_line_is_kept_as_it_was() -> None:
    (traced,) = TraceReader(io.BytesIO(line(1)), "t").events()
    assert traced.line == line(1)


def test_only_what_is_behind_a_number_is_given_and_skipping_it_is_no_gap() -> None:
    found, reading = read(b"".join(map(line, range(1, 8))), after_seq=5)
    assert (found, reading.problem_count) == ([6, 7], 0)


def test_torn_last_line_is_left_out_and_reported() -> None:
    found, reading = read(line(1) + line(2)[:30])
    assert (found, reading.torn, reading.problems) == ([1], True, [])


def test_a_last_line_that_only_lacks_its_end_is_read() -> None:
    found, reading = read(line(1) + line(2).rstrip())
    assert (found, reading.torn) == ([1, 2], False)


@pytest.mark.parametrize(
    "garbage",
    [
        b"\0" * 50,
        b"[1, 2]",
        b'"text"',
        b"null",
        b"{}",
        b'{"run": "run_one", "seq": "2", "at": "", "type": "x"}',
        b'{"run": "run_one", "seq": true, "at": "", "type": "x"}',
        b'{"run": "run_one", "seq": 2, "at": "", "type": ["x"]}',
        b'{"run": "run_one", "seq": 2, "at": "", "type": "x", "usd": NaN}',
        b'{"run": "run_one", "seq": 2, "at": "", "type": "x", "n": ' + b"9" * 5000 + b"}",
        b"[" * 100_000,
        b'{"run": "run_one", "seq": 2, "at": "\xff"}',
    ],
)
def test_a_line_that_is_no_event_is_named_and_the_rest_is_read(garbage: bytes) -> None:
    found, reading = read(line(1) + garbage + b"\n" + line(2))
    assert found == [1, 2]
    assert reading.problems == ["t: line 2 is not an event"]


def test_numbers_that_are_missing_or_come_twice_are_named() -> None:
    found, reading = read(line(1) + line(4) + line(4) + line(1, run="run_two"))
    assert found == [1, 4, 4, 1]
    assert reading.problems == [
        "t: line 2 has event 4 after event 1",
        "t: line 3 has event 4 after event 4",
    ]


def test_many_faults_are_counted_and_few_named() -> None:
    _, reading = read(line(1) + b"x\n" * 1000)
    assert (len(reading.problems), reading.problem_count) == (5, 1000)


def test_a_line_without_measure_is_passed_over_and_never_held_whole(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(trace_reader, "MAX_LINE_BYTES", 500)
    found, reading = read(line(1) + line(2, text="x" * 300_000) + line(3))
    assert found == [1, 3]
    assert reading.problem_count == 1
    assert reading.problems[0].startswith("t: line 2 is longer than")


def test_what_does_not_begin_with_events_is_no_trace_and_not_read_to_its_end() -> None:
    class Endless(io.RawIOBase):
        given = 0

        def readable(self) -> bool:
            return True

        def readinto(self, buffer: Any) -> int:
            self.given += 1
            assert self.given <= 2, "it went on reading"
            buffer[:] = b"no\n" * (len(buffer) // 3) + b"\n" * (len(buffer) % 3)
            return len(buffer)

    reading = TraceReader(io.BufferedReader(Endless()), "t")
    with pytest.raises(BadInput, match="t is not a trace"):
        list(reading.events())
    assert reading.problem_count == LINES_TRIED


def test_an_empty_file_is_a_trace_without_events() -> None:
    assert read(b"")[0] == []


def test_a_line_of_an_older_podium_is_lifted(monkeypatch: pytest.MonkeyPatch) -> None:
    lift = {**events.UPCASTS, ("note_taken", 1): lambda data: {**data, "version": 2, "text": "new"}}
    monkeypatch.setattr(events, "UPCASTS", lift)
    (traced,) = TraceReader(io.BytesIO(line(1)), "t").events()
    assert (traced.data["version"], traced.data["text"]) == (2, "new")


def test_run_folder_is_accepted_for_the_trace_in_it(tmp_path: Path) -> None:
    (tmp_path / "execution_trace.jsonl").write_bytes(line(1))
    with open_trace(tmp_path) as file:
        assert file.read() == line(1)


def test_a_pipe_is_refused_at_once_though_nobody_writes_to_it(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(BadInput, match="is not a plain file"):
        open_trace(tmp_path / "pipe")


@pytest.mark.parametrize("name", ["missing.jsonl", "a-file/inside", "nul\0", "x" * 300])
def test_a_file_that_cannot_be_opened_is_named(tmp_path: Path, name: str) -> None:
    (tmp_path / "a-file").write_text("")
    with pytest.raises(BadInput, match="trace"):
        open_trace(tmp_path / name)

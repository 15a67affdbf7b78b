"""The trace holds every event once and in order, whoever writes it and however they die."""

import json
import os
import random
import signal
import stat
import subprocess
import sys
import threading
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from podium.core.errors import BadInput
from podium.core.events import Event, NoteTaken
from podium.store.trace import TraceWriter
from podium.testing import retry_until_blocking

RUN = "run_one"

# A stand-in for the journal that other processes can make too: events of a given text, 1 to `count`.
PRELUDE = """
import signal, sys
from datetime import UTC, datetime
from pathlib import Path
from podium.core.events import Event, NoteTaken
from podium.store.trace import TraceWriter
folder, count, size = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
def event(seq):
    at = datetime(2026, 1, 2, tzinfo=UTC)
    return Event(run_id="run_one", seq=seq, position=seq, at=at, body=NoteTaken(text=f"{seq} " + "x" * size))
def read_after(seq, page=7):
    return [event(n) for n in range(seq + 1, min(count, seq + page) + 1)]
writer = TraceWriter(folder)
print("ready", flush=True)
sys.stdin.readline()
"""


class Events:
    """The events of a run, handed out in pages."""

    def __init__(self, *texts: str) -> None:
        timestamp = datetime(2026, 1, 2, tzinfo=UTC)
        self.all = [
            Event(
                run_id=RUN,
                seq=seq,
                position=10 + seq,
                at=timestamp + timedelta(seconds=seq),
                body=NoteTaken(text=text),
            )
            for seq, text in enumerate(texts, start=1)
        ]
        self.asked: list[int] = []

    def after(self, seq: int) -> Sequence[Event]:
        self.asked.append(seq)
        return self.all[seq : seq + 3]


def lines_of(folder: Path) -> list[dict[str, object]]:
    content = (folder / RUN / "execution_trace.jsonl").read_bytes()
    assert content == b"" or content.endswith(b"\n")
    return [json.loads(line) for line in content.split(b"\n")[:-1]]


def started(program: str, folder: Path, count: int, size: int = 10) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-c", PRELUDE + program, str(folder), str(count), str(size)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout
    assert process.stdout.readline() == "ready\n"
    return process


def test_every_event_appears_in_the_trace_flat_and_in_order(tmp_path: Path) -> None:
    events = Events("one", "two\nlines", "drei äöü €", "vier", "fünf")
    assert TraceWriter(tmp_path).catch_up(RUN, events.after) == 5
    assert lines_of(tmp_path) == [event.line() for event in events.all]
    assert "äöü €".encode() in (tmp_path / RUN / "execution_trace.jsonl").read_bytes()


def test_only_what_is_new_is_asked_for_and_appended(tmp_path: Path) -> None:
    writer, events = TraceWriter(tmp_path), Events("one", "two", "three")
    late = events.all.pop()
    writer.catch_up(RUN, events.after)
    assert writer.catch_up(RUN, events.after) == 0
    events.all.append(late)
    events.asked.clear()
    assert writer.catch_up(RUN, events.after) == 1
    assert events.asked == [2, 3]
    assert lines_of(tmp_path) == [event.line() for event in events.all]


def test_events_the_trace_has_already_are_not_written_again(tmp_path: Path) -> None:
    events = Events("one", "two")
    writer = TraceWriter(tmp_path)
    writer.catch_up(RUN, events.after)
    assert writer.catch_up(RUN, lambda seq: events.all) == 0
    assert lines_of(tmp_path) == [event.line() for event in events.all]


@pytest.mark.soak
def test_a_trace_torn_at_any_byte_is_mended(tmp_path: Path) -> None:
    events = Events("one", "two", 'three with } and " and {"run": "x", "seq": 9, ')
    writer = TraceWriter(tmp_path)
    writer.catch_up(RUN, events.after)
    path = writer.path(RUN)
    whole = path.read_bytes()
    for length in range(len(whole)):
        path.write_bytes(whole[:length])
        assert writer.catch_up(RUN, events.after) == 3 - whole[:length].count(b"\n")
        assert path.read_bytes() == whole


@pytest.mark.parametrize(
    "rubbish",
    [
        b"\0" * 30 + b"\n",
        b'{"run": "run_one", "seq": 3, "at\0\0\0\0"}\n',
        b'{"run": "run_one", "seq": 3, "at\n',
        b"not ours\n",
        b"{}\n",
        b"\n\n",
    ],
)
def test_rubbish_at_the_end_is_cut_away(tmp_path: Path, rubbish: bytes) -> None:
    events = Events("one", "two")
    writer = TraceWriter(tmp_path)
    writer.catch_up(RUN, events.after)
    whole = writer.path(RUN).read_bytes()
    writer.path(RUN).write_bytes(whole + rubbish)
    assert writer.catch_up(RUN, events.after) == 0
    assert writer.path(RUN).read_bytes() == whole


def test_the_end_is_found_behind_a_line_longer_than_any_block(tmp_path: Path) -> None:
    texts = ["one", "x" * 100_000, "y" * 8192]
    writer = TraceWriter(tmp_path)
    for count in (1, 2, 3):
        events = Events(*texts[:count])
        assert writer.catch_up(RUN, events.after) == 1
    assert lines_of(tmp_path) == [event.line() for event in events.all]


def test_half_a_surrogate_pair_does_not_stop_the_trace(tmp_path: Path) -> None:
    events = Events("odd \ud800 end")
    TraceWriter(tmp_path).catch_up(RUN, events.after)
    assert lines_of(tmp_path) == [event.line() for event in events.all]


def test_folders_and_file_are_for_this_user_alone(tmp_path: Path) -> None:
    folder = tmp_path / "state" / "runs"
    TraceWriter(folder).catch_up(RUN, Events("one").after)
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert stat.S_IMODE((folder / RUN).stat().st_mode) == 0o700
    assert stat.S_IMODE((folder / RUN / "execution_trace.jsonl").stat().st_mode) == 0o600


@pytest.mark.parametrize("run_id", ["", ".", "..", "../up", "a/b", "/etc", "a\0b", "run\n", ".x"])
def test_a_run_id_that_is_no_plain_name_makes_nothing(tmp_path: Path, run_id: str) -> None:
    folder = tmp_path / "runs"
    with pytest.raises(BadInput, match="cannot be a file name"):
        TraceWriter(folder).catch_up(run_id, Events("one").after)
    with pytest.raises(BadInput, match="cannot be a file name"):
        TraceWriter(folder).rebuild(run_id, Events("one").after)
    assert list(tmp_path.iterdir()) == []


def test_a_trace_is_not_written_through_a_link(tmp_path: Path) -> None:
    (tmp_path / RUN).mkdir()
    victim = tmp_path / "victim"
    victim.write_text("keep me")
    os.symlink(victim, tmp_path / RUN / "execution_trace.jsonl")
    with pytest.raises(OSError):
        TraceWriter(tmp_path).catch_up(RUN, Events("one").after)
    assert victim.read_text() == "keep me"


def test_a_trace_is_rebuilt_from_nothing_and_in_place_of_a_spoilt_one(tmp_path: Path) -> None:
    events = Events("one", "two", "three", "four")
    writer = TraceWriter(tmp_path)
    assert writer.rebuild(RUN, events.after) == 4
    expected = writer.path(RUN).read_bytes()
    writer.path(RUN).write_bytes(expected.replace(b"one", b"ONE"))
    assert writer.rebuild(RUN, events.after) == 4
    assert writer.path(RUN).read_bytes() == expected
    assert [entry.name for entry in (tmp_path / RUN).iterdir()] == ["execution_trace.jsonl"]


def test_a_rebuild_that_fails_leaves_the_old_trace(tmp_path: Path) -> None:
    events = Events("one", "two", "three", "four")
    writer = TraceWriter(tmp_path)
    writer.catch_up(RUN, events.after)
    before = writer.path(RUN).read_bytes()

    def breaks_off(seq: int) -> Sequence[Event]:
        if seq:
            raise OSError("the journal went away")
        return events.after(seq)

    with pytest.raises(OSError, match="went away"):
        writer.rebuild(RUN, breaks_off)
    assert writer.path(RUN).read_bytes() == before
    assert [entry.name for entry in (tmp_path / RUN).iterdir()] == ["execution_trace.jsonl"]


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="sees open files in /proc alone")
def test_who_waited_for_a_rebuild_writes_to_the_new_trace(tmp_path: Path) -> None:
    writer, events = TraceWriter(tmp_path), Events("one", "two", "three")
    path = writer.path(RUN)
    writer.catch_up(RUN, lambda seq: events.all[seq:1])
    late = threading.Thread(target=writer.catch_up, args=(RUN, events.after))

    def while_the_other_waits(seq: int) -> Sequence[Event]:
        if not seq:
            late.start()
            retry_until_blocking(lambda: handles_on(path) == 2)
        return events.all[seq:2]

    assert writer.rebuild(RUN, while_the_other_waits) == 2
    late.join()
    assert lines_of(tmp_path) == [event.line() for event in events.all]


def handles_on(path: Path) -> int:
    links = (Path("/proc/self/fd") / name for name in os.listdir("/proc/self/fd"))
    return sum(os.path.realpath(link) == str(path.resolve()) for link in links)


def test_concurrently_writing_processes_write_every_event_once(tmp_path: Path) -> None:
    program = (
        "print(writer.catch_up('run_one', lambda seq: read_after(seq, page=1)))\n"
        "writer.rebuild('run_one', lambda seq: read_after(seq, page=50))\n"
    )
    racers = [started(program, tmp_path, count=300) for _ in range(3)]
    for racer in racers:
        assert racer.stdin
        racer.stdin.write("go\n")
        racer.stdin.flush()
    appended = [int(racer.communicate()[0]) for racer in racers]
    assert [racer.returncode for racer in racers] == [0, 0, 0]
    assert sum(appended) == 300
    assert [line["seq"] for line in lines_of(tmp_path)] == list(range(1, 301))


@pytest.mark.parametrize("kills", [2, pytest.param(20, marks=pytest.mark.soak)])
def test_writer_killed_at_any_time_leaves_what_the_next_one_repairs(
    tmp_path: Path, kills: int
) -> None:
    chance = random.Random(4)
    size = 60_000
    program = "writer.catch_up('run_one', read_after)\n"
    for _ in range(kills):
        victim = started(program, tmp_path, count=100_000, size=size)
        assert victim.stdin
        victim.stdin.write("go\n")
        victim.stdin.flush()
        path = TraceWriter(tmp_path).path(RUN)
        before = path.stat().st_size if path.exists() else 0
        grown = before + chance.randrange(1, 3_000_000)
        while not path.exists() or path.stat().st_size < grown:
            assert victim.poll() is None
        victim.send_signal(signal.SIGKILL)
        victim.communicate()
    seen = path.read_bytes().count(b"\n")
    finisher = started("writer.catch_up('run_one', read_after)\n", tmp_path, seen + 10, size)
    finisher.communicate("go\n")
    assert finisher.returncode == 0
    assert [line["seq"] for line in lines_of(tmp_path)] == list(range(1, seen + 11))


def test_full_disk_is_reported_and_the_trace_ends_in_a_whole_line(tmp_path: Path) -> None:
    program = (
        "import resource\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (5000, resource.RLIM_INFINITY))\n"
        "try: writer.catch_up('run_one', read_after)\n"
        "except OSError as error: print(error.strerror)\n"
    )
    process = started(program, tmp_path, count=40, size=100)
    output, _ = process.communicate("go\n")
    assert output == "File too large\n"
    kept = lines_of(tmp_path)
    assert 0 < len(kept) < 40
    finisher = started("writer.catch_up('run_one', read_after)\n", tmp_path, 40, 100)
    finisher.communicate("go\n")
    assert [line["seq"] for line in lines_of(tmp_path)] == list(range(1, 41))


def test_a_place_that_cannot_be_written_raises_an_os_error(tmp_path: Path) -> None:
    (tmp_path / "runs").write_text("a file where a folder should be")
    with pytest.raises(OSError):
        TraceWriter(tmp_path / "runs").catch_up(RUN, Events("one").after)

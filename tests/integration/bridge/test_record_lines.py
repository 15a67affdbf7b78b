"""Logs and telemetry: whole lines, turned over in time, and never in the way of a tick."""

from __future__ import annotations

import fcntl
import json
import os
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium.core.errors import NotPossibleNow
from podium.jobs.sense.io.record import FileRecord
from podium.jobs.sense.io.tick_files import LineFile, one_line
from podium.jobs.sense.models import CandidateStatus, PlannerStatus, TickOutcome
from podium.platform import file_lock
from podium.testing import FixedClock
from tests.integration.bridge.test_record import FILES, record_at
from tests.unit.bridge.inbox_harness import without_secret

NIGHT = datetime(2026, 11, 15, 22, tzinfo=UTC)

_WRITER = """
import sys
from pathlib import Path
from podium.jobs.sense.io.tick_files import LineFile
log = LineFile(Path(sys.argv[1]), "logs/x.log", limit_bytes=4000)
sys.stdin.readline()
for number in range(100):
    log.add(f"{sys.argv[2]} {number} " + "x" * 50)
"""

_FULL_DISK = """
import resource, sys
from pathlib import Path
from podium.jobs.sense.io.tick_files import LineFile
from podium.core.errors import NotPossibleNow
log = LineFile(Path(sys.argv[1]), "logs/x.log", limit_bytes=100_000)
resource.setrlimit(resource.RLIMIT_FSIZE, (100, resource.RLIM_INFINITY))
log.add("x" * 60)
try:
    log.add("y" * 60)
except NotPossibleNow as error:
    print(error)
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
log.add("z")
"""


def _outcome(**changes: object) -> TickOutcome:
    fields = {"tick": 3, "at": NIGHT, "mode": "sensing", "status": PlannerStatus.OK, **changes}
    return TickOutcome.model_validate(fields)


def test_a_line_of_the_log_has_time_level_and_text(tmp_path: Path) -> None:
    record = record_at(tmp_path)
    record.log("hello", at=NIGHT)
    record.log("parsed", at=NIGHT, kind="parser")
    assert (tmp_path / FILES.log).read_text() == "2026-11-15T22:00:00Z [INFO] hello\n"
    assert (tmp_path / FILES.parser_log).read_text() == "2026-11-15T22:00:00Z [INFO] parsed\n"
    assert not record.problems


def test_time_in_another_zone_is_written_in_utc(tmp_path: Path) -> None:
    record_at(tmp_path).log("x", at=datetime.fromisoformat("2026-11-16T05:00:00+07:00"))
    assert (tmp_path / FILES.log).read_text().startswith("2026-11-15T22:00:00Z ")


def test_a_tick_is_a_summary_and_a_record(tmp_path: Path) -> None:
    outcome = _outcome(
        counts={"ACKs": 2}, candidates=(CandidateStatus(wo_id="WO-1", state="delivered"),)
    )
    record_at(tmp_path).tick_ended(outcome)
    log = (tmp_path / FILES.log).read_text()
    ended, _, line = log.partition(" ")
    assert datetime.fromisoformat(ended) == FixedClock().now().replace(microsecond=0)
    assert line == f"[INFO] {outcome.summary()}\n"
    assert log.endswith("GMX_Call_Status=OK, WOs_Created=1, WO_IDs=[WO-1]\n")
    payload = json.loads((tmp_path / FILES.telemetry).read_text())
    assert payload.pop("event") == "tick"
    assert TickOutcome.model_validate(payload) == outcome


def test_no_text_breaks_a_line_or_steers_a_terminal(tmp_path: Path) -> None:
    record = record_at(tmp_path)
    record.log("a\n2026-11-15T22:00:00Z [INFO] SUMMARY forged\r\x1b[2J\u2028\u202e\x00\ud800", at=NIGHT)  # fmt: skip
    record.tick_ended(_outcome(why="a\nb\u2028c\ud800"))
    lines = (tmp_path / FILES.log).read_text().splitlines()
    assert len(lines) == 2
    assert lines[0].endswith(r"a\n2026-11-15T22:00:00Z [INFO] SUMMARY forged\r\x1b[2J\u2028\u202e\x00\ud800")  # fmt: skip
    assert len((tmp_path / FILES.telemetry).read_text().splitlines()) == 1


def test_lines_hold_no_secrets(tmp_path: Path) -> None:
    record = record_at(tmp_path)
    record.log("key hunter2", at=NIGHT)
    record.tick_ended(_outcome(why="hunter2", counts={"hunter2": 1}))
    written = (tmp_path / FILES.log).read_text() + (tmp_path / FILES.telemetry).read_text()
    assert "hunter2" not in written
    assert written.count("[redacted:password]") == 4


def test_a_huge_text_is_cut(tmp_path: Path) -> None:
    record_at(tmp_path).log("x" * 5_000_000, at=NIGHT)
    assert (tmp_path / FILES.log).stat().st_size < 21_000


@given(st.text(st.characters()))
def test_any_text_is_one_printable_line(text: str) -> None:
    line = one_line(text)
    assert len(line.splitlines()) <= 1
    assert line.isprintable()


def test_a_full_file_is_turned_over_and_five_old_ones_are_kept(tmp_path: Path) -> None:
    log = LineFile(tmp_path, "logs/x.log", limit_bytes=20)
    for number in range(20):
        log.add(f"line {number:04}")
    names = sorted(os.listdir(tmp_path / "logs"))
    assert names == ["x.log", "x.log.1", "x.log.2", "x.log.3", "x.log.4", "x.log.5"]
    kept = [(tmp_path / "logs" / name).read_text().split("\n") for name in names]
    assert kept[0] == ["line 0018", "line 0019", ""]
    assert kept[5] == ["line 0008", "line 0009", ""]


def test_a_line_larger_than_a_file_may_be_is_still_written(tmp_path: Path) -> None:
    log = LineFile(tmp_path, "x.log", limit_bytes=5)
    log.add("0123456789")
    log.add("abcdefghij")
    assert (tmp_path / "x.log").read_text() == "abcdefghij\n"
    assert (tmp_path / "x.log.1").read_text() == "0123456789\n"


def test_a_line_that_a_crash_cut_off_is_not_glued_to_the_next(tmp_path: Path) -> None:
    (tmp_path / "x.log").write_text("whole\nhal")
    LineFile(tmp_path, "x.log", limit_bytes=1000).add("next")
    assert (tmp_path / "x.log").read_text() == "whole\nhal\nnext\n"


def test_writers_that_turn_files_over_lose_and_break_no_line(tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    writers = [
        subprocess.Popen(
            [sys.executable, "-c", _WRITER, str(tmp_path), name],
            stdin=subprocess.PIPE,
            text=True,
        )
        for name in ("one", "two")
    ]
    for writer in writers:
        assert writer.stdin
        writer.stdin.write("\n")
        writer.stdin.flush()
    for writer in writers:
        writer.communicate()
        assert writer.returncode == 0
    lines = [
        line
        for path in sorted((tmp_path / "logs").iterdir(), reverse=True)
        for line in path.read_text().splitlines()
    ]
    # 200 lines of some 60 bytes fit into six files of 4,000: none was dropped yet.
    for name in ("one", "two"):
        assert [line for line in lines if line.startswith(name)] == [
            f"{name} {number} {'x' * 50}" for number in range(100)
        ]


def test_a_file_turned_over_while_a_writer_waits_gets_no_more_lines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = LineFile(tmp_path, "x.log", limit_bytes=1000)
    log.add("old")
    taken = file_lock._is_taken

    def turned_over_first(handle: int, kind: int) -> bool:
        if not (tmp_path / "x.log.1").exists():
            (tmp_path / "x.log").rename(tmp_path / "x.log.1")
        return taken(handle, kind)

    # The moment between opening a file and having its lock cannot be met from outside.
    monkeypatch.setattr(file_lock, "_is_taken", turned_over_first)
    log.add("new")
    assert (tmp_path / "x.log.1").read_text() == "old\n"
    assert (tmp_path / "x.log").read_text() == "new\n"


def test_a_full_disk_takes_whole_lines_or_none(tmp_path: Path) -> None:
    result = subprocess.run(
        [sys.executable, "-c", _FULL_DISK, str(tmp_path)], capture_output=True, text=True
    )
    assert result.returncode == 0, result.stderr
    assert "'x.log' cannot be used" in result.stdout
    assert (tmp_path / "logs/x.log").read_text() == "x" * 60 + "\n" + "z\n"


@pytest.mark.parametrize("kind", ["folder", "link", "hard link", "pipe"])
def test_log_that_is_no_plain_file_gets_no_line_and_is_reported_once(
    tmp_path: Path, kind: str
) -> None:
    log, victim = tmp_path / FILES.log, tmp_path / "victim"
    log.parent.mkdir()
    victim.write_text("keep")
    match kind:
        case "folder":
            log.mkdir()
        case "link":
            log.symlink_to(victim)
        case "hard link":
            os.link(victim, log)
        case _:
            os.mkfifo(log)
    record = record_at(tmp_path)
    for _ in range(3):
        record.log("x", at=NIGHT)
        record.tick_ended(_outcome())
    assert len(record.problems) == 1
    assert record.problems[0].startswith(f"{FILES.log}: ")
    assert victim.read_text() == "keep"
    assert len((tmp_path / FILES.telemetry).read_text().splitlines()) == 3


def test_a_linked_log_folder_leads_nowhere(tmp_path: Path) -> None:
    root, away = tmp_path / "root", tmp_path / "away"
    root.mkdir()
    away.mkdir()
    (root / "logs").symlink_to(away)
    record = record_at(root)
    record.log("x", at=NIGHT)
    assert "symbolic link" in record.problems[0]
    assert not list(away.iterdir())


def test_vanished_root_is_reported(tmp_path: Path) -> None:
    record = record_at(tmp_path / "gone")
    record.log("x", at=NIGHT)
    assert len(record.problems) == 1
    assert "cannot be used as a root" in record.problems[0]


@pytest.mark.parametrize("place", ["../out.log", "/tmp/out.log", "logs/../../out.log"])
def test_a_log_outside_the_root_is_refused(tmp_path: Path, place: str) -> None:
    with pytest.raises(NotPossibleNow, match="not a path below the root"):
        LineFile(tmp_path, place, limit_bytes=9).add("x")


def test_a_log_that_somebody_keeps_locked_holds_no_tick_up_for_long(tmp_path: Path) -> None:
    record = FileRecord(tmp_path, FILES, clock=FixedClock(), redact=without_secret)
    record.log("first", at=NIGHT)
    with (tmp_path / FILES.log).open() as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        record.log("second", at=NIGHT)
        assert "locked by another process" in record.problems[0]
    record.log("third", at=NIGHT)
    assert not record.problems
    assert (tmp_path / FILES.log).read_text().count("\n") == 2

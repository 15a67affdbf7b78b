"""Files of the sense loop: lock, memory, bundle and plan. No problem with them breaks a tick."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import pytest

from podium.core.errors import LockHeld, NotPossibleNow
from podium.jobs.sense.io.record import FileRecord
from podium.jobs.sense.io.tick_files import RecordFiles
from podium.jobs.sense.models import Bundle, Look, PlanItem, PlannerStatus, Sensed, SenseMemory
from podium.jobs.sense.ports import SenseRecord
from podium.testing import FixedClock
from tests.unit.bridge.inbox_harness import without_secret

FILES = RecordFiles(log="logs/main.log", parser_log="logs/parser.log", telemetry="g/telemetry/t.jsonl")  # fmt: skip
STATE = ".podium/sense"
MEMORY = SenseMemory(
    ticks=7,
    tokens=12,
    marks={"health": "abc"},
    digest="d",
    status=PlannerStatus.OK,
    planned_at=datetime(2026, 1, 1, tzinfo=UTC),
    last_plan=(PlanItem(index=0, type="info", priority="low", target="x", action="log"),),
)

_HOLDER = """
import sys
from pathlib import Path
from tests.integration.bridge.test_record import record_at
with record_at(Path(sys.argv[1])).alone():
    print("held", flush=True)
    sys.stdin.read()
"""


def record_at(root: Path) -> FileRecord:
    return FileRecord(root, FILES, clock=FixedClock(), redact=without_secret)


@contextmanager
def _holder(root: Path) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        [sys.executable, "-c", _HOLDER, str(root)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).parents[3],
    )
    assert process.stdout
    assert process.stdout.readline() == "held\n"
    with process:
        yield process
        process.kill()


def _log(root: Path) -> str:
    path = root / FILES.log
    return path.read_text() if path.exists() else ""


def test_only_one_loop_ticks_on_a_root_and_the_other_is_shown_who_does(tmp_path: Path) -> None:
    record: SenseRecord = record_at(tmp_path)
    with _holder(tmp_path) as process:
        with pytest.raises(LockHeld) as refused, record.alone():
            pass
        assert f"process {process.pid} since 2026-01-01T12:00:00Z" in str(refused.value)
        assert str(tmp_path) in str(refused.value)


def test_the_lock_dies_with_its_process(tmp_path: Path) -> None:
    with _holder(tmp_path) as process:
        process.kill()
        process.wait()
    with record_at(tmp_path).alone(), pytest.raises(LockHeld), record_at(tmp_path).alone():
        pass


def test_the_lock_is_free_again_after_a_tick_that_failed(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="tick"), record_at(tmp_path).alone():
        raise ValueError("tick")
    with record_at(tmp_path).alone(), pytest.raises(LockHeld), record_at(tmp_path).alone():
        pass


@pytest.mark.parametrize("note", [b"", b"{", b"[]", b'{"pid": "x"}', b'{"pid": 1}', b"\xff" * 500])
def test_a_lock_without_a_readable_note_still_holds(tmp_path: Path, note: bytes) -> None:
    with record_at(tmp_path).alone():
        (tmp_path / STATE / "lock").write_bytes(note)
        with pytest.raises(LockHeld, match="another process"), record_at(tmp_path).alone():
            pass


def test_a_lock_that_is_a_link_is_refused(tmp_path: Path) -> None:
    (tmp_path / STATE).mkdir(parents=True)
    (tmp_path / "victim").write_text("keep")
    (tmp_path / STATE / "lock").symlink_to(tmp_path / "victim")
    with pytest.raises(NotPossibleNow, match="symbolic link"), record_at(tmp_path).alone():
        pass
    assert (tmp_path / "victim").read_text() == "keep"


def test_what_is_remembered_comes_back(tmp_path: Path) -> None:
    record = record_at(tmp_path)
    assert record.memory() == SenseMemory()
    record.remember(MEMORY)
    assert record_at(tmp_path).memory() == MEMORY
    assert not record.problems
    assert _log(tmp_path) == ""


def test_state_is_private(tmp_path: Path) -> None:
    record = record_at(tmp_path)
    record.remember(MEMORY)
    record.keep_plan({})
    record.keep_bundle(Bundle(root="r"))
    for folder in (".podium", STATE):
        assert stat.S_IMODE((tmp_path / folder).stat().st_mode) == 0o700
    files = list((tmp_path / STATE).iterdir())
    assert sorted(file.name for file in files) == ["context_bundle.json", "memory.json", "plan.json"]  # fmt: skip
    assert {stat.S_IMODE(file.stat().st_mode) for file in files} == {0o600}


@pytest.mark.parametrize(
    "content",
    ["", "{", "[]", "null", "7", "[" * 100_000, "\x00", '{"ticks": 1}', '{"format": 2}', '{"format": 1, "ticks": "many"}', '{"format": 1, "brand_new": 1}'],
    ids=range(11),
)  # fmt: skip
def test_unusable_memory_is_begun_anew_and_reported(tmp_path: Path, content: str) -> None:
    (tmp_path / STATE).mkdir(parents=True)
    (tmp_path / STATE / "memory.json").write_text(content)
    record = record_at(tmp_path)
    assert record.memory() == SenseMemory()
    assert "2026-01-01T12:00:00Z [WARNING] starting with empty memory" in _log(tmp_path)
    record.remember(MEMORY)
    assert record.memory() == MEMORY


def test_a_memory_in_place_of_which_something_else_lies_breaks_no_tick(tmp_path: Path) -> None:
    (tmp_path / STATE / "memory.json").mkdir(parents=True)
    record = record_at(tmp_path)
    assert record.memory() == SenseMemory()
    record.remember(MEMORY)
    assert len(record.problems) == 1
    assert record.problems[0].startswith(f"{STATE}/memory.json: ")
    (tmp_path / STATE / "memory.json").rmdir()
    record.remember(MEMORY)
    assert not record.problems


def test_bundle_and_plan_are_kept_without_secrets(tmp_path: Path) -> None:
    record = record_at(tmp_path)
    found = Sensed(source="health", place="g/h.json", content={"hunter2": ["is hunter2", 5]})
    where = record.keep_bundle(Bundle(root="r", looks=(Look(source="health", found=(found,)),)))
    assert where == f"{STATE}/context_bundle.json"
    kept = json.loads((tmp_path / where).read_text())
    content = kept["looks"][0]["found"][0]["content"]
    assert content == {"[redacted:password]": ["is [redacted:password]", 5]}
    assert record.keep_plan({"items": ["hunter2", "\ud800"]}) == f"{STATE}/plan.json"
    plan = json.loads((tmp_path / STATE / "plan.json").read_text())
    assert plan == {"items": ["[redacted:password]", "?"]}


def test_the_last_plan_is_remembered_without_secrets(tmp_path: Path) -> None:
    item = MEMORY.last_plan[0].model_copy(update={"target": "hunter2"})
    record_at(tmp_path).remember(MEMORY.model_copy(update={"last_plan": (item,)}))
    assert "hunter2" not in (tmp_path / STATE / "memory.json").read_text()
    assert record_at(tmp_path).memory().last_plan[0].target == "[redacted:password]"


def test_bundle_is_written_by_the_configured_formatter(tmp_path: Path) -> None:
    record = FileRecord(
        tmp_path,
        FILES,
        clock=FixedClock(),
        redact=without_secret,
        bundle_text=lambda bundle: json.dumps({"of": bundle.root}),
    )
    assert json.loads((tmp_path / record.keep_bundle(Bundle(root="r"))).read_text()) == {"of": "r"}


def test_a_state_folder_that_leads_away_gets_nothing(tmp_path: Path) -> None:
    root, away = tmp_path / "root", tmp_path / "away"
    root.mkdir()
    away.mkdir()
    (root / ".podium").symlink_to(away)
    record = record_at(root)
    record.remember(MEMORY)
    assert record.keep_plan({}) == ""
    assert all("symbolic link" in fault for fault in record.problems)
    assert len(record.problems) == 2
    assert not list(away.iterdir())


def test_no_draft_is_left_when_a_file_cannot_be_put_in_its_place(tmp_path: Path) -> None:
    (tmp_path / STATE / "plan.json").mkdir(parents=True)
    assert record_at(tmp_path).keep_plan({}) == ""
    assert os.listdir(tmp_path / STATE) == ["plan.json"]


def test_a_plan_without_a_bottom_breaks_no_tick(tmp_path: Path) -> None:
    plan: list[object] = []
    for _ in range(100_000):
        plan = [plan]
    record = record_at(tmp_path)
    assert record.keep_plan(plan) == ""
    assert "nested too deeply" in record.problems[0]

"""The inbox: what is taken out of it, by whom, and where it goes from there."""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime
from pathlib import Path

import pytest

from podium.core.errors import BadInput, NotPossibleNow
from podium.jobs.sense.orders.work_order import Ack, Claim, OpResult
from podium.jobs.sense.ports import OrderInbox
from podium.testing import FixedClock
from tests.unit.bridge.inbox_harness import FOLDERS, RUN, TAIL, dropped, inbox_at

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def _claimed(root: Path, name: str = "FIX.yaml") -> Claim:
    claim = inbox_at(root).claim(name, run_id=RUN, worker="wrk_1")
    assert claim is not None
    return claim


def _ack(wo_id: str, **changes: object) -> Ack:
    return Ack.model_validate({"wo_id": wo_id, "status": "done", "finished_at": NOON, **changes})


def test_orders_wait_oldest_first(tmp_path: Path) -> None:
    dropped(tmp_path, "new.yaml", at=300)
    dropped(tmp_path, "old.yml", at=100)
    dropped(tmp_path, "mid.yaml", at=200)
    inbox: OrderInbox = inbox_at(tmp_path)
    assert inbox.waiting() == ["old.yml", "mid.yaml", "new.yaml"]


def test_a_root_without_folders_has_nothing_waiting_and_stays_as_it_is(tmp_path: Path) -> None:
    inbox = inbox_at(tmp_path)
    assert not inbox.waiting()
    assert not inbox.claims()
    assert inbox.claim("FIX.yaml", run_id=RUN, worker="w") is None
    assert inbox.answered("FIX") is None
    assert not list(tmp_path.iterdir())


def test_a_claim_is_one_rename_that_says_run_and_worker(tmp_path: Path) -> None:
    inode = dropped(tmp_path, "FIX.yaml").stat().st_ino
    claim = _claimed(tmp_path)
    assert claim == Claim(name=f"{RUN}--wrk_1--FIX.yaml", file="FIX.yaml", run_id=RUN, worker="wrk_1")  # fmt: skip
    assert (tmp_path / FOLDERS.claimed / claim.name).stat().st_ino == inode
    assert not inbox_at(tmp_path).waiting()
    assert inbox_at(tmp_path).claims() == [claim]


def test_what_is_gone_is_claimed_by_nobody(tmp_path: Path) -> None:
    dropped(tmp_path, "FIX.yaml")
    _claimed(tmp_path)
    assert inbox_at(tmp_path).claim("FIX.yaml", run_id="run_2", worker="w") is None


def test_an_order_of_the_same_name_never_covers_a_claimed_one(tmp_path: Path) -> None:
    dropped(tmp_path, "FIX.yaml", "first: 1")
    _claimed(tmp_path)
    dropped(tmp_path, "FIX.yaml", "second: 2")
    with pytest.raises(BadInput, match="already"):
        _claimed(tmp_path)
    assert inbox_at(tmp_path).claim("FIX.yaml", run_id="run_2", worker="w") is not None
    kept = sorted(path.read_text() for path in (tmp_path / FOLDERS.claimed).iterdir())
    assert kept == ["first: 1", "second: 2"]


def test_the_name_of_a_worker_cannot_confuse_the_name_of_a_claim(tmp_path: Path) -> None:
    dropped(tmp_path, "a--b.yaml")
    claim = inbox_at(tmp_path).claim("a--b.yaml", run_id=RUN, worker="../x--y z/" + "w" * 99)
    assert claim is not None
    assert inbox_at(tmp_path).claims() == [claim]
    assert claim.worker.startswith("..-x-y-z-w")
    assert claim.file == "a--b.yaml"


@pytest.mark.parametrize("name", [".FIX.yaml", "FIX.yaml.tmp", "FIX.yaml~", ".gitkeep", "#FIX#"])
def test_what_nobody_means_as_an_order_by_its_name_is_not_looked_at(
    tmp_path: Path, name: str
) -> None:
    dropped(tmp_path, name)
    inbox = inbox_at(tmp_path)
    assert not inbox.waiting()
    assert not inbox.passed_over
    assert inbox.claim(name, run_id=RUN, worker="w") is None


@pytest.mark.parametrize(
    "name",
    ["FIX.json", "FIX", "FIX.YAML", "FIX.tmp.yaml", "~FIX.yaml", "-rf.yaml", "a\nb.yaml", "a\x1b[2J.yaml", "a\u202eb.yaml", "x" * 130 + ".yaml", os.fsdecode(b"\xff.yaml")],
)  # fmt: skip
def test_file_with_an_unusable_name_stays_and_is_reported(tmp_path: Path, name: str) -> None:
    dropped(tmp_path, name)
    inbox = inbox_at(tmp_path)
    assert not inbox.waiting()
    assert inbox.claim(name, run_id=RUN, worker="w") is None
    assert inbox.passed_over[0].startswith(f"{name!r}: ")
    assert inbox.passed_over[0].isprintable()


def test_links_folders_and_pipes_stay_in_the_inbox(tmp_path: Path) -> None:
    place = tmp_path / FOLDERS.inbox
    place.mkdir(parents=True)
    outside = tmp_path / "outside.yaml"
    outside.write_text("id: X\ntitle: x\n")
    (place / "link.yaml").symlink_to(outside)
    (place / "loop.yaml").symlink_to("loop.yaml")
    os.link(outside, place / "hard.yaml")
    os.mkfifo(place / "pipe.yaml")
    (place / "folder.yaml").mkdir()
    inbox = inbox_at(tmp_path)
    assert not inbox.waiting()
    assert [item.split(":")[0] for item in inbox.passed_over] == [
        "'folder.yaml'",
        "'hard.yaml'",
        "'link.yaml'",
        "'loop.yaml'",
        "'pipe.yaml'",
    ]
    for name in ("link.yaml", "loop.yaml", "hard.yaml", "pipe.yaml", "folder.yaml"):
        assert inbox.claim(name, run_id=RUN, worker="w") is None


@pytest.mark.parametrize("file", ["../outside.yaml", "/etc/x.yaml", "a/b.yaml", "", ".."])
def test_a_claim_reaches_nothing_outside_the_inbox(tmp_path: Path, file: str) -> None:
    dropped(tmp_path, "FIX.yaml")
    outside = tmp_path / "bridge/inbox/outside.yaml"
    outside.write_text("x")
    assert inbox_at(tmp_path).claim(file, run_id=RUN, worker="w") is None
    assert outside.exists()


@pytest.mark.parametrize("run_id", ["", "../run", "a/b", "a--b", "run_\n"])
def test_a_claim_needs_a_run_that_can_be_part_of_a_name(tmp_path: Path, run_id: str) -> None:
    dropped(tmp_path, "FIX.yaml")
    with pytest.raises(BadInput, match="not a run id"):
        inbox_at(tmp_path).claim("FIX.yaml", run_id=run_id, worker="w")


@pytest.mark.parametrize("place", ["bridge", "bridge/inbox", "bridge/inbox/CLC"])
def test_a_linked_folder_on_the_way_is_refused(tmp_path: Path, place: str) -> None:
    root, away = tmp_path / "root", tmp_path / "away"
    dropped(away, "FIX.yaml")
    (root / place).parent.mkdir(parents=True)
    (root / place).symlink_to(away / place)
    with pytest.raises(NotPossibleNow, match="symbolic link"):
        inbox_at(root).waiting()


def test_a_linked_shelf_is_refused_and_the_claim_stays(tmp_path: Path) -> None:
    dropped(tmp_path, "FIX.yaml")
    claim = _claimed(tmp_path)
    (tmp_path / "away").mkdir()
    (tmp_path / "bridge/done").mkdir()
    (tmp_path / FOLDERS.done).symlink_to(tmp_path / "away")
    with pytest.raises(NotPossibleNow, match="symbolic link"):
        inbox_at(tmp_path).put_away(claim, "done")
    assert inbox_at(tmp_path).claims() == [claim]
    assert not list((tmp_path / "away").iterdir())


@pytest.mark.parametrize("content", ["", "ops: [", "just words", "- a\n- b\n"])
def test_what_is_still_being_written_waits_until_it_is_quiet(tmp_path: Path, content: str) -> None:
    clock = FixedClock()
    dropped(tmp_path, "FIX.yaml", content, at=clock.now().timestamp())
    inbox = inbox_at(tmp_path, clock)
    clock.advance(1.9)
    assert not inbox.waiting()
    assert inbox.passed_over == ("'FIX.yaml': still being written",)
    assert inbox.claim("FIX.yaml", run_id=RUN, worker="w") is None
    clock.advance(0.2)
    assert inbox.waiting() == ["FIX.yaml"]
    assert inbox.claim("FIX.yaml", run_id=RUN, worker="w") is not None


def test_a_whole_order_is_taken_at_once(tmp_path: Path) -> None:
    clock = FixedClock()
    dropped(tmp_path, "FIX.yaml", at=clock.now().timestamp())
    assert inbox_at(tmp_path, clock).waiting() == ["FIX.yaml"]
    assert inbox_at(tmp_path, clock).claim("FIX.yaml", run_id=RUN, worker="w") is not None


def test_a_file_from_the_far_future_does_not_wait_for_it(tmp_path: Path) -> None:
    clock = FixedClock()
    dropped(tmp_path, "FIX.yaml", "", at=clock.now().timestamp() + 9_999_999)
    assert inbox_at(tmp_path, clock).waiting() == ["FIX.yaml"]


def test_a_claimed_file_that_became_a_link_is_not_followed(tmp_path: Path) -> None:
    dropped(tmp_path, "FIX.yaml")
    claim = _claimed(tmp_path)
    path = tmp_path / FOLDERS.claimed / claim.name
    (tmp_path / "secret.yaml").write_text("id: X\ntitle: secret\n")
    path.unlink()
    path.symlink_to(tmp_path / "secret.yaml")
    opened = inbox_at(tmp_path).open(claim)
    assert opened.order is None
    assert "symbolic link" in opened.fault
    path.unlink()
    assert "no longer among" in inbox_at(tmp_path).open(claim).fault


def test_foreign_files_among_the_claimed_are_no_claims(tmp_path: Path) -> None:
    dropped(tmp_path, "FIX.yaml")
    claim = _claimed(tmp_path)
    for name in ("notes.txt", "a--b", "--w--x.yaml", "run_1--w--.yaml", ".run_1--w--x.yaml"):
        (tmp_path / FOLDERS.claimed / name).write_text("x")
    assert inbox_at(tmp_path).claims() == [claim]


def test_a_done_order_lies_on_its_shelf_under_its_name_and_run(tmp_path: Path) -> None:
    dropped(tmp_path, "FIX.yaml")
    claim = _claimed(tmp_path)
    where = inbox_at(tmp_path).put_away(claim, "done")
    assert where == f"{FOLDERS.done}/FIX.{TAIL}.yaml"
    assert "id: FIX" in (tmp_path / where).read_text()
    assert not inbox_at(tmp_path).claims()
    assert inbox_at(tmp_path).put_away(claim, "done") == where


def test_a_parked_order_has_its_reason_beside_it(tmp_path: Path) -> None:
    dropped(tmp_path, "FIX.yaml")
    where = inbox_at(tmp_path).put_away(_claimed(tmp_path), "parked", "failed 3 times: hunter2")
    assert where == f"{FOLDERS.parked}/FIX.{TAIL}.yaml"
    reason = tmp_path / f"{where}.reason.txt"
    assert reason.read_text() == "failed 3 times: [redacted:password]\n"


def test_a_made_up_claim_moves_nothing(tmp_path: Path) -> None:
    (tmp_path / "victim.yaml").write_text("x")
    claim = Claim(name="../../../victim.yaml", file="victim.yaml", run_id=RUN, worker="w")
    with pytest.raises(BadInput, match="not the name of a claimed file"):
        inbox_at(tmp_path).put_away(claim, "done")
    with pytest.raises(BadInput, match="not the name of a claimed file"):
        inbox_at(tmp_path).open(claim)


def test_an_answer_is_found_again_without_its_secrets(tmp_path: Path) -> None:
    ops = (OpResult(number=1, op="mkdir", status="failed", error="no hunter2"),)
    ack = _ack("FIX", status="failed", error="hunter2", ops=ops)
    where = inbox_at(tmp_path).acknowledge(ack)
    assert where == f"{FOLDERS.acks}/FIX.ack.json"
    assert "hunter2" not in (tmp_path / where).read_text()
    found = inbox_at(tmp_path).answered("FIX")
    assert found is not None
    assert (found.status, found.error) == ("failed", "[redacted:password]")
    assert found.ops[0].error == "no [redacted:password]"


def test_a_second_answer_takes_the_place_of_the_first(tmp_path: Path) -> None:
    inbox = inbox_at(tmp_path)
    inbox.acknowledge(_ack("FIX", status="waiting"))
    inbox.acknowledge(_ack("FIX", status="done"))
    assert [path.name for path in (tmp_path / FOLDERS.acks).iterdir()] == ["FIX.ack.json"]
    found = inbox.answered("FIX")
    assert found is not None
    assert found.status == "done"


def test_an_answer_to_what_has_no_id_never_covers_that_of_an_order(tmp_path: Path) -> None:
    inbox = inbox_at(tmp_path)
    inbox.acknowledge(_ack("a-b"))
    names = {inbox.acknowledge(_ack(wo_id, status="refused")) for wo_id in ("a b", "a-b.yaml", "../a-b", "", "x" * 999, "\ud800")}  # fmt: skip
    assert len(names) == 6
    assert all(Path(name).parent == Path(FOLDERS.acks) for name in names)
    found = inbox.answered("a-b")
    assert found is not None
    assert found.status == "done"


def test_an_answer_is_whole_or_the_old_one(tmp_path: Path) -> None:
    """A link or a folder in its place does not lead the answer anywhere else."""
    acks = tmp_path / FOLDERS.acks
    acks.mkdir(parents=True)
    victim = tmp_path / "victim.json"
    victim.write_text("{}")
    (acks / "FIX.ack.json").symlink_to(victim)
    inbox_at(tmp_path).acknowledge(_ack("FIX"))
    assert victim.read_text() == "{}"
    assert json.loads((acks / "FIX.ack.json").read_text())["wo_id"] == "FIX"
    (acks / "DIR.ack.json").mkdir()
    with pytest.raises(NotPossibleNow, match=r"DIR\.ack\.json"):
        inbox_at(tmp_path).acknowledge(_ack("DIR"))
    assert sorted(path.name for path in acks.iterdir()) == ["DIR.ack.json", "FIX.ack.json"]


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"\xff", b'{"wo_id": "FIX"}', b'{"wo_id": "OTHER", "status": "done", "finished_at": "2026-01-01T00:00:00Z"}'])  # fmt: skip
def test_what_is_no_answer_to_this_order_is_none(tmp_path: Path, content: bytes) -> None:
    (tmp_path / FOLDERS.acks).mkdir(parents=True)
    (tmp_path / FOLDERS.acks / "FIX.ack.json").write_bytes(content)
    assert inbox_at(tmp_path).answered("FIX") is None

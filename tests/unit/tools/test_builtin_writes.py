from __future__ import annotations

import hashlib
import os
from pathlib import Path

import pytest

from podium.core.decisions import CallOutcome
from tests.unit.tools.toolbox_harness import SECRET, Harness, make_harness


def sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


@pytest.fixture
def harness(tmp_path: Path) -> Harness:
    return make_harness(tmp_path)


async def test_a_new_file_is_written_and_receipted(harness: Harness) -> None:
    outcome = await harness.use("write_file", path="docs/a.txt", content="héllo")

    assert outcome.ok
    assert (harness.root / "docs/a.txt").read_text() == "héllo"
    (receipt,) = await harness.receipts()
    assert receipt.fields == {
        "path": "docs/a.txt",
        "sha256": sha256("héllo"),
        "bytes": 6,
        "created": True,
        "previous_sha256": None,
        "can_undo": True,
    }


async def test_secret_reference_is_not_written_and_the_agent_is_notified(harness: Harness) -> None:
    outcome = await harness.use("write_file", path="a.env", content="KEY=secret://DOOR_KEY\n")

    assert not outcome.ok
    assert "'secret://DOOR_KEY'" in outcome.error
    assert "`env` of run_command" in outcome.error
    assert not (harness.root / "a.env").exists()


async def test_an_earlier_content_with_a_secret_is_not_kept_and_the_receipt_says_so(
    harness: Harness, tmp_path: Path
) -> None:
    (harness.root / "a").write_text(f"key={SECRET}\n")

    outcome = await harness.use("write_file", path="a", content="clean")

    assert outcome.ok
    assert outcome.result["undo"] is None
    assert not [path for path in tmp_path.glob("kept/*") if path.is_file()]
    (receipt,) = await harness.receipts()
    assert receipt.fields["can_undo"] is False


@pytest.mark.parametrize("path", [".git/hooks/pre-commit", "sub/.GIT/config", "../out", "link/x"])
async def test_git_and_everything_outside_cannot_be_written(
    harness: Harness, tmp_path: Path, path: str
) -> None:
    (harness.root / "link").symlink_to(tmp_path)

    outcome = await harness.use("write_file", path=path, content="x")

    assert not outcome.ok
    assert os.listdir(tmp_path) == ["workspace"]
    assert os.listdir(harness.root) == ["link"]


async def test_a_link_put_there_after_the_judgement_is_not_followed(
    harness: Harness, tmp_path: Path
) -> None:
    (harness.root / "d").mkdir()
    call = harness.call("write_file", path="d/f", content="x")
    (harness.root / "d").rmdir()
    (harness.root / "d").symlink_to(tmp_path)

    outcome = await harness.toolbox.perform(call)

    assert isinstance(outcome, CallOutcome)
    assert "symbolic link" in outcome.error
    assert not (tmp_path / "f").exists()


async def _undo(harness: Harness, index: int) -> CallOutcome:
    undo = (await harness.receipts())[-1].undo
    assert undo is not None
    return await harness.use(undo["tool"], index, **undo["arguments"])


async def test_undo_puts_back_what_was_there_before(harness: Harness) -> None:
    (harness.root / "a").write_text("before")
    await harness.use("write_file", path="a", content="after")

    outcome = await _undo(harness, 1)

    assert outcome.result == {"path": "a", "sha256": sha256("before"), "removed": False}
    assert (harness.root / "a").read_text() == "before"


async def test_undo_removes_a_file_that_was_created_and_is_content_when_it_is_gone(
    harness: Harness,
) -> None:
    await harness.use("write_file", path="a", content="x")
    undo = (await harness.receipts())[-1].undo
    assert undo is not None

    first = await harness.use(undo["tool"], 1, **undo["arguments"])
    second = await harness.use(undo["tool"], 2, **undo["arguments"])

    assert first.ok
    assert second.ok
    assert not (harness.root / "a").exists()


async def test_undo_refuses_to_lose_a_later_change(harness: Harness) -> None:
    await harness.use("write_file", path="a", content="x")
    (harness.root / "a").write_text("changed by hand")

    outcome = await _undo(harness, 1)

    assert "was changed after it was written" in outcome.error
    assert (harness.root / "a").read_text() == "changed by hand"


async def test_undo_refuses_a_kept_content_that_was_changed_or_is_gone(
    harness: Harness, tmp_path: Path
) -> None:
    (harness.root / "a").write_text("before")
    await harness.use("write_file", path="a", content="after")
    undo = (await harness.receipts())[-1].undo
    assert undo is not None
    (kept,) = (path for path in (tmp_path / "kept").iterdir() if path.is_file())

    kept.write_text("forged")
    forged = await harness.use("restore_file", 1, **undo["arguments"])
    kept.unlink()
    gone = await harness.use("restore_file", 2, **undo["arguments"])

    assert "was changed" in forged.error
    assert "no longer stored" in gone.error
    assert (harness.root / "a").read_text() == "after"


async def test_an_overwrite_has_no_undo_where_nothing_is_kept(tmp_path: Path) -> None:
    harness = make_harness(tmp_path, keep=False)
    (harness.root / "a").write_text("before")

    await harness.use("write_file", path="a", content="after")

    assert (await harness.receipts())[-1].undo is None

"""Moving files to the trash, and restoring them."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tests.unit.tools.orders.order_harness import act_and_crash, order_harness, perform, undo_last
from tests.unit.tools.toolbox_harness import Harness


@pytest.fixture
def harness(tmp_path: Path) -> Harness:
    harness = order_harness(tmp_path)
    (harness.root / "docs").mkdir()
    (harness.root / "docs/a").write_text("A")
    return harness


@pytest.mark.parametrize("path", ["docs/a", "docs"])
async def test_a_file_or_a_whole_folder_is_trashed_and_brought_back(
    harness: Harness, path: str
) -> None:
    outcome = await harness.use("trash_file", path=path)

    assert outcome.ok, outcome.error
    assert not (harness.root / "docs/a").exists()
    (note,) = (harness.root / ".podium/trash").glob("*/note.json")
    assert json.loads(note.read_text())["path"] == path
    assert (harness.root / ".podium").stat().st_mode & 0o777 == 0o700
    assert (await harness.receipts())[-1].fields["files"] == 1
    assert (await undo_last(harness)).ok
    assert (harness.root / "docs/a").read_text() == "A"


@pytest.mark.parametrize("path", ["docs/a", "docs"])
async def test_what_was_trashed_before_the_record_was_lost_is_known_to_be(
    harness: Harness, path: str
) -> None:
    call = harness.call("trash_file", path=path)

    first = await act_and_crash(harness, call)
    second = await perform(harness, call)

    assert first.ok
    assert second.result == first.result
    assert len(list((harness.root / ".podium/trash").iterdir())) == 1


async def test_a_new_file_in_the_old_place_is_not_trashed_by_a_second_try(harness: Harness) -> None:
    call = harness.call("trash_file", path="docs/a")
    first = await act_and_crash(harness, call)
    (harness.root / "docs/a").write_text("new")

    second = await perform(harness, call)

    assert second.result == first.result
    assert (harness.root / "docs/a").read_text() == "new"


async def test_undo_replaces_nothing_and_may_be_tried_again(harness: Harness) -> None:
    await harness.use("trash_file", path="docs/a")
    undo = (await harness.receipts())[-1].undo
    assert undo is not None
    (harness.root / "docs/a").write_text("new")

    refused = await harness.use(undo["tool"], 1, **undo["arguments"])
    (harness.root / "docs/a").unlink()
    call = harness.call(undo["tool"], 2, **undo["arguments"])
    first = await act_and_crash(harness, call)
    second = await perform(harness, call)
    third = await harness.use(undo["tool"], 3, **undo["arguments"])

    assert "already exists" in refused.error
    assert first.result == second.result
    assert "is not in the trash" in third.error
    assert (harness.root / "docs/a").read_text() == "A"


async def test_what_came_from_elsewhere_is_not_brought_to_this_place(harness: Harness) -> None:
    await harness.use("trash_file", path="docs/a")
    trash = (await harness.receipts())[-1].fields["trash"]

    outcome = await harness.use("untrash_file", path="g/a", trash=trash)

    assert "'g/a' is not in the trash" in outcome.error
    assert not (harness.root / "g").exists()


@pytest.mark.parametrize(
    "path", ["pipe", "link", "hard", "missing", ".", ".podium", "repo", "keys"]
)
async def test_what_must_stay_is_not_trashed(harness: Harness, path: str) -> None:
    root = harness.root
    os.mkfifo(root / "pipe")
    (root / "link").symlink_to("docs")
    (root / "hard").hardlink_to(root / "docs/a")
    (root / "repo/.git").mkdir(parents=True)
    (root / "keys").mkdir()
    (root / "keys/.env").write_text("in a zone that walks leave out")
    before = sorted(os.listdir(root))

    outcome = await harness.use("trash_file", path=path)

    assert not outcome.ok
    assert sorted(os.listdir(root)) == before
    assert (root / "docs/a").read_text() == "A"


async def test_a_link_in_place_of_the_trash_leads_nowhere(harness: Harness, tmp_path: Path) -> None:
    (harness.root / ".podium").symlink_to(tmp_path)

    outcome = await harness.use("trash_file", path="docs/a")

    assert "symbolic link" in outcome.error
    assert (harness.root / "docs/a").read_text() == "A"

"""Moving files to the trash, and restoring them."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tests.unit.tools.orders.order_rig import act_and_crash, order_rig, perform, undo_last
from tests.unit.tools.rig import Rig


@pytest.fixture
def rig(tmp_path: Path) -> Rig:
    rig = order_rig(tmp_path)
    (rig.root / "docs").mkdir()
    (rig.root / "docs/a").write_text("A")
    return rig


@pytest.mark.parametrize("path", ["docs/a", "docs"])
async def test_a_file_or_a_whole_folder_is_trashed_and_brought_back(rig: Rig, path: str) -> None:
    outcome = await rig.use("trash_file", path=path)

    assert outcome.ok, outcome.error
    assert not (rig.root / "docs/a").exists()
    (note,) = (rig.root / ".podium/trash").glob("*/note.json")
    assert json.loads(note.read_text())["path"] == path
    assert (rig.root / ".podium").stat().st_mode & 0o777 == 0o700
    assert (await rig.receipts())[-1].fields["files"] == 1
    assert (await undo_last(rig)).ok
    assert (rig.root / "docs/a").read_text() == "A"


@pytest.mark.parametrize("path", ["docs/a", "docs"])
async def test_what_was_trashed_before_the_record_was_lost_is_known_to_be(
    rig: Rig, path: str
) -> None:
    call = rig.call("trash_file", path=path)

    first = await act_and_crash(rig, call)
    second = await perform(rig, call)

    assert first.ok
    assert second.result == first.result
    assert len(list((rig.root / ".podium/trash").iterdir())) == 1


async def test_a_new_file_in_the_old_place_is_not_trashed_by_a_second_try(rig: Rig) -> None:
    call = rig.call("trash_file", path="docs/a")
    first = await act_and_crash(rig, call)
    (rig.root / "docs/a").write_text("new")

    second = await perform(rig, call)

    assert second.result == first.result
    assert (rig.root / "docs/a").read_text() == "new"


async def test_undo_replaces_nothing_and_may_be_tried_again(rig: Rig) -> None:
    await rig.use("trash_file", path="docs/a")
    undo = (await rig.receipts())[-1].undo
    assert undo is not None
    (rig.root / "docs/a").write_text("new")

    refused = await rig.use(undo["tool"], 1, **undo["arguments"])
    (rig.root / "docs/a").unlink()
    call = rig.call(undo["tool"], 2, **undo["arguments"])
    first = await act_and_crash(rig, call)
    second = await perform(rig, call)
    third = await rig.use(undo["tool"], 3, **undo["arguments"])

    assert "already exists" in refused.error
    assert first.result == second.result
    assert "is not in the trash" in third.error
    assert (rig.root / "docs/a").read_text() == "A"


async def test_what_came_from_elsewhere_is_not_brought_to_this_place(rig: Rig) -> None:
    await rig.use("trash_file", path="docs/a")
    trash = (await rig.receipts())[-1].fields["trash"]

    outcome = await rig.use("untrash_file", path="g/a", trash=trash)

    assert "'g/a' is not in the trash" in outcome.error
    assert not (rig.root / "g").exists()


@pytest.mark.parametrize(
    "path", ["pipe", "link", "hard", "missing", ".", ".podium", "repo", "keys"]
)
async def test_what_must_stay_is_not_trashed(rig: Rig, path: str) -> None:
    root = rig.root
    os.mkfifo(root / "pipe")
    (root / "link").symlink_to("docs")
    (root / "hard").hardlink_to(root / "docs/a")
    (root / "repo/.git").mkdir(parents=True)
    (root / "keys").mkdir()
    (root / "keys/.env").write_text("in a zone that walks leave out")
    before = sorted(os.listdir(root))

    outcome = await rig.use("trash_file", path=path)

    assert not outcome.ok
    assert sorted(os.listdir(root)) == before
    assert (root / "docs/a").read_text() == "A"


async def test_a_link_in_place_of_the_trash_leads_nowhere(rig: Rig, tmp_path: Path) -> None:
    (rig.root / ".podium").symlink_to(tmp_path)

    outcome = await rig.use("trash_file", path="docs/a")

    assert "symbolic link" in outcome.error
    assert (rig.root / "docs/a").read_text() == "A"

"""Files and folders get another place, and nothing that stands there is lost."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from podium.core.model import Json
from tests.unit.tools.orders.order_harness import act_and_crash, order_harness, perform, undo_last
from tests.unit.tools.toolbox_harness import SECRET, Harness


@pytest.fixture
def harness(tmp_path: Path) -> Harness:
    harness = order_harness(tmp_path)
    (harness.root / "a").write_text("A")
    return harness


def tree(root: Path) -> dict[str, str]:
    files = (path for path in root.rglob("*") if path.is_file())
    return {path.relative_to(root).as_posix(): path.read_text() for path in files}


async def test_a_file_is_moved_and_moved_back_by_undo(harness: Harness) -> None:
    outcome = await harness.use("move_file", path="a", to="deep/down/b")

    assert outcome.ok, outcome.error
    assert tree(harness.root) == {"deep/down/b": "A"}
    assert (await harness.receipts())[-1].fields == {"path": "a", "to": "deep/down/b", "bytes": 1}
    assert (await undo_last(harness)).ok
    assert tree(harness.root) == {"a": "A"}


async def test_a_copy_keeps_the_permission_bits_and_undo_removes_it(harness: Harness) -> None:
    (harness.root / "a").chmod(0o750)

    outcome = await harness.use("copy_file", path="a", to="b")

    assert outcome.ok, outcome.error
    assert (harness.root / "b").stat().st_mode & 0o777 == 0o750
    assert tree(harness.root) == {"a": "A", "b": "A"}
    assert (await undo_last(harness)).ok
    assert tree(harness.root) == {"a": "A"}


async def test_folder_is_made_once_and_reported_as_made_at_every_try(harness: Harness) -> None:
    call = harness.call("make_folder", path="x/y/z")

    first = await act_and_crash(harness, call)
    second = await perform(harness, call)
    later = await harness.use("make_folder", 1, path="x/y/z")

    assert first.result == second.result == {"path": "x/y/z", "created": True}
    assert later.result["created"] is False
    assert (harness.root / "x/y/z").is_dir()


@pytest.mark.parametrize("tool", ["move_file", "copy_file"])
async def test_an_act_whose_record_was_lost_is_known_to_be_done(
    harness: Harness, tool: str
) -> None:
    call = harness.call(tool, path="a", to="b")

    first = await act_and_crash(harness, call)
    after = tree(harness.root)
    second = await perform(harness, call)

    assert first.ok
    assert second.result == first.result
    assert tree(harness.root) == after


async def test_a_move_that_was_cut_in_two_is_ended(
    harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    call = harness.call("move_file", path="a", to="b")

    class Killed(BaseException):
        pass

    unlink = os.unlink

    def killed(name: str, *, dir_fd: int | None = None) -> None:
        if name == "a":
            raise Killed
        unlink(name, dir_fd=dir_fd)

    with monkeypatch.context() as patched:
        # The moment of the crash: patched because a real one cannot be aimed between two lines.
        patched.setattr("podium.platform.safe_files.os.unlink", killed)
        with pytest.raises(Killed):
            await act_and_crash(harness, call)
    assert tree(harness.root) == {"a": "A", "b": "A"}

    outcome = await perform(harness, call)

    assert outcome.ok, outcome.error
    assert tree(harness.root) == {"b": "A"}


@pytest.mark.parametrize("tool", ["move_file", "copy_file"])
@pytest.mark.parametrize("to", ["b", "folder", "pipe", "link", "a"])
async def test_existing_file_at_the_new_place_is_not_replaced(
    harness: Harness, tool: str, to: str
) -> None:
    (harness.root / "b").write_text("B")
    (harness.root / "folder").mkdir()
    os.mkfifo(harness.root / "pipe")
    (harness.root / "link").symlink_to("nowhere")

    outcome = await harness.use(tool, path="a", to=to)

    assert ("symbolic link" if to == "link" else "already exists") in outcome.error
    assert tree(harness.root) == {"a": "A", "b": "B"}


@pytest.mark.parametrize("tool", ["move_file", "copy_file"])
@pytest.mark.parametrize("path", ["folder", "pipe", "link", "hard", "missing"])
async def test_only_plain_files_of_their_own_are_moved_and_copied(
    harness: Harness, tool: str, path: str
) -> None:
    (harness.root / "folder").mkdir()
    os.mkfifo(harness.root / "pipe")
    (harness.root / "link").symlink_to("a")
    (harness.root / "hard").hardlink_to(harness.root / "a")

    outcome = await harness.use(tool, path=path, to="new")

    assert not outcome.ok
    assert not (harness.root / "new").exists()


@pytest.mark.parametrize("tool", ["move_file", "copy_file"])
async def test_what_was_put_there_in_between_is_left_alone(harness: Harness, tool: str) -> None:
    call = harness.call(tool, path="a", to="b")
    await act_and_crash(harness, call)
    (harness.root / "b").unlink()
    (harness.root / "b").write_text("mine")
    before = tree(harness.root)

    outcome = await perform(harness, call)

    assert "changed by somebody else" in outcome.error
    assert tree(harness.root) == before


@pytest.mark.parametrize("tool", ["move_file", "copy_file", "make_folder"])
async def test_a_link_that_appears_after_the_judgement_leads_nowhere(
    harness: Harness, tmp_path: Path, tool: str
) -> None:
    (harness.root / "d").mkdir()
    arguments: dict[str, Json] = {"path": "a", "to": "d/b"}
    call = harness.call(tool, **({"path": "d/b"} if tool == "make_folder" else arguments))
    (harness.root / "d").rmdir()
    (harness.root / "d").symlink_to(tmp_path)

    outcome = await perform(harness, call)

    assert "symbolic link" in outcome.error
    assert not (tmp_path / "b").exists()
    assert tree(harness.root)["a"] == "A"


async def test_a_file_with_a_secret_in_it_is_not_copied(harness: Harness) -> None:
    (harness.root / "keys").write_text(SECRET)

    outcome = await harness.use("copy_file", path="keys", to="b")

    assert "contains a secret" in outcome.error
    assert not (harness.root / "b").exists()

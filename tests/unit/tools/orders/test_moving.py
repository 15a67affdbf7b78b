"""Files and folders get another place, and nothing that stands there is lost."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from podium.core.model import Json
from tests.unit.tools.orders.order_rig import act_and_crash, order_rig, perform, undo_last
from tests.unit.tools.rig import SECRET, Rig


@pytest.fixture
def rig(tmp_path: Path) -> Rig:
    rig = order_rig(tmp_path)
    (rig.root / "a").write_text("A")
    return rig


def tree(root: Path) -> dict[str, str]:
    files = (path for path in root.rglob("*") if path.is_file())
    return {path.relative_to(root).as_posix(): path.read_text() for path in files}


async def test_a_file_is_moved_and_moved_back_by_undo(rig: Rig) -> None:
    outcome = await rig.use("move_file", path="a", to="deep/down/b")

    assert outcome.ok, outcome.error
    assert tree(rig.root) == {"deep/down/b": "A"}
    assert (await rig.receipts())[-1].fields == {"path": "a", "to": "deep/down/b", "bytes": 1}
    assert (await undo_last(rig)).ok
    assert tree(rig.root) == {"a": "A"}


async def test_a_copy_keeps_the_permission_bits_and_undo_removes_it(rig: Rig) -> None:
    (rig.root / "a").chmod(0o750)

    outcome = await rig.use("copy_file", path="a", to="b")

    assert outcome.ok, outcome.error
    assert (rig.root / "b").stat().st_mode & 0o777 == 0o750
    assert tree(rig.root) == {"a": "A", "b": "A"}
    assert (await undo_last(rig)).ok
    assert tree(rig.root) == {"a": "A"}


async def test_a_folder_is_made_once_and_said_to_be_made_at_every_try(rig: Rig) -> None:
    call = rig.call("make_folder", path="x/y/z")

    first = await act_and_crash(rig, call)
    second = await perform(rig, call)
    later = await rig.use("make_folder", 1, path="x/y/z")

    assert first.result == second.result == {"path": "x/y/z", "created": True}
    assert later.result["created"] is False
    assert (rig.root / "x/y/z").is_dir()


@pytest.mark.parametrize("tool", ["move_file", "copy_file"])
async def test_an_act_whose_record_was_lost_is_known_to_be_done(rig: Rig, tool: str) -> None:
    call = rig.call(tool, path="a", to="b")

    first = await act_and_crash(rig, call)
    after = tree(rig.root)
    second = await perform(rig, call)

    assert first.ok
    assert second.result == first.result
    assert tree(rig.root) == after


async def test_a_move_that_was_cut_in_two_is_ended(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    call = rig.call("move_file", path="a", to="b")

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
            await act_and_crash(rig, call)
    assert tree(rig.root) == {"a": "A", "b": "A"}

    outcome = await perform(rig, call)

    assert outcome.ok, outcome.error
    assert tree(rig.root) == {"b": "A"}


@pytest.mark.parametrize("tool", ["move_file", "copy_file"])
@pytest.mark.parametrize("to", ["b", "folder", "pipe", "link", "a"])
async def test_what_stands_at_the_new_place_is_not_replaced(rig: Rig, tool: str, to: str) -> None:
    (rig.root / "b").write_text("B")
    (rig.root / "folder").mkdir()
    os.mkfifo(rig.root / "pipe")
    (rig.root / "link").symlink_to("nowhere")

    outcome = await rig.use(tool, path="a", to=to)

    assert ("symbolic link" if to == "link" else "already exists") in outcome.error
    assert tree(rig.root) == {"a": "A", "b": "B"}


@pytest.mark.parametrize("tool", ["move_file", "copy_file"])
@pytest.mark.parametrize("path", ["folder", "pipe", "link", "hard", "missing"])
async def test_only_plain_files_of_their_own_are_moved_and_copied(
    rig: Rig, tool: str, path: str
) -> None:
    (rig.root / "folder").mkdir()
    os.mkfifo(rig.root / "pipe")
    (rig.root / "link").symlink_to("a")
    (rig.root / "hard").hardlink_to(rig.root / "a")

    outcome = await rig.use(tool, path=path, to="new")

    assert not outcome.ok
    assert not (rig.root / "new").exists()


@pytest.mark.parametrize("tool", ["move_file", "copy_file"])
async def test_what_was_put_there_in_between_is_left_alone(rig: Rig, tool: str) -> None:
    call = rig.call(tool, path="a", to="b")
    await act_and_crash(rig, call)
    (rig.root / "b").unlink()
    (rig.root / "b").write_text("mine")
    before = tree(rig.root)

    outcome = await perform(rig, call)

    assert "changed by somebody else" in outcome.error
    assert tree(rig.root) == before


@pytest.mark.parametrize("tool", ["move_file", "copy_file", "make_folder"])
async def test_a_link_that_appears_after_the_judgement_leads_nowhere(
    rig: Rig, tmp_path: Path, tool: str
) -> None:
    (rig.root / "d").mkdir()
    arguments: dict[str, Json] = {"path": "a", "to": "d/b"}
    call = rig.call(tool, **({"path": "d/b"} if tool == "make_folder" else arguments))
    (rig.root / "d").rmdir()
    (rig.root / "d").symlink_to(tmp_path)

    outcome = await perform(rig, call)

    assert "symbolic link" in outcome.error
    assert not (tmp_path / "b").exists()
    assert tree(rig.root)["a"] == "A"


async def test_a_file_with_a_secret_in_it_is_not_copied(rig: Rig) -> None:
    (rig.root / "keys").write_text(SECRET)

    outcome = await rig.use("copy_file", path="keys", to="b")

    assert "contains a secret" in outcome.error
    assert not (rig.root / "b").exists()

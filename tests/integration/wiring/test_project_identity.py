"""Podium's folders are its user's alone, and a copied project is another project."""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from podium.config.folders import project_id_in
from podium.platform import make_private_folder
from tests.integration.cli.conftest import desk as desk
from tests.integration.cli.desk import Desk
from tests.integration.cli.test_receipts import RUN, perform
from tests.integration.workspaces.yard import run_git


@pytest.fixture(params=[0o022, 0o000])
def umask(request: pytest.FixtureRequest) -> Iterator[int]:
    before = os.umask(request.param)
    yield request.param
    os.umask(before)


def wide(folder: Path) -> list[str]:
    """Folders of Podium's own that others may enter; what a project has checked out is its own."""
    return [
        str(found)
        for found in (folder, *folder.rglob("*"))
        if found.is_dir() and stat.S_IMODE(found.stat().st_mode) != 0o700
    ]


@pytest.mark.usefixtures("umask")
def test_every_folder_that_podium_makes_is_private(desk: Desk) -> None:
    run_git("init", "--quiet", cwd=desk.project)
    who = ("-c", "user.name=Bo", "-c", "user.email=bo@example.org")
    run_git(*who, "commit", "--quiet", "--allow-empty", "--message=one", cwd=desk.project)
    perform(desk, "a")
    perform(desk, "a")  # overwritten: what it held is kept
    assert desk.run("workspaces", "create", "t1").code == 0
    assert wide(desk.home) == []
    assert wide(desk.project / ".podium") == []
    assert wide(desk.project.parent / ".worktrees") == []


@pytest.mark.usefixtures("umask")
def test_folders_above_are_private_too_and_what_is_there_stays(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    make_private_folder(tmp_path / "a" / "b")
    make_private_folder(tmp_path / "a" / "b")
    assert wide(tmp_path) == [str(tmp_path)]
    (tmp_path / "file").touch()
    with pytest.raises(FileExistsError):
        make_private_folder(tmp_path / "file")


def test_folders_that_are_open_to_others_are_told_and_taken_from_them(desk: Desk) -> None:
    perform(desk, "a")
    state = desk.project / ".podium"
    for folder in (state, desk.home / "state", desk.home / "state" / "vaults"):
        folder.chmod(0o755)
    (folder,) = [
        check for check in desk.run("doctor", "--json").json["checks"] if check["name"] == "folder"
    ]
    assert folder["state"] == "warn"
    assert f"chmod 700 {state}" in folder["mend"]
    assert desk.run("runs").code == 0
    assert wide(state) == []
    assert wide(desk.home / "state") == []


def in_folder(desk: Desk, folder: Path) -> Desk:
    desk.project = folder
    return desk


def test_a_copy_gets_its_own_identity_and_both_stay_sound(desk: Desk) -> None:
    original, copy = desk.project, desk.project.with_name("copy")
    perform(desk, "a", "b")
    shutil.copytree(original, copy)
    perform(desk, "c")  # the original goes on with the same chain

    first = in_folder(desk, copy).run("receipts", "list")
    assert (first.code, "feedface" in first.out) == (0, True)
    assert first.err == (
        f"podium: {str(copy)!r} is a copy of {str(original)!r}: from now on it has its own identity, and the "
        "receipts of each are verified separately\n"
    )
    assert project_id_in(copy / ".podium") != project_id_in(original / ".podium")
    perform(desk, "d", "e")
    for folder, count in ((copy, 4), (original, 3)):
        said = in_folder(desk, folder).run("receipts", "verify")
        assert (said.code, said.out) == (0, f"{count} receipts of 1 run: sound\n"), folder
        assert said.err == ""


def test_a_copy_has_its_own_identity_before_it_has_tokens(desk: Desk) -> None:
    original, copy = desk.project, desk.project.with_name("copy")
    perform(desk, "a")
    desk.new_token("ann")
    shutil.copytree(original, copy)
    in_folder(desk, copy).new_token("bo")
    assert project_id_in(copy / ".podium") != project_id_in(original / ".podium")
    tokens = in_folder(desk, original).run("serve", "tokens", "--json").json["tokens"]
    assert [token["name"] for token in tokens] == ["ann"]


def test_what_a_copy_loses_later_is_found_in_it_alone(desk: Desk) -> None:
    original, copy = desk.project, desk.project.with_name("copy")
    perform(desk, "a")
    shutil.copytree(original, copy)
    in_folder(desk, copy).run("runs")
    (copy / ".podium" / "podium.db").unlink()
    assert desk.run("runs").code == 1
    assert in_folder(desk, original).run("receipts", "verify").code == 0


@pytest.mark.parametrize("noted", [True, False], ids=["noted", "of an earlier Podium"])
def test_a_moved_project_keeps_its_identity(desk: Desk, noted: bool) -> None:
    perform(desk, "a")
    desk.add_run(run_id=RUN)
    name = project_id_in(desk.project / ".podium")
    (location,) = (desk.home / "state" / "vaults").glob("*/location.json")
    if not noted:
        location.unlink()
    moved = desk.project.rename(desk.project.with_name("moved"))
    said = in_folder(desk, moved).run("receipts", "verify")
    assert (said.code, said.err) == (0, "")
    assert project_id_in(moved / ".podium") == name
    assert str(moved) in location.read_text()

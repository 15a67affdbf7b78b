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
from tests.integration.cli.command_runner import CommandRunner
from tests.integration.cli.conftest import cli as cli
from tests.integration.cli.test_receipts import RUN, perform
from tests.integration.workspaces.git_project import run_git


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
def test_every_folder_that_podium_makes_is_private(cli: CommandRunner) -> None:
    run_git("init", "--quiet", cwd=cli.project)
    who = ("-c", "user.name=Bo", "-c", "user.email=bo@example.org")
    run_git(*who, "commit", "--quiet", "--allow-empty", "--message=one", cwd=cli.project)
    perform(cli, "a")
    perform(cli, "a")  # overwritten: what it held is kept
    assert cli.run("workspaces", "create", "t1").code == 0
    assert wide(cli.home) == []
    assert wide(cli.project / ".podium") == []
    assert wide(cli.project.parent / ".worktrees") == []


@pytest.mark.usefixtures("umask")
def test_folders_above_are_private_too_and_what_is_there_stays(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    make_private_folder(tmp_path / "a" / "b")
    make_private_folder(tmp_path / "a" / "b")
    assert wide(tmp_path) == [str(tmp_path)]
    (tmp_path / "file").touch()
    with pytest.raises(FileExistsError):
        make_private_folder(tmp_path / "file")


def test_folders_open_to_others_are_reported_and_closed_to_them(cli: CommandRunner) -> None:
    perform(cli, "a")
    state = cli.project / ".podium"
    for folder in (state, cli.home / "state", cli.home / "state" / "vaults"):
        folder.chmod(0o755)
    (folder,) = [
        check for check in cli.run("doctor", "--json").json["checks"] if check["name"] == "folder"
    ]
    assert folder["state"] == "warn"
    assert f"chmod 700 {state}" in folder["mend"]
    assert cli.run("runs").code == 0
    assert wide(state) == []
    assert wide(cli.home / "state") == []


def in_folder(cli: CommandRunner, folder: Path) -> CommandRunner:
    cli.project = folder
    return cli


def test_a_copy_gets_its_own_identity_and_both_stay_sound(cli: CommandRunner) -> None:
    original, copy = cli.project, cli.project.with_name("copy")
    perform(cli, "a", "b")
    shutil.copytree(original, copy)
    perform(cli, "c")  # the original goes on with the same chain

    first = in_folder(cli, copy).run("receipts", "list")
    assert (first.code, "feedface" in first.out) == (0, True)
    assert first.err == (
        f"podium: {str(copy)!r} is a copy of {str(original)!r}: from now on it has its own identity, and the "
        "receipts of each are verified separately\n"
    )
    assert project_id_in(copy / ".podium") != project_id_in(original / ".podium")
    perform(cli, "d", "e")
    for folder, count in ((copy, 4), (original, 3)):
        result = in_folder(cli, folder).run("receipts", "verify")
        assert (result.code, result.out) == (0, f"{count} receipts of 1 run: sound\n"), folder
        assert result.err == ""


def test_a_copy_has_its_own_identity_before_it_has_tokens(cli: CommandRunner) -> None:
    original, copy = cli.project, cli.project.with_name("copy")
    perform(cli, "a")
    cli.new_token("ann")
    shutil.copytree(original, copy)
    in_folder(cli, copy).new_token("bo")
    assert project_id_in(copy / ".podium") != project_id_in(original / ".podium")
    tokens = in_folder(cli, original).run("serve", "tokens", "--json").json["tokens"]
    assert [token["name"] for token in tokens] == ["ann"]


def test_what_a_copy_loses_later_is_found_in_it_alone(cli: CommandRunner) -> None:
    original, copy = cli.project, cli.project.with_name("copy")
    perform(cli, "a")
    shutil.copytree(original, copy)
    in_folder(cli, copy).run("runs")
    (copy / ".podium" / "podium.db").unlink()
    assert cli.run("runs").code == 1
    assert in_folder(cli, original).run("receipts", "verify").code == 0


@pytest.mark.parametrize("noted", [True, False], ids=["noted", "of an earlier Podium"])
def test_a_moved_project_keeps_its_identity(cli: CommandRunner, noted: bool) -> None:
    perform(cli, "a")
    cli.add_run(run_id=RUN)
    name = project_id_in(cli.project / ".podium")
    (location,) = (cli.home / "state" / "vaults").glob("*/location.json")
    if not noted:
        location.unlink()
    moved = cli.project.rename(cli.project.with_name("moved"))
    result = in_folder(cli, moved).run("receipts", "verify")
    assert (result.code, result.err) == (0, "")
    assert project_id_in(moved / ".podium") == name
    assert str(moved) in location.read_text()

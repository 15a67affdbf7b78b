"""`podium uninstall`: what Podium keeps is listed and removed, and nothing of anybody else."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from podium.cli.commands.uninstall import remove_package_command
from podium.domain.work import RunStatus
from tests.integration.cli.desk import Desk
from tests.integration.cli.test_run_command import a_worker


def a_project_in_use(desk: Desk) -> None:
    desk.says("flows: {}\n")
    desk.add_run(status=RunStatus.SUCCEEDED)


def test_everything_of_podiums_goes_and_the_projects_files_stay(desk: Desk) -> None:
    a_project_in_use(desk)
    (desk.home / "config.yaml").write_text("{}\n")
    said = desk.run("uninstall", "--yes", "--json")
    assert said.code == 0, said.err
    [project] = said.json["projects"]
    assert project["folder"] == str(desk.project)
    assert project["blocked"] == ""
    assert project["bytes"] > 0
    assert str(desk.project / ".podium") in said.json["removed"]
    assert sorted(path.name for path in desk.project.iterdir()) == ["podium.yaml"]
    assert not desk.home.exists()
    assert said.json["package"].endswith("uninstall podium")


def test_a_dry_run_lists_and_removes_nothing(desk: Desk) -> None:
    a_project_in_use(desk)
    said = desk.run("uninstall", "--dry-run")
    assert said.code == 0
    assert str(desk.project) in said.out
    assert ".podium, vaults" in said.out
    assert (desk.project / ".podium").is_dir()


def test_nothing_is_removed_without_a_yes(desk: Desk) -> None:
    a_project_in_use(desk)
    said = desk.run("uninstall", stdin=b"y\ny\n")
    assert said.code == 2
    assert "--dry-run" in said.err
    assert (desk.project / ".podium").is_dir()


def test_another_project_of_the_same_user_is_listed_and_stays_with_here(
    desk: Desk, tmp_path: Path
) -> None:
    a_project_in_use(desk)
    (tmp_path / "other").mkdir()
    other = Desk(tmp_path / "other")
    other.home = desk.home
    a_project_in_use(other)
    listed = desk.run("uninstall", "--dry-run", "--json").json["projects"]
    assert [each["folder"] for each in listed] == sorted([str(desk.project), str(other.project)])
    assert desk.run("uninstall", "--here", "--yes").code == 0
    assert not (desk.project / ".podium").exists()
    assert (other.project / ".podium").is_dir()
    assert desk.home.is_dir()


def test_a_project_whose_folder_is_gone_leaves_only_what_is_beside_it(desk: Desk) -> None:
    a_project_in_use(desk)
    moved = desk.project.with_name("moved")
    desk.project.rename(moved)
    desk.project.mkdir()
    (desk.project / ".podium").mkdir()
    (desk.project / ".podium" / "project-id").write_text("somebodyelse\n")
    listed = desk.run("uninstall", "--dry-run", "--json").json["projects"]
    gone = next(each for each in listed if each["id"] != "somebodyelse")
    assert [Path(path).parent.name for path in gone["paths"]] == ["vaults"]


def test_a_project_in_which_somebody_is_at_work_stays(desk: Desk) -> None:
    a_project_in_use(desk)
    with a_worker(desk):
        said = desk.run("uninstall", "--yes", "--json")
    assert said.code == 4
    assert "is at work in it" in said.json["left"][str(desk.project)]
    assert said.json["removed"] == []
    assert (desk.project / ".podium").is_dir()


def test_work_that_is_nowhere_else_stays(desk: Desk) -> None:
    for words in (("init", "-q"), ("commit", "-q", "--allow-empty", "-m", "begin")):
        who = ("-c", "user.name=Ann", "-c", "user.email=ann@example.org")
        subprocess.run(["git", *who, *words], cwd=desk.project, check=True)
    a_project_in_use(desk)
    assert desk.run("workspaces", "create", "fix").code == 0
    [made] = desk.run("workspaces", "list", "--json").json["workspaces"]
    (Path(made["record"]["path"]) / "new.txt").write_text("work\n")
    said = desk.run("uninstall", "--yes")
    assert said.code == 4
    assert "workspace fix" in said.out
    assert (Path(made["record"]["path"]) / "new.txt").exists()
    assert (desk.project / ".podium").is_dir()


def test_files_of_somebody_else_beside_the_settings_stay(desk: Desk) -> None:
    a_project_in_use(desk)
    (desk.home / "letters").mkdir()
    said = desk.run("uninstall", "--yes")
    assert said.code == 4
    assert "letters' is not Podium's" in said.out
    assert (desk.home / "letters").is_dir()
    assert not (desk.project / ".podium").exists()


@pytest.mark.parametrize(
    ("prefix", "command"),
    [
        ("/home/ann/.local/pipx/venvs/podium", "pipx uninstall podium"),
        ("/home/ann/.local/share/uv/tools/podium", "uv tool uninstall podium"),
    ],
)
def test_the_command_that_removes_the_package_fits_how_it_was_installed(
    monkeypatch: pytest.MonkeyPatch, prefix: str, command: str
) -> None:
    monkeypatch.setattr("sys.prefix", prefix)
    assert remove_package_command() == command

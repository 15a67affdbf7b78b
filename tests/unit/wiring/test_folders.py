"""Locations of the project's and the user's folders."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from podium.app.project_setup import init_project
from podium.config.folders import Folders, find_folders, project_root
from podium.core.errors import BadInput, NotPossibleNow


@pytest.mark.parametrize("marker", ["podium.yaml", ".podium", ".git"])
def test_the_nearest_marked_folder_upward_is_the_project(tmp_path: Path, marker: str) -> None:
    deep = tmp_path / "shop" / "src" / "deep"
    deep.mkdir(parents=True)
    (tmp_path / "shop" / marker).touch()
    assert project_root(deep) == (tmp_path / "shop").resolve()


def test_podium_home_moves_settings_and_state_of_the_user(tmp_path: Path) -> None:
    folders = find_folders({"PODIUM_HOME": str(tmp_path / "p")}, start=tmp_path)
    assert folders.user_file == tmp_path / "p" / "config.yaml"
    assert folders.user_state == tmp_path / "p" / "state"


def test_xdg_folders_are_followed_and_relative_ones_ignored(tmp_path: Path) -> None:
    environ = {"HOME": "/home/ann", "XDG_CONFIG_HOME": "/conf", "XDG_STATE_HOME": "relative"}
    folders = find_folders(environ, start=tmp_path)
    assert folders.user_file == Path("/conf/podium/config.yaml")
    assert folders.user_state == Path("/home/ann/.local/state/podium")


def test_user_without_a_home_is_asked_to_set_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # As it is for a user whom the system does not know, in a container for example.
    monkeypatch.setattr("os.path.expanduser", lambda path: path)
    with pytest.raises(BadInput, match=r"the home folder is unknown \('~'\); set HOME"):
        find_folders({}, start=tmp_path)
    assert find_folders({"PODIUM_HOME": "/own"}, start=tmp_path).user_state == Path("/own/state")


def test_a_project_that_is_no_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="does not exist"):
        find_folders({}, project=tmp_path / "nowhere")


def test_state_is_private_and_unseen_by_git(tmp_path: Path) -> None:
    state = find_folders({}, project=tmp_path).make_state()
    assert stat.S_IMODE(state.stat().st_mode) == 0o700
    assert (state / ".gitignore").read_text() == "*\n"


def planted(folder: Path, how: str) -> Path:
    """A state folder that Podium did not make, and the folder where it would lead."""
    victim = folder / "victim"
    victim.mkdir()
    project = folder / "project"
    project.mkdir()
    state = project / ".podium"
    if how == "link":
        state.symlink_to(victim)
    elif how == "broken link":
        state.symlink_to(victim / "new")
    elif how == "file":
        state.write_text("")
    else:
        state.mkdir()
        (state / how).symlink_to(victim)
    return project


@pytest.mark.parametrize(
    "how", ["link", "broken link", "file", "runs", "workers", "podium.db", ".gitignore"]
)
def test_a_planted_state_folder_is_refused_before_anything_is_written(
    tmp_path: Path, how: str
) -> None:
    project = planted(tmp_path, how)
    victim = tmp_path / "victim"
    mode = victim.stat().st_mode
    folders = Folders(project=project, user_config=tmp_path / "c", user_state=tmp_path / "s")
    for act in (
        folders.make_state,
        lambda: find_folders({}, start=project),
        lambda: find_folders({}, project=project),
        lambda: init_project(project),
    ):
        with pytest.raises(NotPossibleNow, match="only a folder that it created itself"):
            act()
    assert list(victim.iterdir()) == []
    assert victim.stat().st_mode == mode
    assert [path.name for path in project.iterdir()] == [".podium"]


def test_a_state_folder_of_another_user_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    find_folders({}, project=tmp_path).make_state()
    # Another user cannot be made here.
    monkeypatch.setattr("os.geteuid", lambda: tmp_path.stat().st_uid + 1)
    with pytest.raises(NotPossibleNow, match="belongs to another user"):
        find_folders({}, project=tmp_path)

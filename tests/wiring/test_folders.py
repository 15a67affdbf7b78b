"""Where things are."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from podium.domain.errors import BadInput
from podium.wiring.folders import find_folders, project_root


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


def test_a_project_that_is_no_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="no folder"):
        find_folders({}, project=tmp_path / "nowhere")


def test_state_is_private_and_unseen_by_git(tmp_path: Path) -> None:
    state = find_folders({}, project=tmp_path).make_state()
    assert stat.S_IMODE(state.stat().st_mode) == 0o700
    assert (state / ".gitignore").read_text() == "*\n"

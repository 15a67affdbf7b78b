"""`init_project`: everything at once, or nothing."""

from __future__ import annotations

import os
import re
import stat
from pathlib import Path

import pytest

from podium.app.agent_builder import KINDS
from podium.app.project_setup import Proposal, init_project
from podium.config.configuration import load_configuration
from podium.config.located_yaml import read_located
from podium.core.errors import BadInput, NotPossibleNow
from podium.jobs.rehearsal.flow import rehearsal_plan


def files_in(folder: Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in folder.iterdir() if path.is_file()}


def test_a_new_project_has_valid_settings_and_private_state_that_git_ignores(
    tmp_path: Path,
) -> None:
    (tmp_path / ".gitignore").write_text("*.pyc")
    assert init_project(tmp_path) == ["podium.yaml", ".podium/"]
    assert stat.S_IMODE((tmp_path / ".podium").stat().st_mode) == 0o700
    assert (tmp_path / ".podium/.gitignore").read_text() == "*\n"
    # A change of a tracked file would keep `podium run` from starting.
    assert (tmp_path / ".gitignore").read_text() == "*.pyc"
    home = {"PODIUM_HOME": str(tmp_path / "home")}
    assert load_configuration(home, project=tmp_path).settings.mode == "supervised"


def test_the_commented_examples_in_the_new_file_are_valid_too(tmp_path: Path) -> None:
    init_project(tmp_path)
    file = tmp_path / "podium.yaml"
    lines = [line for line in file.read_text().splitlines() if not re.match(r"# \S", line)]
    file.write_text("\n".join(line.removeprefix("#") for line in lines))
    assert set(read_located(file).data) >= {
        "agents", "roles", "checks", "approvers", "budgets", "redact",
    }  # fmt: skip
    settings = load_configuration({"PODIUM_HOME": "/nowhere"}, project=tmp_path).settings
    assert settings.roles["default"].agent == "claude"
    assert {agent.kind for agent in settings.agents.values()} <= set(KINDS)


def test_an_example_can_be_rehearsed_at_once_and_undone_when_it_cannot_be_made(
    tmp_path: Path,
) -> None:
    made = init_project(tmp_path, example=True)
    assert made == ["podium.yaml", "script.yaml", ".podium/"]
    configuration = load_configuration({"PODIUM_HOME": "/nowhere"}, project=tmp_path)
    plan = rehearsal_plan(configuration)
    assert {scene.role for scene in plan.scenes} <= set(configuration.settings.roles)
    other = tmp_path / "other"
    other.mkdir()
    (other / "script.yaml").write_text("mine\n")
    with pytest.raises(NotPossibleNow, match=r"script\.yaml"):
        init_project(other, example=True)
    assert files_in(other) == {"script.yaml": "mine\n"}


def test_an_existing_project_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "podium.yaml").write_text("mode: sensing\n")
    with pytest.raises(NotPossibleNow, match="already exists"):
        init_project(tmp_path)
    assert files_in(tmp_path) == {"podium.yaml": "mode: sensing\n"}
    assert not (tmp_path / ".podium").exists()


def test_nothing_is_left_half_written_when_a_part_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(proposal: Proposal) -> str:
        raise BadInput("the disk is full")

    monkeypatch.setattr("podium.app.project_setup.project_text", fail)
    with pytest.raises(BadInput):
        init_project(tmp_path, example=True)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_written_to_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        os, "access", lambda path, mode: False
    )  # whoever runs the tests may be root
    with pytest.raises(BadInput, match="is not writable; nothing was changed"):
        init_project(tmp_path)


def test_a_state_file_in_the_way_is_named(tmp_path: Path) -> None:
    (tmp_path / ".podium").write_text("")
    with pytest.raises(NotPossibleNow, match="not a folder"):
        init_project(tmp_path)
    assert not (tmp_path / "podium.yaml").exists()

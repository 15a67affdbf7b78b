"""`init_project`: everything at once, or nothing."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from podium.domain.errors import BadInput, NotPossibleNow
from podium.wiring.agents import KINDS
from podium.wiring.configuration import load_configuration
from podium.wiring.initialising import init_project
from podium.wiring.parsing import read_located
from podium.wiring.rehearsing import rehearsal_plan


def files_in(folder: Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in folder.iterdir() if path.is_file()}


def test_a_new_project_has_valid_settings_private_state_and_an_ignore_line(tmp_path: Path) -> None:
    assert init_project(tmp_path) == ["podium.yaml", ".podium/", ".gitignore"]
    assert stat.S_IMODE((tmp_path / ".podium").stat().st_mode) == 0o700
    assert (tmp_path / ".gitignore").read_text() == ".podium/\n"
    home = {"PODIUM_HOME": str(tmp_path / "home")}
    assert load_configuration(home, project=tmp_path).settings.mode == "supervised"


def test_the_commented_examples_in_the_new_file_are_valid_too(tmp_path: Path) -> None:
    init_project(tmp_path)
    file = tmp_path / "podium.yaml"
    prose = (
        "# Settings",
        "# says",
        "# here",
        "# How",
        "# Brains",
        "# in (",
        "# Which",
        "# of agents",
        "# Who",
        "# Limits",
    )
    lines = [line for line in file.read_text().splitlines() if not line.startswith(prose)]
    file.write_text("\n".join(line.removeprefix("# ") for line in lines if "What is" not in line))
    assert set(read_located(file).data) >= {"agents", "roles", "approvers", "budgets", "redact"}
    settings = load_configuration({"PODIUM_HOME": "/nowhere"}, project=tmp_path).settings
    assert settings.roles["default"].agent == "claude"
    assert {agent.kind for agent in settings.agents.values()} <= set(KINDS)


def test_agents_that_are_named_stand_in_the_settings_and_the_first_plays_every_role(
    tmp_path: Path,
) -> None:
    init_project(tmp_path, agents=["codex", "claude"])
    settings = load_configuration({"PODIUM_HOME": "/nowhere"}, project=tmp_path).settings
    assert {name: agent.kind for name, agent in settings.agents.items()} == {
        "codex": "codex",
        "claude": "claude",
    }
    assert settings.roles["default"].agent == "codex"
    assert "# agents:" not in (tmp_path / "podium.yaml").read_text()


def test_an_example_can_be_rehearsed_at_once_and_undone_when_it_cannot_be_made(
    tmp_path: Path,
) -> None:
    made = init_project(tmp_path, example=True)
    assert made == ["podium.yaml", "script.yaml", ".podium/", ".gitignore"]
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
    with pytest.raises(NotPossibleNow, match="there already"):
        init_project(tmp_path)
    assert files_in(tmp_path) == {"podium.yaml": "mode: sensing\n"}
    assert not (tmp_path / ".podium").exists()


def test_an_ignore_file_is_added_to_once(tmp_path: Path) -> None:
    (tmp_path / ".gitignore").write_text("*.pyc")
    init_project(tmp_path)
    assert (tmp_path / ".gitignore").read_text() == "*.pyc\n.podium/\n"
    (tmp_path / "podium.yaml").unlink()
    assert init_project(tmp_path) == ["podium.yaml"]
    assert (tmp_path / ".gitignore").read_text() == "*.pyc\n.podium/\n"


def test_nothing_is_left_half_written_when_a_part_fails(tmp_path: Path) -> None:
    (tmp_path / ".gitignore").mkdir()
    with pytest.raises(BadInput):
        init_project(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == [".gitignore"]


def test_a_state_file_in_the_way_is_named(tmp_path: Path) -> None:
    (tmp_path / ".podium").write_text("")
    with pytest.raises(NotPossibleNow, match="not a folder"):
        init_project(tmp_path)
    assert not (tmp_path / "podium.yaml").exists()

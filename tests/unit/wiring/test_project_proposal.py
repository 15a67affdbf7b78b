"""Proposals for podium.yaml, and the text they become."""

from __future__ import annotations

from pathlib import Path

import pytest

from podium.app.checks import Check
from podium.app.project_setup import (
    Proposal,
    additions_text,
    cast_roles,
    init_project,
    project_text,
)
from podium.config.configuration import load_configuration
from podium.config.settings import Settings

PYTEST = Check(name="t", command="python3 -m pytest -q", source="pyproject.toml")
NPM = Check(name="n", command="npm test --silent", source="package.json")


def written(proposal: Proposal, folder: Path) -> Settings:
    init_project(folder, proposal)
    return load_configuration({"PODIUM_HOME": "/nowhere"}, project=folder).settings


def test_agents_roles_and_checks_are_in_the_file_with_their_reasons(tmp_path: Path) -> None:
    role_agents = ("codex", "claude")
    proposal = Proposal(
        agents=role_agents,
        candidates=role_agents,
        roles=cast_roles(role_agents),
        checks=(PYTEST,),
        other_checks=(NPM,),
    ).written_by("claude")
    settings = written(proposal, tmp_path)
    assert {name: agent.kind for name, agent in settings.agents.items()} == {
        "codex": "codex",
        "claude": "claude",
    }
    assert settings.roles["default"].agents == ("claude", "codex")
    assert settings.roles["auditor"].agents == ("codex", "claude")
    assert settings.checks == ("python3 -m pytest -q",)
    lines = (tmp_path / "podium.yaml").read_text().splitlines()
    assert "  - python3 -m pytest -q  # found in pyproject.toml" in lines
    assert "#  - npm test --silent  # found in package.json" in lines
    assert all(line.startswith("# ") for line in _lines_above_keys(lines))


def _lines_above_keys(lines: list[str]) -> list[str]:
    """The line above every top-level key, also of examples."""
    keys = [n for n, line in enumerate(lines) if line.lstrip("#")[:1].isalpha()]
    return [lines[number - 1] for number in keys]


def test_one_agent_plays_every_role_and_nobody_else_reviews() -> None:
    assert cast_roles(("claude",)) == {"default": ("claude",)}


@pytest.mark.parametrize(
    "odd", ["t\nsandbox: {kind: none}", "a: b # c", "x\u2028y", "- '\"", "*a", "true", "é" * 300]
)
def test_no_name_in_a_repository_can_write_a_setting(odd: str, tmp_path: Path) -> None:
    check = Check(name="t", command=odd, source=odd)
    settings = written(Proposal(checks=(check,), other_checks=(check,)), tmp_path)
    (tmp_path / "podium.yaml").unlink()
    assert settings == written(Proposal(), tmp_path).model_copy(update={"checks": (odd,)})


def test_an_existing_file_is_offered_only_what_it_lacks() -> None:
    text = additions_text(Proposal(checks=(PYTEST,)))
    assert "checks:\n  - python3 -m pytest -q" in text
    assert "agents:" not in text
    assert additions_text(Proposal()) == ""


def test_no_check_at_all_is_a_setting_of_its_own() -> None:
    text = project_text(Proposal(checks=(PYTEST,)).checked_by(""))
    assert "\nchecks: []\n" in text

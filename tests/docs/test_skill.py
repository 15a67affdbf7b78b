"""The skill for coding agents: its front matter, its inline commands and the codes and states it names."""

from __future__ import annotations

import re
from pathlib import Path

import yaml

from podium.domain import errors
from podium.domain.work import RunStatus
from tests.docs.command_line import commands, usage_problem

SKILL = Path(__file__).parents[2] / ".agents" / "skills" / "using-podium" / "SKILL.md"
TEXT = SKILL.read_text()


def first_column(heading: str) -> list[str]:
    table = re.search(rf"^\| {heading} \|.*\n\|[-|]+\n((?:\|.*\n)+)", TEXT, re.MULTILINE)
    assert table
    return [row.split("|")[1].strip() for row in table[1].splitlines()]


def test_front_matter_follows_the_convention_of_skills() -> None:
    front = yaml.safe_load(TEXT.split("---")[1])
    assert set(front) == {"name", "description"}
    assert front["name"] == SKILL.parent.name
    assert re.fullmatch(r"[a-z0-9-]{1,64}", front["name"])
    assert 1 <= len(front["description"]) <= 1024


def test_every_command_in_the_text_is_read_by_the_command_line() -> None:
    """Those in blocks are tried by test_examples.py, as those of every page."""
    inline = re.findall(r"`(podium [^`]+)`", TEXT)
    assert len(inline) >= 8
    problems = {code: usage_problem(argv[1:]) for code in inline for argv in commands(code)}
    assert {code: problem for code, problem in problems.items() if problem} == {}


def test_every_state_of_a_run_is_explained() -> None:
    named = {name for cell in first_column("status") for name in re.findall(r"`(\w+)`", cell)}
    assert named == {status.value for status in RunStatus} | {"interrupted"}


def test_every_exit_code_is_explained() -> None:
    classes = [cls for cls in vars(errors).values() if isinstance(cls, type)]
    codes = {cls.exit_code for cls in classes if issubclass(cls, errors.PodiumError)}
    assert codes | {0} == {int(cell) for cell in first_column("code")}

"""What `pip install podium` brings, as pyproject.toml says it."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[3]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
EXTRAS = PROJECT["optional-dependencies"]
IN_THE_BASE = ("api", "mcp", "notices", "web")
NOTE = (ROOT / "docs" / "decisions" / "060-dependencies.md").read_text()


def name_of(requirement: str) -> str:
    return re.split(r"[\[<>=~! ]", requirement)[0]


def test_former_extras_are_still_accepted_and_bring_nothing_more() -> None:
    assert {name: EXTRAS[name] for name in IN_THE_BASE} == {name: [] for name in IN_THE_BASE}


def test_all_names_every_extra_that_brings_something() -> None:
    (all_of_them,) = EXTRAS["all"]
    named = re.fullmatch(r"podium\[(.*)\]", all_of_them)
    assert named
    assert set(named[1].split(",")) == set(EXTRAS) - {"all", *IN_THE_BASE}


def test_every_direct_dependency_has_an_upper_bound() -> None:
    asked = [*PROJECT["dependencies"], *(each for name in EXTRAS if name != "all" for each in EXTRAS[name])]  # fmt: skip
    assert [each for each in asked if not re.search(r"<\d|==\d", each)] == []


def test_every_dependency_of_the_base_has_its_reason_and_the_reason_of_its_bound() -> None:
    reasons, bounds = NOTE.split("## Upper bounds")
    names = [name_of(each) for each in PROJECT["dependencies"]]
    assert [name for name in names if name not in reasons or name not in bounds] == []

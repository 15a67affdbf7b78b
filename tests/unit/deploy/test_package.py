"""Dependencies and extras that `pip install podium` installs, as declared in pyproject.toml."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

from podium import __version__

ROOT = Path(__file__).parents[3]
TEXT = (ROOT / "pyproject.toml").read_text()
DOCUMENT = tomllib.loads(TEXT)
PROJECT = DOCUMENT["project"]
EXTRAS = PROJECT["optional-dependencies"]
DIRECT = [
    *PROJECT["dependencies"],
    *(requirement for name in EXTRAS if name != "all" for requirement in EXTRAS[name]),
]
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


def test_every_direct_dependency_has_an_upper_bound_by_the_rule_or_with_a_reason() -> None:
    for requirement in DIRECT:
        match = re.search(r">=(\d+)[\d.]*,<(\d+)$", requirement)
        if match is None or int(match[2]) != int(match[1]) + 1:
            assert re.search(rf'"{re.escape(requirement)}", # \w', TEXT), requirement


def test_every_dependency_of_the_base_has_its_reason() -> None:
    names = [name_of(requirement) for requirement in PROJECT["dependencies"]]
    assert [name for name in names if name not in NOTE] == []


def test_every_dependency_is_pinned_for_development() -> None:
    pins = re.findall(r"^([a-z0-9-]+)==", (ROOT / "constraints.txt").read_text(), re.MULTILINE)
    groups = [name for group in DOCUMENT["dependency-groups"].values() for name in group]
    assert {name_of(requirement).lower() for requirement in (*DIRECT, *groups)} <= set(pins)


def test_files_that_name_the_version_follow_the_package() -> None:
    images = re.findall(r"/podium:(\S+)", (ROOT / "deploy" / "kubernetes.yaml").read_text())
    assert set(images) == {__version__}
    assert f"| **Podium** {__version__.rpartition('.')[0]} |" in (ROOT / "README.md").read_text()
    sections = re.findall(r"^## \[(.+?)\]", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert sections[:2] == ["Unreleased", __version__]

"""The pages name what is there: every command, every port, every contract suite, every benchmark."""

from __future__ import annotations

import re
from pathlib import Path

import podium.ports
import podium.testing
from benchmarks.__main__ import NAMES
from podium.cli.app import all_commands
from podium.tools import builtin_tools

ROOT = Path(__file__).parents[3]
DOCS = ROOT / "docs"


def page(name: str) -> str:
    return (DOCS / name).read_text()


def table(name: str, heading: str) -> list[list[str]]:
    """Rows of the table whose head begins with this word."""
    found = re.search(rf"^\| {heading} \|.*\n\|[-|]+\n((?:\|.*\n)+)", page(name), re.MULTILINE)
    assert found
    return [[cell.strip() for cell in row.strip("|").split("|")] for row in found[1].splitlines()]


def test_the_page_of_the_command_line_shows_every_command() -> None:
    shown = set(re.findall(r"^\$ podium (\w+)", page("cli.md"), re.MULTILINE))
    assert shown == set(all_commands())


def test_every_protocol_has_a_row_that_names_its_fake_and_its_suite() -> None:
    rows = table("ports.md", "port")
    named = {name for row in rows for name in re.findall(r"`(\w+)`", row[0])}
    protocols = {name for name in podium.ports.__all__ if _is_protocol(name)}
    assert named == protocols
    fakes = {name for row in rows for name in re.findall(r"`(\w+)`", row[2])}
    assert {name for name in fakes if not hasattr(podium.testing, name)} == set()
    rows += table("ports.md", "port of a job")
    suites = {name for row in rows for name in re.findall(r"`(\w+_contract)`", row[3])}
    assert suites == set(_suites())


def test_the_page_of_testing_lists_every_contract_suite() -> None:
    listed = re.findall(r"`(test_\w+_contract)\.py`", page("testing.md"))
    assert sorted(listed) == _suites()


def test_page_of_benchmarks_names_them_all() -> None:
    named = [row[0].strip("`") for row in table("benchmarks.md", "name")]
    assert [name for name in named if name] == list(NAMES)


def test_the_changelog_counts_the_built_in_tools_right() -> None:
    words = {15: "fifteen", 16: "sixteen", 17: "seventeen", 18: "eighteen"}
    assert f"{words[len(builtin_tools())]} built-ins" in (ROOT / "CHANGELOG.md").read_text()


def _is_protocol(name: str) -> bool:
    return bool(getattr(getattr(podium.ports, name), "_is_protocol", False))


def _suites() -> list[str]:
    return sorted(
        path.stem for path in (ROOT / "tests/integration/contract").glob("test_*_contract.py")
    )

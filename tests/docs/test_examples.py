"""Every example in the docs runs, and every command they name exists."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from podium.agents import AgentScript
from podium.wiring.parsing import parse_located
from podium.wiring.settings import SettingsFile
from tests.docs.command_line import commands, usage_problem
from tests.docs.warm_interpreter import run_file, run_text

ROOT = Path(__file__).parents[2]
PAGES = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "AGENTS.md")),
    *sorted((ROOT / ".agents").rglob("SKILL.md")),
    *sorted((ROOT / "docs").rglob("*.md")),
]
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))


class Block(NamedTuple):
    """A fenced piece of a page."""

    page: Path
    line: int
    language: str
    text: str

    def __str__(self) -> str:
        return f"{self.page.relative_to(ROOT)}:{self.line}"


def blocks(language: str) -> list[Block]:
    return [block for block in _all_blocks() if block.language == language]


def _all_blocks() -> Iterator[Block]:
    for page in PAGES:
        text = page.read_text()
        for found in re.finditer(r"^```(\w+)\n(.*?)^```$", text, re.DOTALL | re.MULTILINE):
            yield Block(page, text.count("\n", 0, found.start()) + 1, found[1], found[2])


@pytest.mark.parametrize("block", blocks("python"), ids=str)
def test_python_in_the_docs_runs(block: Block, tmp_path: Path) -> None:
    run_text(block.text, tmp_path)


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.name)
def test_the_example_files_run(example: Path, tmp_path: Path) -> None:
    assert run_file(example, tmp_path).strip()


@pytest.mark.parametrize("block", blocks("yaml"), ids=str)
def test_yaml_in_the_docs_is_valid(block: Block) -> None:
    located = parse_located(block.text.encode(), str(block))
    model = AgentScript if "turns" in located.data else SettingsFile
    assert isinstance(located.validated(model), model)


@pytest.mark.parametrize("block", [*blocks("sh"), *blocks("console")], ids=str)
def test_commands_in_the_docs_exist(block: Block) -> None:
    targets = re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
    typed = block.text if block.language == "sh" else _typed_lines(block.text)
    for argv in commands(typed):
        if argv[0] == "podium":
            assert usage_problem(argv[1:]) == "", argv
        if argv[0] == "make":
            assert argv[1] in targets, argv


def _typed_lines(text: str) -> str:
    return "\n".join(line for line in text.splitlines() if line.startswith("$ "))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", page.read_text()):
        if "://" not in target:
            assert (page.parent / target).exists(), target

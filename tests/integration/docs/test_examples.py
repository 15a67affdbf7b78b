"""Every example in the docs runs, and every command they name exists."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from podium.agents import AgentScript
from podium.config.located_yaml import parse_located
from podium.config.settings import SettingsFile
from tests.integration.docs.command_line import commands, usage_problem
from tests.integration.docs.warm_interpreter import run_file, run_text

ROOT = Path(__file__).parents[3]
PAGES = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "AGENTS.md", "SECURITY.md")),
    *sorted((ROOT / ".agents").rglob("SKILL.md")),
    *sorted((ROOT / "docs").rglob("*.md")),
]
GENERATED = {
    *(ROOT / f"docs/reference/{name}.md" for name in ("settings", "commands", "events")),
    ROOT / "docs/podium.schema.json",
}
"""Files that exist in the built site only."""
_FENCED = re.compile(
    r'^```(?P<language>\w+)(?: title="(?P<title>[^"]+)")?\n(?P<text>.*?)^```$',
    re.DOTALL | re.MULTILINE,
)
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))


class Block(NamedTuple):
    """A fenced piece of a page."""

    page: Path
    line: int
    language: str
    title: str
    """The file that the block shows, if the page names one."""
    text: str

    def __str__(self) -> str:
        return f"{self.page.relative_to(ROOT)}:{self.line}"


def blocks(language: str) -> list[Block]:
    return [block for block in all_blocks(PAGES) if block.language == language]


def all_blocks(pages: Iterable[Path]) -> Iterator[Block]:
    for page in pages:
        text = page.read_text()
        for match in _FENCED.finditer(text):
            line = text.count("\n", 0, match.start()) + 1
            yield Block(page, line, match["language"], match["title"] or "", match["text"])


def is_settings(block: Block) -> bool:
    """Return whether the block is YAML of Podium's own: settings, or a script of an agent."""
    return not block.title or Path(block.title).name in (
        "podium.yaml",
        "config.yaml",
        "script.yaml",
    )


def typed_commands(block: Block) -> Iterator[list[str]]:
    """The commands of a shell block, without the output that `console` shows."""
    lines = block.text.splitlines()
    if block.language == "console":
        lines = [line for line in lines if line.startswith("$ ")]
    return commands("\n".join(lines))


@pytest.mark.parametrize("block", [b for b in blocks("python") if not b.title], ids=str)
def test_python_in_the_docs_runs(block: Block, tmp_path: Path) -> None:
    run_text(block.text, tmp_path)


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.name)
def test_the_example_files_run(example: Path, tmp_path: Path) -> None:
    assert run_file(example, tmp_path).strip()


@pytest.mark.parametrize("block", [b for b in blocks("yaml") if is_settings(b)], ids=str)
def test_yaml_in_the_docs_is_valid(block: Block) -> None:
    located = parse_located(block.text.encode(), str(block))
    model = AgentScript if "turns" in located.data else SettingsFile
    assert isinstance(located.validated(model), model)


@pytest.mark.parametrize("block", [*blocks("sh"), *blocks("console")], ids=str)
def test_commands_in_the_docs_exist(block: Block) -> None:
    targets = re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
    for argv in typed_commands(block):
        if argv[0] == "podium":
            assert usage_problem(argv[1:]) == "", argv
        if argv[0] == "make":
            assert argv[1] in targets, argv


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", page.read_text()):
        if "://" not in target:
            file = (page.parent / target).resolve()
            assert file.exists() or file in GENERATED, target

"""Parts of the soak: which tests each one runs, and the page with the result of each part's last run.

`python -m tests.soak_parts` lists the parts; with names or numbers it runs these, and with `all` every part in order.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

import pytest

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "docs/soak.md"

Group = Literal["soak", "property", "live"]
"""Tests marked `soak`; properties, with examples never tried before; and what `REAL_CLIS` adds to `make test`."""


@dataclass(frozen=True)
class Part:
    name: str
    paths: tuple[str, ...]
    """Below `tests/unit` and `tests/integration`. A test belongs to the first part of its group that names its file or a folder around it."""
    group: Group = "soak"
    workers: int = 2


PARTS = (
    Part("kills", ("engine/test_kills.py", "workspaces", "pipeline/test_chaos.py", "pipeline/test_followed_kills.py")),
    Part("races", ("engine/test_races.py", "engine/distributed/test_races.py", "bridge", "journal", "gate", "operator", "sandbox")),
    # It holds Podium to seconds until a worker is replaced: nothing else may run beside it.
    Part("machines", ("engine",), workers=1),
    # Races of four processes each, which must be over in time.
    Part("sense", ("sense", "flows", "forge", "tools", "packs", "web"), workers=1),
    Part("playbook", ("playbook",)),
    Part("attacks", ("attacks",)),
    Part("terminals", ("agents/tui", "duet", "wiring")),
    Part("agents", ("agents",)),
    Part("contracts", ("contract", "cli", "docs", "pipeline", "mcp", "notices", "rpc", "testing", "usecases", "benchmarks", "deploy", "platform")),
    Part("properties", ("",), group="property"),
    Part("live", ("agents", "contract", "duet", "pipeline/test_real_clis.py", "sense/test_real_planner.py", "docs/test_modelserver_agents.py", "docs/test_readme.py", "docs/test_skill.py", "cli/test_agents_command.py", "playbook/killing"), group="live", workers=4),
)  # fmt: skip
"""In the order in which they run. None should take more than forty minutes on two idle cores."""


def part_of(path: str, group: Group) -> Part | None:
    """Part that runs the tests of this group in this file, whose path is relative to `tests`."""
    path = path.partition("/")[2]
    claims = (
        part
        for part in PARTS
        if part.group == group
        and any(not own or path == own or path.startswith(f"{own}/") for own in part.paths)
    )
    return next(claims, None)


def existing_paths(part: Part) -> list[str]:
    """Files and folders of this part, relative to `tests`."""
    both = (f"{half}/{path}" for path in part.paths for half in ("unit", "integration"))
    return [path for path in both if (ROOT / "tests" / path).exists()]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--soak-part", choices=[part.name for part in PARTS])


def pytest_configure(config: pytest.Config) -> None:
    if name := config.getoption("--soak-part"):
        part = next(part for part in PARTS if part.name == name)
        config.pluginmanager.register(_Run(part, reports=not hasattr(config, "workerinput")))


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave to the soak what a test marked `sample(count)` has of cases beyond this count, which are spread evenly over all of them."""
    cases: dict[str, list[pytest.Item]] = {}
    for item in items:
        if item.get_closest_marker("sample"):
            cases.setdefault(item.nodeid.partition("[")[0], []).append(item)
    for own in cases.values():
        count = own[0].get_closest_marker("sample").args[0]  # type: ignore[union-attr]
        kept = {number * len(own) // count for number in range(count)}
        for number, item in enumerate(own):
            if number not in kept:
                item.add_marker(pytest.mark.soak)


class _Run:
    """Selects the tests of one part and writes its row into the page of results."""

    def __init__(self, part: Part, *, reports: bool) -> None:
        self._part = part
        self._reports = reports
        self._began = time.monotonic()

    def pytest_collection_modifyitems(
        self, config: pytest.Config, items: list[pytest.Item]
    ) -> None:
        others = {item for item in items if not self._holds(item)}
        config.hook.pytest_deselected(items=list(others))
        items[:] = [item for item in items if item not in others]

    def _holds(self, item: pytest.Item) -> bool:
        group: Group = "live"
        if item.get_closest_marker("soak"):
            group = "soak"
        elif getattr(getattr(item, "obj", None), "is_hypothesis_test", False):
            group = "property"
        return part_of(item.path.relative_to(ROOT / "tests").as_posix(), group) is self._part

    def pytest_terminal_summary(self, terminalreporter: Any, config: pytest.Config) -> None:
        if not self._reports or config.option.collectonly:
            return
        counts = {name: len(reports) for name, reports in terminalreporter.stats.items()}
        changed = _git("status", "--porcelain", "--", ":!docs/soak.md")
        row = [
            f"{datetime.now(UTC):%Y-%m-%d}",
            _git("rev-parse", "--short", "HEAD") + "+" * bool(changed),
            str(counts.get("passed", 0)),
            str(counts.get("failed", 0) + counts.get("error", 0)),
            str(counts.get("skipped", 0)),
            f"{(time.monotonic() - self._began) / 60:.0f}",
        ]
        RESULTS.write_text(with_result(RESULTS.read_text(), self._part.name, row))


def results(text: str) -> dict[str, list[str]]:
    """Cells of the last run of each part, by its name."""
    rows = re.findall(r"^\| (\w+) \|(.*)\|$", text, re.MULTILINE)
    return {name: [cell.strip() for cell in cells.split("|")] for name, cells in rows}


def with_result(text: str, name: str, cells: list[str]) -> str:
    """Page with this row in place of the part's last one."""
    row = f"| {name} | {' | '.join(cells)} |"
    return re.sub(rf"^\| {name} \|.*$", lambda _: row, text, flags=re.MULTILINE)


def _git(*arguments: str) -> str:
    command = ["git", *arguments]
    return subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, check=False
    ).stdout.strip()


def run(part: Part) -> int:
    """Run one part; returns the exit code of pytest."""
    command = [
        *(sys.executable, "-m", "pytest", "-q", "--timeout", "3600", "--soak-part", part.name),
        *(("-n", str(part.workers), "--dist", "worksteal") if part.workers > 1 else ()),
        *(f"tests/{path}" for path in existing_paths(part)),
    ]
    environment = {**os.environ, "REAL_CLIS": "all", "HYPOTHESIS_PROFILE": "searching"}
    return subprocess.run(command, cwd=ROOT, env=environment, check=False).returncode


def list_parts() -> None:
    last = results(RESULTS.read_text())
    for number, part in enumerate(PARTS, 1):
        date, commit, *_, minutes = last[part.name]
        ran = f"{minutes} min on {date}, {commit}" if date else "never run"
        print(f"{number:2} {part.name:11} {part.group:9} {ran:32} {' '.join(part.paths)}")


def main(names: list[str]) -> int:
    """Run the parts with these names or numbers, also after one has failed."""
    chosen = [
        part for number, part in enumerate(PARTS, 1) if {"all", part.name, str(number)} & set(names)
    ]
    if names and not chosen:
        print(f"no such part: {' '.join(names)}; `make soak-list` shows them", file=sys.stderr)
        return 2
    if not names:
        list_parts()
    return max([run(part) for part in chosen], default=0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""The tour leads to code that is there, and not to too much of it."""

from __future__ import annotations

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[3]
ROW = re.compile(r"^\| `([\w/]+\.py)` \| ([^|]+) \|", re.MULTILINE)
MAX_LINES = 1500
FLOW = "jobs/pipeline/flow.py"


def stops() -> list[tuple[str, str]]:
    """File and name of everything that the tour names."""
    rows = ROW.findall((ROOT / "docs/tour.md").read_text())
    return [(file, name) for file, names in rows for name in re.findall(r"`([\w.]+)`", names)]


def lines_of(file: str, name: str) -> int:
    """Length of a function, method or constant of a file."""
    body = ast.parse((ROOT / "src/podium" / file).read_text()).body
    found: ast.stmt | None = None
    for part in name.split("."):
        found = next((node for node in body if part in names_of(node)), None)
        assert found is not None, f"{file} has no {name}"
        body = getattr(found, "body", [])
    assert found is not None
    return (found.end_lineno or found.lineno) - found.lineno + 1


def names_of(node: ast.stmt) -> set[str]:
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return {node.name}
    targets = node.targets if isinstance(node, ast.Assign) else []
    return {target.id for target in targets if isinstance(target, ast.Name)}


def test_every_name_is_where_the_tour_says_and_they_are_read_in_one_sitting() -> None:
    named = stops()
    assert len(named) > 20
    lines = {stop: lines_of(*stop) for stop in named}
    assert sum(count for (file, _), count in lines.items() if file != FLOW) <= MAX_LINES, lines

"""Imports have no cycle, those that are made late or for types only included."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

SOURCE = Path(__file__).parents[3] / "src"


def _modules() -> dict[str, Path]:
    paths = (path for path in (SOURCE / "podium").rglob("*.py") if "generated" not in path.parts)
    names = {".".join(path.relative_to(SOURCE).with_suffix("").parts): path for path in paths}
    return {name.removesuffix(".__init__"): path for name, path in names.items()}


def _imports(path: Path, modules: dict[str, Path]) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            for name in node.names:
                module = f"{node.module}.{name.name}"
                yield module if module in modules else node.module


def test_imports_have_no_cycle() -> None:
    modules = _modules()
    graph = {
        name: {module for module in _imports(path, modules) if module in modules} - {name}
        for name, path in modules.items()
    }
    try:
        order = tuple(TopologicalSorter(graph).static_order())
    except CycleError as error:
        raise AssertionError(f"a cycle of imports: {' -> '.join(error.args[1])}") from None
    assert len(order) == len(modules)

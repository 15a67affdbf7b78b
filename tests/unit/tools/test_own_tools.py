"""Tools that agents have themselves: judged like any other, never performed here."""

from __future__ import annotations

import re
from pathlib import Path

from podium.tools import Registry, builtin_tools, own_tools

PAGE = Path(__file__).parents[3] / "docs/tools.md"


def test_they_load_beside_the_built_in_ones() -> None:
    registry = Registry([*builtin_tools(), *own_tools()])
    assert all(registry.tool(tool.spec.name).spec.observed_only for tool in own_tools())
    assert not any(tool.spec.observed_only for tool in builtin_tools())


def test_page_lists_all_own_tools() -> None:
    own = PAGE.read_text().partition("## What agents have themselves")[2]
    rows = re.findall(r"^\| `(\w+)` \| (T\d) \| (.*) \|$", own, re.MULTILINE)
    assert [row[:2] for row in rows] == [
        (tool.spec.name, str(tool.spec.tier)) for tool in own_tools()
    ]

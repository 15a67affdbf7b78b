"""Check the undo that a result names against the tool that would perform it."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator

from podium.tools.packs import PackScope


def with_usable_undo(result: dict[str, Any], scope: PackScope) -> dict[str, Any]:
    """The result; `undo` is None when the reversing tool would not take its arguments.

    Records that others wrote hold what no tool writes, such as a phone number with blanks. Such a
    value can be replaced, but it cannot be put back; to find that out after acting is too late.
    """
    judge = _judges(scope.folder).get(scope.tool)
    if judge is None or not result.get("undo") or judge.is_valid(result["undo"]):
        return result
    return {**result, "undo": None}


@cache
def _judges(folder: Path) -> dict[str, Draft202012Validator]:
    """Tool → the judge of its undo's arguments. A pack's files stand still while its code runs."""
    registry = json.loads((folder / "tools.registry.json").read_text(encoding="utf-8"))
    tools = {tool["name"]: tool for tool in registry["tools"]}
    return {
        name: Draft202012Validator(tools[tool["undo"]]["input_schema"])
        for name, tool in tools.items()
        if tool.get("undo")
    }

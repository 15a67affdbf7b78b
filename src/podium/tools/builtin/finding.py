"""`find_files`: where files with such names are."""

from __future__ import annotations

from collections.abc import Sequence

from podium.domain.gating import Access, PathArgument, Tier, ToolSpec
from podium.domain.model import Json
from podium.tools import walking
from podium.tools.builtin.reading import refuse_alternatives
from podium.tools.registry import Tool
from podium.tools.scope import ToolScope, in_thread

_SHOWN_BYTES = 24_000
"""Less than a result may hold, so that whole names are shown and nothing is cut behind them."""


async def _find_files(arguments: dict[str, Json], scope: ToolScope) -> dict[str, Json]:
    globs = [*arguments["patterns"]]
    for glob in globs:
        refuse_alternatives(glob)
    if not arguments["case_sensitive"]:
        globs = [glob.lower() for glob in globs]
    found, walked = await in_thread(
        _found, scope, globs, folds_case=not arguments["case_sensitive"]
    )
    shown = _that_fit(found[: arguments["limit"]])
    told: dict[str, Json] = {"files": shown, "total": len(found), "complete": True}
    if walked >= walking.MOST_FILES:
        told |= {"complete": False, "cut": f"only the first {walked} files were looked at"}
    elif len(shown) < len(found):
        told |= {"complete": False, "cut": f"{len(found) - len(shown)} more; use a closer pattern"}
    return told


def _found(scope: ToolScope, globs: Sequence[str], *, folds_case: bool) -> tuple[list[str], int]:
    """Sorted paths that fit one of the globs, and how many files were looked at."""
    found: list[str] = []
    walked = 0
    for _, _, path in walking.walk(str(scope.root), scope.relative("path")):
        walked += 1
        name = path.lower() if folds_case else path
        if any(walking.matches(name, glob) for glob in globs):
            found.append(path)
    shown = [path for path in found if not scope.passed_over(str(scope.root / path))]
    return sorted(shown), walked


def _that_fit(paths: Sequence[str]) -> list[str]:
    left, shown = _SHOWN_BYTES, []
    for path in paths:
        left -= len(path.encode(errors="replace")) + 4
        if left < 0:
            break
        shown.append(path)
    return shown


FIND_FILES = Tool(
    ToolSpec(
        name="find_files",
        description=(
            "Find files by name. `*.py` fits names anywhere, `src/**/test_*.py` whole paths; no `{a,b}`."
        ),
        tier=Tier.T0,
        idempotent=True,
        timeout_seconds=30,
        receipt_fields=("total", "complete"),
        paths=(PathArgument(name="path", access=Access.READ),),
        input_schema={
            "type": "object",
            "properties": {
                "patterns": {
                    "type": "array",
                    "minItems": 1,
                    "maxItems": 20,
                    "items": {"type": "string", "minLength": 1, "maxLength": 1_000},
                    "description": "Any of these.",
                },
                "path": {
                    "type": "string",
                    "default": ".",
                    "description": "Folder to look in.",
                },
                "case_sensitive": {"type": "boolean", "default": True},
                "limit": {"type": "integer", "minimum": 1, "maximum": 2_000, "default": 200},
            },
            "required": ["patterns"],
            "additionalProperties": False,
        },
    ),
    _find_files,
)

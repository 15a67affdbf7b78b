"""`read_file`, `list_files`, `search_text` and `find_files`."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Sequence
from itertools import accumulate

from podium.core.decisions import Access, PathArgument, Tier, ToolSpec
from podium.core.errors import ToolBroke
from podium.core.model import Json
from podium.core.processes import ProcessLimits, ProcessSpec
from podium.platform.completion import in_thread
from podium.platform.safe_files import read_below
from podium.tools import text_search
from podium.tools.file_changes import sha256_of
from podium.tools.registry import Tool
from podium.tools.scope import ToolScope

_MAX_FILE_BYTES = 20_000_000
_DEFAULT_LINES = 250
_DEFAULT_BYTES = 10_000
"""Default limit of a read: a model is sent the result again with every later request."""
_MAX_CONTENT_BYTES = 24_000
"""Less than a result may hold, so that whole lines are shown and nothing is cut behind them."""
_SEARCH_SECONDS = 20.0
_MAX_LOCATION_BYTES = 5_000
"""More than the path and the number of a line can take."""
_ESCAPED_BYTES = 6
"""Most bytes that one character takes in JSON."""
_ALTERNATIVES = re.compile(r"\{[^{}]*,[^{}]*\}")
_MAX_LIST_BYTES = 16_000_000
"""Limit on the names of all files of one search."""


async def _read_file(arguments: dict[str, Json], scope: ToolScope) -> dict[str, Json]:
    path = scope.relative("path")
    content = await in_thread(read_below, scope.root, path, _MAX_FILE_BYTES)
    if b"\0" in content[:8192]:
        raise ToolBroke(
            f"{path!r} is a binary file ({len(content)} bytes); read_file can only read text"
        )
    lines = content.decode(errors="replace").split("\n")
    if lines[-1] == "":
        lines.pop()
    first: int = arguments["offset"]
    if first > max(1, len(lines)):
        raise ToolBroke(
            f"offset {first} is past the end of {path!r}, whose last line is {len(lines)}"
        )
    limit: int = arguments["limit"]
    budget = _MAX_CONTENT_BYTES if limit > _DEFAULT_LINES else _DEFAULT_BYTES
    fitting = _lines_that_fit(lines[first - 1 : first - 1 + limit], scope, budget)
    last = first - 1 + len(fitting)
    return {
        "path": path,
        "content": "\n".join(fitting),
        "first_line": first,
        "last_line": last,
        "total_lines": len(lines),
        "next_offset": last + 1 if last < len(lines) else None,
        "sha256": sha256_of(content),
    }


def _lines_that_fit(lines: list[str], scope: ToolScope, budget: int) -> list[str]:
    fitting: list[str] = []
    left = budget
    for line in lines:
        # As JSON: a result that is longer would be cut in its middle.
        left -= len(json.dumps(line, ensure_ascii=False).encode())
        if left < 0:
            break
        fitting.append(line)
    if lines and not fitting:
        whole = len(lines[0])
        return [f"{scope.clean(lines[0])[: budget // 4]} [cut: this line has {whole} characters]"]
    return fitting


def refuse_alternatives(glob: str) -> None:
    """Raise `ToolBroke` for what other globs have: taken literally it would find nothing, and look like an answer."""
    if _ALTERNATIVES.search(glob):
        raise ToolBroke(f"{glob!r}: globs do not support {{a,b}}; search once for each alternative")


async def _list_files(arguments: dict[str, Json], scope: ToolScope) -> dict[str, Json]:
    refuse_alternatives(arguments["glob"])
    start = scope.relative("path")
    glob = arguments["glob"]
    paths = await in_thread(_listed, str(scope.root), start, glob)
    listed = [
        path
        for path in paths
        if not scope.passed_over(str(scope.root / path))
        and (glob.endswith(_COMPILED) or not path.endswith(_COMPILED))
    ]
    limit: int = arguments["limit"]
    return {"files": listed[:limit], "total": len(listed), "complete": len(listed) <= limit}


def _listed(root: str, start: str, glob: str) -> list[str]:
    return [path for _, _, path in text_search.walk(root, start) if text_search.matches(path, glob)]


def _that_fit(paths: list[str]) -> list[str]:
    """As many of them as one search is handed."""
    total_bytes = accumulate(len(os.fsencode(path)) for path in paths)
    return [path for path, size in zip(paths, total_bytes, strict=True) if size <= _MAX_LIST_BYTES]


async def _search_text(arguments: dict[str, Json], scope: ToolScope) -> dict[str, Json]:
    try:
        re.compile(arguments["pattern"])
    except (re.error, RecursionError, OverflowError) as error:
        raise ToolBroke(f"the pattern is not a valid regular expression: {error}") from error
    refuse_alternatives(arguments["glob"])
    present = await in_thread(_listed, str(scope.root), scope.relative("path"), arguments["glob"])
    searchable = [path for path in present if not scope.passed_over(str(scope.root / path))]
    files = _that_fit(searchable)
    request = {
        "pattern": arguments["pattern"],
        "case_sensitive": arguments["case_sensitive"],
        "limit": arguments["limit"],
        "root": str(scope.root),
        # What appears from here on was not looked at by the gate, so it is not searched.
        "files": files,
        "whole": len(files) == len(searchable),
    }
    longest_line = text_search.MAX_LINE + 2 * scope.longest_secret
    request["longest_line"] = longest_line
    ended = await scope.launcher.run(
        ProcessSpec(
            argv=text_search.search_command(),
            cwd=str(scope.root),
            stdin=json.dumps(request).encode(),
            limits=ProcessLimits(
                seconds=_SEARCH_SECONDS,
                output_bytes=arguments["limit"]
                * (longest_line + _MAX_LOCATION_BYTES)
                * _ESCAPED_BYTES,
            ),
        )
    )
    if ended.timed_out:
        raise ToolBroke(
            f"the search timed out after {_SEARCH_SECONDS:g} seconds; use a simpler pattern or "
            "a smaller folder"
        )
    if ended.exit_code != 0:
        raise ToolBroke(f"the search failed: {scope.clean(_text(ended.stderr)).strip()[-500:]}")
    result: dict[str, Json] = json.loads(ended.stdout)
    for match in result["matches"]:
        match["text"] = _short_line(match["text"], match.pop("whole"), scope)
    return {**result, "count": len(result["matches"])}


def _short_line(text: str, whole: bool, scope: ToolScope) -> str:
    """The child cannot redact, so it gives more of a line than is shown."""
    clean = scope.clean(text) if whole else scope.clean_beginning(text)
    return clean[: text_search.MAX_LINE]


def _text(content: bytes) -> str:
    return content.decode(errors="replace")


_COMPILED = ".pyc"
_FOLDER = {
    "type": "string",
    "default": ".",
    "description": "Folder to look in.",
}
_GLOB = {
    "type": "string",
    "default": "**",
    "minLength": 1,
    "maxLength": 1_000,
    "description": "`*.py` fits names anywhere, `src/**/*.py` whole paths; no `{a,b}`.",
}

READ_FILE = Tool(
    ToolSpec(
        name="read_file",
        description=(
            "Read a text file, each line behind its number and a tab: 250 lines or 10 KB at once. Of a long file find the place "
            "with `search_text` and read the lines around it."
        ),
        tier=Tier.T0,
        idempotent=True,
        timeout_seconds=30,
        receipt_fields=("path", "sha256", "first_line", "last_line"),
        paths=(PathArgument(name="path", access=Access.READ),),
        input_schema={
            "type": "object",
            "properties": {
                "path": {
                    "type": "string",
                    "description": "From the workspace on, as all paths.",
                },
                "offset": {
                    "type": "integer",
                    "minimum": 1,
                    "default": 1,
                    "description": "First line.",
                },
                "limit": {
                    "type": "integer",
                    "minimum": 1,
                    "maximum": 10_000,
                    "default": _DEFAULT_LINES,
                    "description": "Lines; more than 250 are shown up to 24 KB.",
                },
            },
            "required": ["path"],
            "additionalProperties": False,
        },
    ),
    _read_file,
)

LIST_FILES = Tool(
    ToolSpec(
        name="list_files",
        description="List files of the workspace by glob; `*.pyc` only if it names them.",
        tier=Tier.T0,
        idempotent=True,
        timeout_seconds=30,
        receipt_fields=("total", "complete"),
        paths=(PathArgument(name="path", access=Access.READ),),
        input_schema={
            "type": "object",
            "properties": {
                "path": _FOLDER,
                "glob": _GLOB,
                "limit": {"type": "integer", "minimum": 1, "maximum": 2_000, "default": 500},
            },
            "additionalProperties": False,
        },
    ),
    _list_files,
)

SEARCH_TEXT = Tool(
    ToolSpec(
        name="search_text",
        description="Find lines by regular expression (Python's) in the text files of a folder.",
        tier=Tier.T0,
        idempotent=True,
        timeout_seconds=_SEARCH_SECONDS + 10,
        receipt_fields=("count", "files_searched", "complete"),
        paths=(PathArgument(name="path", access=Access.READ, glob_argument="glob"),),
        input_schema={
            "type": "object",
            "properties": {
                "pattern": {"type": "string", "minLength": 1, "maxLength": 1_000},
                "path": _FOLDER,
                "glob": _GLOB,
                "case_sensitive": {"type": "boolean", "default": True},
                "limit": {"type": "integer", "minimum": 1, "maximum": 1_000, "default": 50},
            },
            "required": ["pattern"],
            "additionalProperties": False,
        },
    ),
    _search_text,
)


_MAX_NAMES_BYTES = 24_000
"""Less than a result may hold, so that whole names are shown and nothing is cut behind them."""


async def _find_files(arguments: dict[str, Json], scope: ToolScope) -> dict[str, Json]:
    globs = [*arguments["patterns"]]
    for glob in globs:
        refuse_alternatives(glob)
    if not arguments["case_sensitive"]:
        globs = [glob.lower() for glob in globs]
    paths, walked = await in_thread(
        _matching_paths, scope, globs, folds_case=not arguments["case_sensitive"]
    )
    listed = _names_that_fit(paths[: arguments["limit"]])
    result: dict[str, Json] = {"files": listed, "total": len(paths), "complete": True}
    if walked >= text_search.MAX_FILES:
        result |= {"complete": False, "cut": f"only the first {walked} files were looked at"}
    elif len(listed) < len(paths):
        result |= {
            "complete": False,
            "cut": f"{len(paths) - len(listed)} more; use a closer pattern",
        }
    return result


def _matching_paths(
    scope: ToolScope, globs: Sequence[str], *, folds_case: bool
) -> tuple[list[str], int]:
    """Sorted paths that fit one of the globs, and how many files were looked at."""
    paths: list[str] = []
    walked = 0
    for _, _, path in text_search.walk(str(scope.root), scope.relative("path")):
        walked += 1
        name = path.lower() if folds_case else path
        if any(text_search.matches(name, glob) for glob in globs):
            paths.append(path)
    visible = [path for path in paths if not scope.passed_over(str(scope.root / path))]
    return sorted(visible), walked


def _names_that_fit(paths: Sequence[str]) -> list[str]:
    left, names = _MAX_NAMES_BYTES, []
    for path in paths:
        left -= len(path.encode(errors="replace")) + 4
        if left < 0:
            break
        names.append(path)
    return names


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
                "path": _FOLDER,
                "case_sensitive": {"type": "boolean", "default": True},
                "limit": {"type": "integer", "minimum": 1, "maximum": 2_000, "default": 200},
            },
            "required": ["patterns"],
            "additionalProperties": False,
        },
    ),
    _find_files,
)

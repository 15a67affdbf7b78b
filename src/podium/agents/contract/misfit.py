"""What pydantic finds wrong with a value, in words for an agent.

Keys and values in it are the agent's own: quoted, cut short, never a line of their own.
"""

from __future__ import annotations

import json

from pydantic import ValidationError

MOST_SHOWN = 5
MOST_EXPLAINED = 1000
"""With more things wrong than this they are only counted: each costs memory to be told."""


def misfit(error: ValidationError) -> str:
    count = error.error_count()
    if count > MOST_EXPLAINED:
        return f"The last JSON object does not fit the schema: {count} things in it are wrong"
    found = error.errors(include_url=False, include_context=False)
    shown = "; ".join(
        f"{_path(each['loc'])}: {each['msg'][:300]}{_was(each['input'], each['type'])}"
        for each in found[:MOST_SHOWN]
    )
    more = f"; and {count - MOST_SHOWN} more" if count > MOST_SHOWN else ""
    return f"The last JSON object does not fit the schema: {shown}{more}"


def quoted(given: object, most: int = 80) -> str:
    """As JSON on one line, cut short."""
    shown = json.dumps(given, default=repr)
    return shown if len(shown) <= most else shown[:most] + "…"


def _was(given: object, kind: str) -> str:
    return "" if kind == "missing" else f" (was {quoted(given)})"


def _path(location: tuple[int | str, ...]) -> str:
    return "$" + "".join(map(_step, location[:20]))


def _step(part: int | str) -> str:
    if isinstance(part, int):
        return f"[{part}]"
    return f".{part}" if part.isidentifier() and len(part) <= 80 else f"[{quoted(part)}]"

"""JSON exactly as the standard has it, and pydantic's problems with a value, worded for an agent.

Keys and values in it are the agent's own: quoted, cut short, never a line of their own.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from typing import Any

from pydantic import ValidationError

from podium.core.model import Json

MAX_LISTED = 5
MAX_EXPLAINED = 1000
"""With more things wrong than this they are only counted: each costs memory to be told."""


def misfit(error: ValidationError) -> str:
    count = error.error_count()
    if count > MAX_EXPLAINED:
        return f"The last JSON object does not fit the schema: {count} things in it are wrong"
    issues = error.errors(include_url=False, include_context=False)
    listed = "; ".join(
        f"{_path(issue['loc'])}: {issue['msg'][:300]}{_was(issue['input'], issue['type'])}"
        for issue in issues[:MAX_LISTED]
    )
    more = f"; and {count - MAX_LISTED} more" if count > MAX_LISTED else ""
    return f"The last JSON object does not fit the schema: {listed}{more}"


def quoted(value: object, most: int = 80) -> str:
    """As JSON on one line, cut short."""
    text = json.dumps(value, default=repr)
    return text if len(text) <= most else text[:most] + "…"


def _was(value: object, kind: str) -> str:
    return "" if kind == "missing" else f" (was {quoted(value)})"


def _path(location: tuple[int | str, ...]) -> str:
    return "$" + "".join(map(_step, location[:20]))


def _step(part: int | str) -> str:
    if isinstance(part, int):
        return f"[{part}]"
    return f".{part}" if part.isidentifier() and len(part) <= 80 else f"[{quoted(part)}]"


MAX_DEPTH = 100

_TOO_DEEP = f"it is nested deeper than {MAX_DEPTH} levels"
_SUSPECT = re.compile("\\\\u(?:[dD][89a-fA-F]|0000)|[\ud800-\udfff]")
_DAMAGED = re.compile("[\x00\ud800-\udfff]")


def load_object(source: str, *, raw_breaks: bool = False) -> dict[str, Json]:
    """The object this text is. Raises `ValueError` that says what is wrong with it.

    `raw_breaks` lets line breaks and other control characters stand unescaped in strings.
    """
    try:
        value = (_LENIENT if raw_breaks else _DECODER).decode(source)
    except RecursionError:
        raise ValueError(_TOO_DEEP) from None
    return _object(value, source)


def leading_object(source: str) -> tuple[dict[str, Json], int]:
    """The object that this text begins with, raw breaks in its strings allowed, and where it ends.

    Raises `ValueError` as `load_object` does.
    """
    try:
        value, end = _LENIENT.raw_decode(source)
    except RecursionError:
        raise ValueError(_TOO_DEEP) from None
    return _object(value, source[:end]), end


def _object(value: Json, source: str) -> dict[str, Json]:
    if not isinstance(value, dict):
        raise ValueError("it is not an object")
    check_value(value, look_at_strings=_SUSPECT.search(source) is not None)
    return value


def check_value(value: Json, *, look_at_strings: bool = True) -> None:
    """Raise `ValueError` for what no file, database or prompt could keep as it is."""
    level: list[Json] = [value]
    for _ in range(MAX_DEPTH):
        inner: list[Json] = []
        for item in level:
            if isinstance(item, dict):
                inner += item.keys() if look_at_strings else ()
                inner += item.values()
            elif isinstance(item, list):
                inner += item
            elif look_at_strings and isinstance(item, str) and _DAMAGED.search(item):
                raise ValueError("a string holds a NUL or half of a surrogate pair")
        if not inner:
            return
        level = inner
    raise ValueError(_TOO_DEEP)


def _without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    unique = dict(pairs)
    if len(unique) < len(pairs):
        twice = Counter(name for name, _ in pairs).most_common(1)[0][0]
        raise ValueError(f"the key {quoted(twice)} stands in it twice")
    return unique


def _finite(digits: str) -> float:
    number = float(digits)
    if not math.isfinite(number):
        raise ValueError(f"the number {digits[:40]} is too large")
    return number


def _no_constant(name: str) -> float:
    raise ValueError(f"{name} is no JSON number")


def _decoder(*, strict: bool) -> json.JSONDecoder:
    return json.JSONDecoder(
        object_pairs_hook=_without_duplicates,
        parse_float=_finite,
        parse_constant=_no_constant,
        strict=strict,
    )


_DECODER = _decoder(strict=True)
_LENIENT = _decoder(strict=False)

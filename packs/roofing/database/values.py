"""Values on their way into the database and out of it: checked, and the same on every backend."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import UTC, date, datetime
from typing import Any

from podium.core.errors import ToolBroke

from .schema import Kind, Table

MAX_TEXT = 1_000_000
_MAX_INTEGER = 2**63 - 1


def timestamp(when: datetime) -> str:
    """UTC with all its digits, so that moments sort as text."""
    return when.astimezone(UTC).isoformat(timespec="microseconds")


def stored(table: Table, column: str, value: Any) -> Any:
    """The value as it is kept: None, text, a number or, for a JSON column, what JSON can say.

    Raises `ToolBroke` with the column's name when it cannot be kept.
    """
    kind = table.column(column)
    if value is None:
        return None
    try:
        return _INTO[kind](value)
    except (ValueError, TypeError, RecursionError) as error:
        raise ToolBroke(
            f"{column} of {table.name} cannot be stored: {error}; use another value"
        ) from None


def plain(table: Table, row: Mapping[str, Any]) -> dict[str, Any]:
    """A row as every backend gives it, in the schema's order of columns."""
    return {name: _out(kind, row[name]) for name, kind in table.columns.items() if name in row}


def _out(kind: Kind, value: Any) -> Any:
    if value is None:
        return None
    if kind is Kind.TIMESTAMP:
        return timestamp(datetime.fromisoformat(value))
    if kind is Kind.REAL:
        return float(value)
    return value


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"it must be text, not {type(value).__name__}")
    if len(value) > MAX_TEXT:
        raise ValueError(f"it is longer than {MAX_TEXT} characters")
    if "\0" in value:
        raise ValueError("it contains a NUL character")
    # A lone surrogate has no bytes; the plain message of the codec would name a position only.
    if not value.isascii() and any("\ud800" <= character <= "\udfff" for character in value):
        raise ValueError("it contains half of a surrogate pair")
    return value


def _integer(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"it must be a whole number, not {value!r:.40}")
    if abs(value) > _MAX_INTEGER:
        raise ValueError("the number is too large")
    return value


def _real(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(f"it must be a number, not {value!r:.40}")
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise ValueError("it must be a finite number")
    return number


def _date(value: Any) -> str:
    if isinstance(value, datetime):
        raise TypeError("it must be a day without a time")
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, str) and len(value) == 10:
        with suppress(ValueError):
            return date.fromisoformat(value).isoformat()
    raise ValueError(f"it must be a day such as 2026-11-15, not {value!r:.40}")


def _timestamp(value: Any) -> str:
    when = datetime.fromisoformat(value) if isinstance(value, str) else value
    if not isinstance(when, datetime):
        raise TypeError(f"it must be a time, not {value!r:.40}")
    if when.tzinfo is None:
        raise ValueError("a time needs its offset from UTC")
    return timestamp(when)


def _json(value: Any) -> Any:
    text = json.dumps(value, allow_nan=False, ensure_ascii=False)
    if len(text) > MAX_TEXT:
        raise ValueError(f"it is longer than {MAX_TEXT} characters")
    if "\\u0000" in json.dumps(value).replace("\\\\", ""):
        raise ValueError("it contains a NUL character")
    _text(text)
    return json.loads(text)


_INTO: dict[Kind, Callable[[Any], Any]] = {
    Kind.TEXT: _text,
    Kind.INTEGER: _integer,
    Kind.REAL: _real,
    Kind.DATE: _date,
    Kind.TIMESTAMP: _timestamp,
    Kind.JSON: _json,
}

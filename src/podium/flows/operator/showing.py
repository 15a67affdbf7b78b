"""Values as people read them: a list of records as a table, a record as lines, all of it indented.

What cannot be seen is written out, as in `\\x1b` or `\\u202e`, so that nothing is shown as less than it is.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence

from podium.domain.model import Json
from podium.domain.seeing import written_out
from podium.flows.operator.exact import is_reference, reference_words

LONGEST_VALUE = 120
LONGEST_CELL = 40
MOST_ROWS = 50
MOST_LINES = 40
_DEEPEST = 4
_MOMENT = re.compile(r"(\d{4}-\d\d-\d\d)T(\d\d:\d\d)(?::\d\d(?:\.\d+)?)?(?:Z|\+00:00)")
_BLANKS = re.compile(r"[ \t\r\n\xa0\u1680\u2000-\u200a\u202f\u205f\u3000]+")
"""What is between words. Other characters that Python takes for blanks are controls."""


def in_line(values: Mapping[str, Json]) -> str:
    """`name=value, …`, each value cut to what is read at a glance."""
    return ", ".join(f"{one_line(name)}={shown(value)}" for name, value in values.items())


def short_values(fields: Mapping[str, Json]) -> dict[str, Json]:
    """Those that fit on a line."""
    return {name: value for name, value in fields.items() if not _is_long(value)}


def long_values(fields: Mapping[str, Json], indent: int) -> Iterator[str]:
    """The others, on lines of their own. Every line is indented, so that none looks like a title."""
    for name, value in fields.items():
        if _is_long(value):
            yield from _written_out(name, value, indent, 1)


def shown(value: Json, longest: int = LONGEST_VALUE) -> str:
    """One value on a line."""
    if is_reference(value):
        return reference_words(value)
    text = one_line(_as_text(value))
    return text if len(text) <= longest else f"{text[:longest]}…"


def one_line(text: str) -> str:
    return written_out(_BLANKS.sub(" ", text).strip(" "))


def _as_text(value: Json) -> str:
    match value:
        case str():
            moment = _MOMENT.fullmatch(value)
            return f"{moment[1]} {moment[2]}Z" if moment else value
        case None:
            return "-"
        case bool():
            return "yes" if value else "no"
        case float():
            return f"{value:.12g}"
        case list() if not any(isinstance(each, (dict, list)) for each in value):
            return ", ".join(map(_as_text, value)) or "none"
        case _:
            return json.dumps(value, ensure_ascii=False, default=str)


def _is_long(value: Json) -> bool:
    match value:
        case dict():
            return bool(value) and not is_reference(value)
        case list():
            return any(isinstance(each, (dict, list)) for each in value)
        case str():
            return "\n" in value.strip("\r\n") or len(value) > LONGEST_VALUE
        case _:
            return False


def _written_out(name: str, value: Json, indent: int, depth: int) -> Iterator[str]:
    start = f"{' ' * indent}{one_line(name)}:"
    if isinstance(value, str):
        yield start
        yield from _text(value, indent + 2)
    elif isinstance(value, list) and value and all(isinstance(each, dict) for each in value):
        yield start
        yield from _table(value, indent + 2)
    elif isinstance(value, dict) and depth < _DEEPEST:
        yield f"{start} {in_line(short_values(value))}".rstrip()
        for inner, part in value.items():
            if _is_long(part):
                yield from _written_out(inner, part, indent + 2, depth + 1)
    else:
        yield f"{start} {shown(value)}"


def _text(text: str, indent: int) -> Iterator[str]:
    lines = text.rstrip("\r\n").split("\n")
    for line in lines[:MOST_LINES]:
        yield f"{' ' * indent}{one_line(line)}".rstrip()
    if len(lines) > MOST_LINES:
        yield f"{' ' * indent}… and {len(lines) - MOST_LINES} more lines (--json has them)"


def _table(rows: Sequence[Mapping[str, Json]], indent: int) -> Iterator[str]:
    """Columns in the order in which they come up; those that are empty in every row are left out."""
    names = dict.fromkeys(name for row in rows for name in row)
    columns = [name for name in names if any(row.get(name) not in (None, "", []) for row in rows)]
    cells = [[_cell(row, name) for name in columns] for row in rows[:MOST_ROWS]]
    titles = [one_line(name) for name in columns]
    widths = [max(map(len, column)) for column in zip(titles, *cells, strict=True)]
    for line in (titles, *cells):
        padded = (cell.ljust(width) for cell, width in zip(line, widths, strict=True))
        yield f"{' ' * indent}{'  '.join(padded)}".rstrip()
    if len(rows) > MOST_ROWS:
        yield f"{' ' * indent}… and {len(rows) - MOST_ROWS} more (--json has them)"


def _cell(row: Mapping[str, Json], name: str) -> str:
    return shown(row[name], LONGEST_CELL) if name in row else "-"

"""Arguments of a call as whoever answers for it must see them: complete, unambiguous, tables and records indented."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence

from podium.core.model import Json
from podium.platform.invisible_text import written_out

MAX_IN_LINE = 120
_LOOKS_LIKE_MORE = re.compile(r"[,;] *[^ ,;=]+=|^$|^\s|\s$|^[\"{\[]|^\(from ")
"""A text that could pass for another argument, for a reference, or for nothing."""


def is_reference(value: Json) -> bool:
    """Tell whether a value stands for what an earlier call will give."""
    if not isinstance(value, dict) or set(value) != {"$from"}:
        return False
    sources = _sources(value["$from"])
    return bool(sources) and all(_is_source(part) for part in sources)


def reference_text(value: Json) -> str:
    """`(from 1: lead_id)`."""
    return ", ".join(
        f"(from {step}: {written_out(field)})" for step, field in _sources(value["$from"])
    )


def exactly(arguments: Mapping[str, Json], indent: int) -> tuple[str, list[str]]:
    """Split arguments into what fits on the call's own line without a doubt, and the lines beneath it for the rest."""
    plain = {name: value for name, value in arguments.items() if _is_plain(name, value)}
    inline = ", ".join(f"{name}={_scalar_text(value)}" for name, value in plain.items())
    rest = {name: value for name, value in arguments.items() if name not in plain}
    return inline, list(exact_lines(rest, indent))


def exact_lines(arguments: Mapping[str, Json], indent: int) -> Iterator[str]:
    """Each argument on a line of its own, whole. Lines of a text stand behind a bar."""
    start = " " * indent
    for name, value in arguments.items():
        first, *more = _lines(value)
        yield f"{start}{_name(name)}: {first}".rstrip()
        yield from (f"{start}  {line}" for line in more)


def digested(value: Json, longest: int) -> str:
    """A value on one line; a longer one by its beginning, its end, how much is between them, and a digest."""
    if is_reference(value):
        return reference_text(value)
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    if len(text) <= longest:
        return repr(text) if isinstance(value, str) else written_out(text)
    half = longest // 2
    digest = hashlib.sha256(text.encode(errors="replace")).hexdigest()[:12]
    left_out = f"[{len(text) - 2 * half} characters left out; sha256 of the whole {digest}]"
    return f"{text[:half]!r}… {left_out} …{text[-half:]!r}"


def _sources(source: Json) -> list[Json]:
    nested = isinstance(source, list) and all(isinstance(part, list) for part in source)
    return source if nested else [source]


def _is_source(source: Json) -> bool:
    match source:
        case [int(), str()]:
            return True
        case _:
            return False


def _is_plain(name: str, value: Json) -> bool:
    if isinstance(value, (dict, list)) and not is_reference(value):
        return False
    text = _scalar_text(value)
    return _name(name) == name and "\n" not in text and len(text) <= MAX_IN_LINE


def _lines(value: Json) -> list[str]:
    if isinstance(value, str) and "\n" in value:
        lines = written_out(value.replace("\r\n", "\n")).split("\n")
        return ["", *(f"| {line}".rstrip() for line in lines)]
    if isinstance(value, (dict, list)) and not is_reference(value):
        text = written_out(json.dumps(value, ensure_ascii=False))
        if len(text) > MAX_IN_LINE:
            return written_out(json.dumps(value, ensure_ascii=False, indent=2)).split("\n")
        return [text]
    return [_scalar_text(value)]


def _scalar_text(value: Json) -> str:
    """A value that is no record. A text that could pass for something else is quoted."""
    match value:
        case str():
            quoted = _LOOKS_LIKE_MORE.search(value) and "\n" not in value
            return written_out(json.dumps(value, ensure_ascii=False) if quoted else value)
        case None:
            return "-"
        case bool():
            return "yes" if value else "no"
        case dict():
            return reference_text(value)
        case _:
            return json.dumps(value)


def _name(name: str) -> str:
    return written_out(name) if name.isidentifier() else written_out(json.dumps(name))


MAX_VALUE = 120
MAX_CELL = 40
MAX_ROWS = 50
MAX_LINES = 40
_MAX_DEPTH = 4
_TIMESTAMP = re.compile(r"(\d{4}-\d\d-\d\d)T(\d\d:\d\d)(?::\d\d(?:\.\d+)?)?(?:Z|\+00:00)")
_BLANKS = re.compile(r"[ \t\r\n\xa0\u1680\u2000-\u200a\u202f\u205f\u3000]+")
"""Blanks between words. Other characters that Python takes for blanks are controls."""


def in_line(values: Mapping[str, Json]) -> str:
    """`name=value, …`, each value cut to what is read at a glance."""
    return ", ".join(f"{one_line(name)}={value_text(value)}" for name, value in values.items())


def short_values(fields: Mapping[str, Json]) -> dict[str, Json]:
    """Those that fit on a line."""
    return {name: value for name, value in fields.items() if not _is_long(value)}


def long_values(fields: Mapping[str, Json], indent: int) -> Iterator[str]:
    """The others, on lines of their own. Every line is indented, so that none looks like a title."""
    for name, value in fields.items():
        if _is_long(value):
            yield from _written_out(name, value, indent, 1)


def value_text(value: Json, longest: int = MAX_VALUE) -> str:
    """One value on a line."""
    if is_reference(value):
        return reference_text(value)
    text = one_line(_as_text(value))
    return text if len(text) <= longest else f"{text[:longest]}…"


def one_line(text: str) -> str:
    return written_out(_BLANKS.sub(" ", text).strip(" "))


def _as_text(value: Json) -> str:
    match value:
        case str():
            match = _TIMESTAMP.fullmatch(value)
            return f"{match[1]} {match[2]}Z" if match else value
        case None:
            return "-"
        case bool():
            return "yes" if value else "no"
        case float():
            return f"{value:.12g}"
        case list() if not any(isinstance(item, (dict, list)) for item in value):
            return ", ".join(map(_as_text, value)) or "none"
        case _:
            return json.dumps(value, ensure_ascii=False, default=str)


def _is_long(value: Json) -> bool:
    match value:
        case dict():
            return bool(value) and not is_reference(value)
        case list():
            return any(isinstance(item, (dict, list)) for item in value)
        case str():
            return "\n" in value.strip("\r\n") or len(value) > MAX_VALUE
        case _:
            return False


def _written_out(name: str, value: Json, indent: int, depth: int) -> Iterator[str]:
    start = f"{' ' * indent}{one_line(name)}:"
    if isinstance(value, str):
        yield start
        yield from _text(value, indent + 2)
    elif isinstance(value, list) and value and all(isinstance(item, dict) for item in value):
        yield start
        yield from _table(value, indent + 2)
    elif isinstance(value, dict) and depth < _MAX_DEPTH:
        yield f"{start} {in_line(short_values(value))}".rstrip()
        for inner, part in value.items():
            if _is_long(part):
                yield from _written_out(inner, part, indent + 2, depth + 1)
    else:
        yield f"{start} {value_text(value)}"


def _text(text: str, indent: int) -> Iterator[str]:
    lines = text.rstrip("\r\n").split("\n")
    for line in lines[:MAX_LINES]:
        yield f"{' ' * indent}{one_line(line)}".rstrip()
    if len(lines) > MAX_LINES:
        yield f"{' ' * indent}… and {len(lines) - MAX_LINES} more lines (--json has them)"


def _table(rows: Sequence[Mapping[str, Json]], indent: int) -> Iterator[str]:
    """Columns in the order in which they come up; those that are empty in every row are left out."""
    names = dict.fromkeys(name for row in rows for name in row)
    columns = [name for name in names if any(row.get(name) not in (None, "", []) for row in rows)]
    cells = [[_cell(row, name) for name in columns] for row in rows[:MAX_ROWS]]
    titles = [one_line(name) for name in columns]
    widths = [max(map(len, column)) for column in zip(titles, *cells, strict=True)]
    for line in (titles, *cells):
        padded = (cell.ljust(width) for cell, width in zip(line, widths, strict=True))
        yield f"{' ' * indent}{'  '.join(padded)}".rstrip()
    if len(rows) > MAX_ROWS:
        yield f"{' ' * indent}… and {len(rows) - MAX_ROWS} more (--json has them)"


def _cell(row: Mapping[str, Json], name: str) -> str:
    return value_text(row[name], MAX_CELL) if name in row else "-"

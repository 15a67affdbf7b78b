"""SQL for reading, in the words that SQLite and PostgreSQL share. Values are always parameters."""

from __future__ import annotations

from typing import Any

from .backend import Condition, Query


def select(query: Query, mark: str) -> tuple[str, list[Any]]:
    """`mark` is what stands for a parameter: `?` or `%s`."""
    where, values = _where(query, mark)
    columns = ", ".join(_quoted(name) for name in query.table.columns)
    way = "DESC" if query.descending else "ASC"
    order = ", ".join(f"{_quoted(name)} {way}" for name in query.order_columns)
    statement = f"SELECT {columns} FROM {_quoted(query.table.name)}{where} ORDER BY {order}"  # noqa: S608 - names are the schema's
    if query.limit is not None:
        statement += f" LIMIT {mark}"
        values.append(query.limit)
    return statement, values


def count(query: Query, mark: str) -> tuple[str, list[Any]]:
    where, values = _where(query, mark)
    return f"SELECT count(*) FROM {_quoted(query.table.name)}{where}", values  # noqa: S608 - names are the schema's


def escaped_pattern(text: str) -> str:
    """The text as a part of a LIKE pattern that means exactly it; the escape is a backslash."""
    for special in ("\\", "%", "_"):
        text = text.replace(special, f"\\{special}")
    return text


def _where(query: Query, mark: str) -> tuple[str, list[Any]]:
    parts: list[str] = []
    values: list[Any] = []
    for condition in query.conditions:
        part, given = _part(condition, mark)
        parts.append(part)
        values += given
    return (f" WHERE {' AND '.join(parts)}" if parts else ""), values


def _part(condition: Condition, mark: str) -> tuple[str, list[Any]]:
    name = _quoted(condition.column)
    match condition.operator:
        case "null":
            return f"{name} IS NULL", []
        case "in":
            return f"{name} IN ({', '.join([mark] * len(condition.value))})", [*condition.value]
        case "contains":
            # SQLite's LIKE folds ASCII by itself, PostgreSQL's does not.
            pattern = f"%{escaped_pattern(condition.value.lower())}%"
            return f"lower({name}) LIKE {mark} ESCAPE '\\'", [pattern]
        case _:
            return f"{name} {condition.operator} {mark}", [condition.value]


def _quoted(name: str) -> str:
    return f'"{name}"'

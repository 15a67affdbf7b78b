"""Wishes held against the schema before any backend sees them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from podium.core.errors import ToolBroke

from .backend import Condition, Query, Step
from .changes import Between, Change, Contains, Delete, Insert, Update
from .schema import Kind, Table, table_named
from .values import stored


def query_of(
    table: str,
    where: Mapping[str, Any],
    *,
    order: str = "",
    descending: bool = False,
    limit: int | None = None,
) -> Query:
    """Raises `ToolBroke` for a table, column or value that cannot be."""
    found = table_named(table)
    if order:
        found.column(order)
    conditions = tuple(
        condition
        for column, value in where.items()
        for condition in _conditions(found, column, value)
    )
    return Query(found, conditions, order, descending, limit)


def _conditions(table: Table, column: str, value: Any) -> Iterator[Condition]:
    if table.column(column) is Kind.JSON:
        raise ToolBroke(f"{column} of {table.name} cannot be searched; choose another column")
    match value:
        case None:
            yield Condition(column, "null")
        case Contains(text=text):
            if table.column(column) is not Kind.TEXT:
                raise ToolBroke(f"{column} of {table.name} is not text and cannot be searched")
            yield Condition(column, "contains", stored(table, column, text))
        case Between(low=low, high=high):
            if low is not None:
                yield Condition(column, ">=", stored(table, column, low))
            if high is not None:
                yield Condition(column, "<=", stored(table, column, high))
        case list() | tuple() | set() | frozenset():
            given = (stored(table, column, item) for item in value if item is not None)
            yield Condition(column, "in", tuple(dict.fromkeys(given)))
        case _:
            yield Condition(column, "=", stored(table, column, value))


def prepared(changes: Iterable[Change], now: str) -> tuple[Step, ...]:
    """Raises `ToolBroke` for a table, column or value that cannot be."""
    return tuple(_step(change, now) for change in changes)


def _step(change: Change, now: str) -> Step:
    table = table_named(change.table)
    if table.name == "performed":
        raise ToolBroke("only `apply` writes the record of executed calls")
    match change:
        case Insert(row=row):
            stamped = {"created_at": now, "updated_at": now, **row}
            values = _values(table, stamped)
            if not values.get("id"):
                raise ToolBroke(f"a new row of {table.name} needs an id")
            return Step("insert", table, values["id"], values, {})
        case Update(id=id, values=given, expecting=expecting):
            if "id" in given:
                raise ToolBroke(f"the id of a row of {table.name} cannot be changed")
            values = _values(table, {"updated_at": now, **given})
            return Step("update", table, _id(table, id), values, _expected(table, expecting))
        case Delete(id=id, expecting=expecting):
            return Step("delete", table, _id(table, id), {}, _expected(table, expecting))


def _id(table: Table, id: str) -> str:
    return str(stored(table, "id", id))


def _values(table: Table, given: Mapping[str, Any]) -> dict[str, Any]:
    return {column: stored(table, column, value) for column, value in given.items()}


def _expected(table: Table, expecting: Mapping[str, Any]) -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = {}
    for column, value in expecting.items():
        if table.column(column) is Kind.JSON:
            raise ToolBroke(f"{column} of {table.name} cannot be expected; choose another column")
        several = value if isinstance(value, list | tuple | set | frozenset) else [value]
        found[column] = [stored(table, column, item) for item in several]
    return found

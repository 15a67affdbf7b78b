"""Changes that a tool may request, and the ids of new rows."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from podium.core.errors import ToolBroke


@dataclass(frozen=True)
class Insert:
    """A new row. `created_at` and `updated_at` are filled in."""

    table: str
    row: Mapping[str, Any]


@dataclass(frozen=True)
class Update:
    """New values for some columns of a row. `updated_at` is filled in."""

    table: str
    id: str
    values: Mapping[str, Any]
    expecting: Mapping[str, Any] = field(default_factory=dict)
    """Column → the value it must have at this moment, or a list of those it may have."""


@dataclass(frozen=True)
class Delete:
    """The end of a row."""

    table: str
    id: str
    expecting: Mapping[str, Any] = field(default_factory=dict)


Change = Insert | Update | Delete


@dataclass(frozen=True)
class Contains:
    """In `where`: the column has this text in it, in capitals or not."""

    text: str


@dataclass(frozen=True)
class Between:
    """In `where`: the column is at least `low` and at most `high`; None leaves that end open."""

    low: Any = None
    high: Any = None


class Conflict(ToolBroke):
    """A change does not fit what is in the database. Nothing was changed."""

    def __init__(self, message: str, *, table: str = "", id: str = "", column: str = "") -> None:
        super().__init__(message)
        self.table = table
        self.id = id
        self.column = column


def row_missing(table: str, id: str) -> Conflict:
    return Conflict(
        f"there is no row {id!r} in {table}; nothing was changed: check the id",
        table=table,
        id=id,
    )


def row_changed(table: str, id: str, column: str, found: Any, expected: Any) -> Conflict:
    allowed = " or ".join(repr(value) for value in expected)
    return Conflict(
        f"{column} of {id!r} in {table} is {found!r}, not {allowed}; nothing was changed: "
        "check the current value",
        table=table,
        id=id,
        column=column,
    )


_BROKEN = {
    "foreign": "a record that it refers to does not exist, or another record still refers to it",
    "unique": "a record like it already exists",
    "check": "one of its values is not allowed",
    "null": "one of its values is missing",
}


def rule_broken(rule: str, place: str = "") -> Conflict:
    """`rule` is one of foreign, unique, check, null: the kinds of constraint."""
    where = f" ({place})" if place else ""
    return Conflict(
        f"the database rejected the change{where}: {_BROKEN[rule]}; nothing was changed"
    )


def new_id(kind: str, key: str, n: int = 0) -> str:
    """The id of the n-th thing of a kind that a call makes: the same when the call is repeated."""
    digest = hashlib.sha256(f"{kind}\0{key}\0{n}".encode()).hexdigest()
    return f"{kind}_{digest[:10]}"

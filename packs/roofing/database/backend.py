"""Protocol of the three backends. Its calls block; the database calls them from threads."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Protocol

from .schema import Table

Operator = Literal["=", ">=", "<=", "null", "in", "contains"]


@dataclass(frozen=True)
class Condition:
    """One condition on a column that the table has. Of `in` the value is a tuple, of `null` None."""

    column: str
    operator: Operator
    value: Any = None


@dataclass(frozen=True)
class Query:
    """Condition on the rows to read. Its names were checked against the schema."""

    table: Table
    conditions: tuple[Condition, ...] = ()
    order: str = ""
    """A column, then the key. Empty: the key."""
    descending: bool = False
    limit: int | None = None

    @property
    def is_empty(self) -> bool:
        """True if no row can fit."""
        return any(
            condition.operator == "in" and not condition.value for condition in self.conditions
        )

    @property
    def order_columns(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(name for name in (self.order, self.table.key) if name))


@dataclass(frozen=True)
class Step:
    """One change whose names and values were checked."""

    act: Literal["insert", "update", "delete"]
    table: Table
    id: str
    values: dict[str, Any]
    expecting: dict[str, list[Any]]
    """Column → the values it may have."""

    def as_json(self) -> dict[str, Any]:
        return {
            "act": self.act,
            "table": self.table.name,
            "id": self.id,
            "values": self.values,
            "expecting": self.expecting,
        }


@dataclass(frozen=True)
class Batch:
    """Changes that are made together, once, under a key."""

    key: str
    tool: str
    now: str
    changes: tuple[Step, ...]
    result: dict[str, Any]


class Backend(Protocol):
    """A place where the records are. All of its errors are `ToolBroke`, in words."""

    name: str
    copy_format: str
    """`db` (a SQLite file) or `json`."""

    def select(self, query: Query) -> list[dict[str, Any]]: ...

    def count(self, query: Query) -> int: ...

    def apply(self, batch: Batch) -> dict[str, Any]:
        """All or nothing; the recorded result when the key was applied before."""
        ...

    def migrations(self) -> list[str]: ...

    def copy_to(self, file: Path) -> None:
        """Everything, as of one moment, into a new file of the format `copy_format`."""
        ...

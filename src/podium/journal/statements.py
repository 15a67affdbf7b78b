"""What is needed of a driver, and how values are bound to statements."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Protocol

AT_ONCE = 500
"""Ids that one statement is about: databases allow so many bound values only."""

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


class Rows(Protocol):
    """What a driver gives back."""

    def fetchone(self) -> Any: ...
    def fetchall(self) -> list[Any]: ...


class Connection(Protocol):
    """What is needed of a driver."""

    def execute(self, statement: str, parameters: Mapping[str, Any] = ..., /) -> Rows: ...


class ClosableConnection(Connection, Protocol):
    """A connection of its user's own."""

    def close(self) -> None: ...


def microseconds(moment: datetime) -> int:
    return (moment - EPOCH) // _MICROSECOND


def moment_of(value: int) -> datetime:
    return EPOCH + timedelta(microseconds=value)


def portions(items: Collection[str]) -> Iterator[list[str]]:
    """The items, as many at a time as one statement may bind."""
    listed = list(items)
    for start in range(0, len(listed), AT_ONCE):
        yield listed[start : start + AT_ONCE]


def named(values: dict[str, Any], name: str, items: Sequence[str]) -> str:
    """Bind each item and give the list of placeholders for an IN clause."""
    names = [f"{name}_{number}" for number in range(len(items))]
    values.update(zip(names, items, strict=True))
    return ", ".join(f":{each}" for each in names)

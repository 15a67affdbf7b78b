"""Statements bound to any driver, and rows read as models even when a newer Podium wrote them."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Protocol, TypeVar

from pydantic import ValidationError

from podium.core.errors import StoreUnusable
from podium.core.model import FrozenModel
from podium.core.work import StepRecord, WorkerHeartbeat

AT_ONCE = 500
"""Ids that one statement is about: databases allow so many bound values only."""

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


class RowCursor(Protocol):
    """The cursor that a driver gives back."""

    def fetchone(self) -> Any: ...
    def fetchall(self) -> list[Any]: ...


class StoreConnection(Protocol):
    """The connection that a driver needs."""

    def execute(self, statement: str, parameters: Mapping[str, Any] = ..., /) -> RowCursor: ...


class ClosableConnection(StoreConnection, Protocol):
    """A connection of its user's own."""

    def close(self) -> None: ...


def microseconds(timestamp: datetime) -> int:
    return (timestamp - EPOCH) // _MICROSECOND


def datetime_of(value: int) -> datetime:
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
    return ", ".join(f":{name}" for name in names)


N = TypeVar("N", bound=FrozenModel)

Report = Callable[[str, str], None]
"""Takes what cannot be read, and why."""

_MAX_NAME = 120


def readable(model: type[N], rows: Iterable[tuple[Any, Any]], report: Report) -> Iterator[N]:
    """Those of the rows, keys and bodies, that can be read. The others are reported."""
    for key, body in rows:
        try:
            yield _read(model, body)
        except (ValueError, RecursionError) as error:
            report(_named(model, str(key)), _problem(error))


def read_or_refuse(model: type[N], body: Any, looked_up: Mapping[str, Any]) -> N:
    """The noun of this row. Raises `StoreUnusable` that says what it was looked up by."""
    try:
        return _read(model, body)
    except (ValueError, RecursionError) as error:
        raise StoreUnusable(
            _named(model, " ".join(str(value) for value in looked_up.values())),
            f"its row in the database cannot be read ({_problem(error)})",
            "upgrade Podium if a newer version wrote it, otherwise restore a backup",
        ) from None


def _read(model: type[N], body: Any) -> N:
    if model is not WorkerHeartbeat:
        # What is not known of a run or a schedule would be lost when it is saved again.
        return model.model_validate_json(body)
    # Others only look at a beat: workers of two versions must know of each other.
    fields = json.loads(body)
    if isinstance(fields, dict):
        fields = {name: value for name, value in fields.items() if name in model.model_fields}
    return model.model_validate(fields)


def _named(model: type[FrozenModel], key: str) -> str:
    name = {WorkerHeartbeat: "worker", StepRecord: "step"}.get(model, model.__name__.lower())
    return f"{name} {key[:_MAX_NAME]!r}"


def _problem(error: Exception) -> str:
    """The problem, without the value: that may be a secret."""
    if not isinstance(error, ValidationError):
        return "not JSON" if isinstance(error, ValueError) else "nested too deeply"
    first = error.errors(include_input=False, include_url=False, include_context=False)[0]
    key_path = ".".join(str(part) for part in first["loc"])
    return f"{key_path[:_MAX_NAME]}: {first['msg']}" if key_path else "not JSON"

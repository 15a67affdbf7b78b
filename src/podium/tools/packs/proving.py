"""Looks, after a tool has acted, whether what it says is so: the rows of its `verify`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date, datetime
from decimal import Decimal
from typing import Any

from podium.core.errors import PodiumError
from podium.core.model import Json
from podium.core.packs import RowCheck
from podium.tools.packs.scope import PackScope, RowReader


async def proofs(
    checks: Sequence[RowCheck],
    arguments: Mapping[str, Json],
    result: Mapping[str, Json],
    reader: RowReader,
    scope: PackScope,
) -> list[dict[str, Json]]:
    """Run the checks and return their results for the receipt: table, where, found, ok; `problem` when not ok."""
    return [await _proof(check, arguments, result, reader, scope) for check in checks]


def unproved(results: Sequence[Mapping[str, Json]]) -> str:
    """Join the problems of failed checks; empty when all passed."""
    return "; ".join(str(proof["problem"]) for proof in results if not proof["ok"])


async def _proof(
    check: RowCheck,
    arguments: Mapping[str, Json],
    result: Mapping[str, Json],
    reader: RowReader,
    scope: PackScope,
) -> dict[str, Json]:
    where = {name: _meant(value, arguments, result) for name, value in check.where.items()}
    proof: dict[str, Json] = {"table": check.table, "where": where, "found": None, "ok": False}
    columns = tuple(dict.fromkeys((*check.columns, *check.expect)))
    try:
        row = await reader(check.table, where, columns, scope)
    except PodiumError as error:
        return proof | {"problem": f"{check.table} could not be read: {error}"}
    except Exception as error:
        return proof | {"problem": f"{check.table} could not be read: {type(error).__name__}"}
    proof["found"] = None if row is None else {name: _plain(value) for name, value in row.items()}
    problem = _problem(check, proof["found"], arguments, result)
    return proof | ({"problem": problem} if problem else {"ok": True})


def _problem(
    check: RowCheck,
    row: Mapping[str, Json] | None,
    arguments: Mapping[str, Json],
    result: Mapping[str, Json],
) -> str:
    if check.absent:
        return f"{check.table} still has the row" if row is not None else ""
    if row is None:
        return f"{check.table} has no such row"
    for column, value in check.expect.items():
        expected = _plain(_meant(value, arguments, result))
        if column not in row or row[column] != expected:
            return f"{check.table}.{column} is {row.get(column)!r}, not {expected!r}"
    return ""


def _meant(value: Json, arguments: Mapping[str, Json], result: Mapping[str, Json]) -> Json:
    """Resolve a value of a check that refers to an argument or a result."""
    for prefix, source in (("$arg.", arguments), ("$result.", result)):
        if isinstance(value, str) and value.startswith(prefix):
            current: Json = source
            for part in value.removeprefix(prefix).split("."):
                current = current.get(part) if isinstance(current, Mapping) else None
            return current
    return value


def _plain(value: Any) -> Json:
    """A database's value as JSON has it."""
    if isinstance(value, Decimal):
        return float(value)
    if isinstance(value, datetime | date):
        return value.isoformat()
    return value

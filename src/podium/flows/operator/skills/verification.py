"""The SQL with which a person can look for themselves whether a plan did what it says."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from podium.domain.model import Json
from podium.domain.operating import SqlQuery
from podium.domain.packs import PackTool, RowCheck


def queries_for(tool: PackTool, arguments: Mapping[str, Json], step: int) -> tuple[SqlQuery, ...]:
    """One read-only statement for each row check. Values are parameters, never text of the statement."""
    return tuple(_query(check, arguments, step) for check in tool.verify)


def _query(check: RowCheck, arguments: Mapping[str, Json], step: int) -> SqlQuery:
    columns = ", ".join(dict.fromkeys((*check.where, *check.columns, *check.expect)))
    conditions = " AND ".join(f"{column} = :{column}" for column in check.where)
    sql = f"SELECT {columns} FROM {check.table} WHERE {conditions}"  # noqa: S608 - names are the registry's, checked when it was loaded
    return SqlQuery(sql=sql, parameters=dict(_parameters(check, arguments, step)))


def _parameters(
    check: RowCheck, arguments: Mapping[str, Json], step: int
) -> Iterator[tuple[str, Json]]:
    for column, value in check.where.items():
        yield column, _meant(value, arguments, step)


def _meant(value: Json, arguments: Mapping[str, Json], step: int) -> Json:
    if not isinstance(value, str):
        return value
    if value.startswith("$result."):
        return f"${step}.{value.removeprefix('$result.')}"
    if not value.startswith("$arg."):
        return value
    given = arguments.get(value.removeprefix("$arg."))
    if isinstance(given, dict) and set(given) == {"$from"}:
        source = given["$from"]
        return f"${source[0]}.{source[1]}"
    return given

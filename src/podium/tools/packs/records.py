"""Records of a pack without code: tables whose rows its tools add, update and list, as the registry declares it.

Each call that changes records does so in one transaction together with its result, under the key of the call: done
twice under one key, it has happened once.
"""

from __future__ import annotations

import hashlib
import json
import re
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from datetime import date, timedelta
from typing import NamedTuple
from zoneinfo import ZoneInfo

from podium.core.errors import ToolBroke
from podium.core.model import Json
from podium.core.packs import Pack, PackTool
from podium.platform.completion import in_thread
from podium.tools.packs.handlers import ARGUMENT, PackScope, RecordRule, RecordsHandler

MAX_ROWS = 1_000
"""Rows that a list gives, the newest first."""
_TODAY = re.compile(r"\$today(?:([+-])(\d{1,4}))?")
_TABLES = """
CREATE TABLE IF NOT EXISTS records (
    number INTEGER PRIMARY KEY, name TEXT NOT NULL, id TEXT NOT NULL, data TEXT NOT NULL, UNIQUE (name, id)
);
CREATE TABLE IF NOT EXISTS done (key TEXT PRIMARY KEY, result TEXT NOT NULL);
"""

Row = dict[str, Json]


class _Call(NamedTuple):
    handler: RecordsHandler
    tool: PackTool
    reverse: PackTool | None
    arguments: Mapping[str, Json]
    scope: PackScope
    today: date


async def perform_records(
    handler: RecordsHandler,
    tool: PackTool,
    pack: Pack,
    arguments: Mapping[str, Json],
    scope: PackScope,
) -> Row:
    """Perform a call of a tool whose handler is `records`. Raises `ToolBroke` with the rule that forbids it."""
    reverse = pack.tool(tool.undo) if tool.undo else None
    call = _Call(handler, tool, reverse, arguments, scope, _today(pack, scope))
    return await in_thread(_perform, call)


async def read_record(
    table: str, where: dict[str, Json], columns: tuple[str, ...], scope: PackScope
) -> Row | None:
    """Read the row that a proof asks for, as `RowReader` does."""
    return await in_thread(_read, table, where, columns, scope)


def _perform(call: _Call) -> Row:
    with _database(call.scope) as database:
        if call.handler.list:
            return _listed(database, call)
        done = database.execute(
            "SELECT result FROM done WHERE key = ?", [call.scope.key]
        ).fetchone()
        if done is not None:
            earlier: Row = json.loads(done[0])
            return earlier
        for rule in call.handler.require:
            _must_hold(database, call, rule)
        result = _added(database, call) if call.handler.add else _updated(database, call)
        database.execute("INSERT INTO done VALUES (?, ?)", [call.scope.key, json.dumps(result)])
        return result


@contextmanager
def _database(scope: PackScope) -> Iterator[sqlite3.Connection]:
    """The database of the pack's records; what is done inside is one transaction."""
    path = scope.state / "records.db"
    with closing(sqlite3.connect(path, timeout=scope.timeout_seconds, isolation_level=None)) as one:
        one.executescript(_TABLES)
        one.execute("BEGIN IMMEDIATE")
        try:
            yield one
        except BaseException:
            one.execute("ROLLBACK")
            raise
        one.execute("COMMIT")


def _added(database: sqlite3.Connection, call: _Call) -> Row:
    record_id = f"{call.handler.id}_{hashlib.sha256(call.scope.key.encode()).hexdigest()[:8]}"
    row = {**call.arguments, **_filled(call.handler.set, call)}
    values = [call.handler.add, record_id, json.dumps(row)]
    database.execute("INSERT INTO records (name, id, data) VALUES (?, ?, ?)", values)
    return _result(call, record_id, row, {})


def _updated(database: sqlite3.Connection, call: _Call) -> Row:
    name = f"{call.handler.id}_id"
    record_id = str(call.arguments[name])
    before = _row(database, call.handler.update, record_id)
    if before is None:
        raise ToolBroke(f"there is no {call.handler.id} {record_id!r}; list them to find its id")
    wanted = _filled(call.handler.where, call)
    for column, value in wanted.items():
        if before.get(column) != value:
            raise ToolBroke(
                f"{call.handler.id} {record_id!r} has {column} {_short(before.get(column))}, "
                f"and {call.tool.name} needs {_short(value)}"
            )
    given = {key: value for key, value in call.arguments.items() if key != name}
    row = {**before, **given, **_filled(call.handler.set, call)}
    values = [json.dumps(row), call.handler.update, record_id]
    database.execute("UPDATE records SET data = ? WHERE name = ? AND id = ?", values)
    return _result(call, record_id, row, before)


def _result(call: _Call, record_id: str, row: Row, before: Row) -> Row:
    name = f"{call.handler.id}_id"
    result: Row = {name: record_id, **row}
    if call.reverse is not None:
        known = {**before, name: record_id}
        result["undo"] = {
            key: known[key] for key in call.reverse.properties if known.get(key) is not None
        }
    return result


def _listed(database: sqlite3.Connection, call: _Call) -> Row:
    table = call.handler.list
    wanted = {**_filled(call.handler.where, call), **call.arguments}
    rows = database.execute(
        "SELECT id, data FROM records WHERE name = ? ORDER BY number DESC", [table]
    )
    limits = _filled(call.handler.before, call)
    matching: list[Row] = []
    for record_id, data in rows:
        row: Row = {f"{call.handler.id}_id": record_id, **json.loads(data)}
        if all(_fits(name, value, row) for name, value in wanted.items()) and all(
            row.get(name) is not None and row[name] < value for name, value in limits.items()
        ):
            matching.append(row)
    return {"count": len(matching), table: matching[:MAX_ROWS]}


def _fits(name: str, value: Json, row: Row) -> bool:
    """Texts are found by a part of them, everything else and ids as a whole."""
    actual = row.get(name)
    if isinstance(value, str) and isinstance(actual, str) and not name.endswith("_id"):
        return value.casefold() in actual.casefold()
    return bool(actual == value)


def _must_hold(database: sqlite3.Connection, call: _Call, rule: RecordRule) -> None:
    rows = _rows(database, rule.table, _filled(rule.where, call))
    if bool(rows) == rule.absent:
        raise ToolBroke(rule.otherwise)


def _rows(database: sqlite3.Connection, table: str, where: Mapping[str, Json]) -> Sequence[Row]:
    rows = database.execute("SELECT id, data FROM records WHERE name = ?", [table])
    records = ({"id": record_id, **json.loads(data)} for record_id, data in rows)
    return [row for row in records if all(row.get(key) == value for key, value in where.items())]


def _row(database: sqlite3.Connection, table: str, record_id: str) -> Row | None:
    found = database.execute(
        "SELECT data FROM records WHERE name = ? AND id = ?", [table, record_id]
    ).fetchone()
    return None if found is None else json.loads(found[0])


def _read(
    table: str, where: Mapping[str, Json], columns: Sequence[str], scope: PackScope
) -> Row | None:
    with _database(scope) as database:
        rows = _rows(database, table, where)
    if not rows:
        return None
    return {name: rows[0].get(name) for name in columns} if columns else rows[0]


def _filled(values: Mapping[str, Json], call: _Call) -> Row:
    """The values with arguments and days in the place of `$arg.NAME` and `$today+N`. An argument that was not given is left out."""
    filled = {name: _value(value, call) for name, value in values.items()}
    return {name: value for name, value in filled.items() if value is not None}


def _value(value: Json, call: _Call) -> Json:
    if not isinstance(value, str):
        return value
    if match := ARGUMENT.fullmatch(value):
        return call.arguments.get(match[1])
    if match := _TODAY.fullmatch(value):
        days = int(match[2] or 0) * (-1 if match[1] == "-" else 1)
        return (call.today + timedelta(days=days)).isoformat()
    return value


def _today(pack: Pack, scope: PackScope) -> date:
    named = pack.registry.time_zone
    zone = scope.settings.get(named, named)
    return scope.now.astimezone(ZoneInfo(zone) if zone else None).date()


def _short(value: Json) -> str:
    return json.dumps(value, ensure_ascii=False)[:80]

"""A server that speaks as much of PostgREST as the roofing pack uses, over a real PostgreSQL.

Filters, order, ranges, counts, remote procedures and the shape of errors are PostgREST's; what they
mean is decided by the database behind it.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import psycopg
from psycopg import sql

_CONTROLS = ("select", "order", "limit", "offset")
_OPERATORS = {"eq": "=", "gte": ">=", "lte": "<=", "ilike": "ILIKE"}
_STATUSES = {"23503": 409, "23505": 409, "42P01": 404, "42883": 404, "42501": 403}


@dataclass
class PostgrestServer:
    """A project: its address, its key, and what was asked of it."""

    database_url: str
    key: str = "service-key-for-tests"
    most_rows: int = 1000
    """Like the setting db-max-rows."""
    broken_answer: tuple[int, bytes] | None = None
    """Answer everything with this, as a proxy in front of it would."""
    url: str = ""
    requests: list[str] = field(default_factory=list)


@contextmanager
def postgrest(database_url: str) -> Iterator[PostgrestServer]:
    project = PostgrestServer(database_url)
    server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(project))
    project.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield project
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@dataclass
class _Reply:
    status: int
    body: Any
    content_range: str = ""


def _handler(project: PostgrestServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._answer(lambda: _rows(project, self.path, self.headers.get("Prefer", "")))

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", "0")))
            self._answer(lambda: _called(project, self.path, json.loads(body)))

        def _answer(self, work: Any) -> None:
            project.requests.append(f"{self.command} {self.path}")
            if project.broken_answer is not None:
                return self._send(*project.broken_answer)
            keys = {self.headers.get("apikey"), self.headers.get("Authorization", "")[7:]}
            if keys != {project.key}:
                reply = _Reply(401, {"message": "Invalid API key", "hint": "Double check your key"})
            else:
                try:
                    reply = work()
                except psycopg.Error as error:
                    reply = _refusal(error)
            body = json.dumps(reply.body).encode()
            return self._send(reply.status, body, reply.content_range)

        def _send(self, status: int, body: bytes, content_range: str = "") -> None:
            self.send_response(status)
            self.send_header("Content-Type", "application/json; charset=utf-8")
            self.send_header("Content-Length", str(len(body)))
            if content_range:
                self.send_header("Content-Range", content_range)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:
            """Not to the terminal."""

    return Handler


def _rows(project: PostgrestServer, path: str, prefer: str) -> _Reply:
    parts = urlsplit(path)
    table = sql.Identifier(parts.path.removeprefix("/rest/v1/"))
    asked = parse_qsl(parts.query, keep_blank_values=True)
    controls = {name: value for name, value in asked if name in _CONTROLS}
    tests = [_test(name, value) for name, value in asked if name not in _CONTROLS]
    where = sql.SQL(" AND ").join([test for test, _ in tests]) if tests else sql.SQL("true")
    values = [value for _, given in tests for value in given]
    columns = sql.SQL(", ").join(sql.Identifier(part) for part in controls["select"].split(","))
    limit = min(int(controls.get("limit", project.most_rows)), project.most_rows)
    offset = int(controls.get("offset", 0))
    statement = sql.SQL(
        "SELECT to_jsonb(t) FROM (SELECT {} FROM {} WHERE {} ORDER BY {} LIMIT %s OFFSET %s) t"
    ).format(columns, table, where, _order(controls.get("order", "")))
    with psycopg.connect(project.database_url) as connection:
        connection.read_only = True
        found = [row for (row,) in connection.execute(statement, [*values, limit, offset])]
        total = "*"
        if prefer == "count=exact":
            counting = sql.SQL("SELECT count(*) FROM {} WHERE {}").format(table, where)
            (number,) = connection.execute(counting, values).fetchone() or (0,)
            if offset > number:
                return _Reply(
                    416, {"code": "PGRST103", "message": "Requested range not satisfiable"}
                )
            total = str(number)
    span = f"{offset}-{offset + len(found) - 1}" if found else "*"
    return _Reply(206 if total not in ("*", str(len(found))) else 200, found, f"{span}/{total}")


def _test(column: str, value: str) -> tuple[sql.Composed, list[Any]]:
    name = sql.Identifier(column)
    operator, _, given = value.partition(".")
    if operator == "is":
        assert given == "null"
        return sql.SQL("{} IS NULL").format(name), []
    if operator == "in":
        several = _listed(given)
        marks = sql.SQL(", ").join([sql.Placeholder()] * len(several))
        return sql.SQL("{} IN ({})").format(name, marks), list(several)
    if operator == "ilike":
        given = given.replace("*", "%")
    return sql.SQL("{} {} %s").format(name, sql.SQL(_OPERATORS[operator])), [given]


def _listed(given: str) -> list[str]:
    """`("a","b \\"c\\"")`: quoted elements with backslash escapes."""
    assert given[0] + given[-1] == "()"
    quoted = re.findall(r'"((?:[^"\\]|\\.)*)"', given[1:-1])
    return [re.sub(r"\\(.)", r"\1", item) for item in quoted]


def _order(given: str) -> sql.Composable:
    parts = [part.partition(".") for part in given.split(",") if part]
    terms = [
        sql.SQL("{} {}").format(sql.Identifier(name), sql.SQL("DESC" if way == "desc" else "ASC"))
        for name, _, way in parts
    ]
    return sql.SQL(", ").join(terms) if terms else sql.SQL("1")


def _called(project: PostgrestServer, path: str, given: dict[str, Any]) -> _Reply:
    function = path.removeprefix("/rest/v1/rpc/")
    named = sql.SQL(", ").join(
        sql.SQL("{} => {}").format(sql.Identifier(name), sql.Placeholder()) for name in given
    )
    values = [
        json.dumps(item) if isinstance(item, dict | list) else item for item in given.values()
    ]
    statement = sql.SQL("SELECT {}({})").format(sql.Identifier(function), named)
    with psycopg.connect(project.database_url) as connection:
        row = connection.execute(statement, values).fetchone()
    return _Reply(200, row[0] if row else None)


def _refusal(error: psycopg.Error) -> _Reply:
    state = error.sqlstate or ""
    if state.startswith("PT"):
        status = int(state[2:])
    else:
        status = _STATUSES.get(state, 400 if state[:2] in ("22", "23", "42", "P0") else 500)
    code = {"42P01": "PGRST205", "42883": "PGRST202"}.get(state, state)
    output = error.diag
    body = {"code": code, "message": output.message_primary, "details": output.message_detail}
    return _Reply(status, {**body, "hint": output.message_hint})

"""Records in a Supabase project, over its REST interface (PostgREST)."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

from podium.core.errors import ToolBroke

from ..exchange import Answer, AnswerLost, Line, NotReached, Request, exchange, safe_url
from . import statements
from .backend import Batch, Condition, Query
from .postgres_words import IN_THE_WAY, NO_TABLES, refused

MAX_EXPORTED_BYTES = 256_000_000
_MAX_ANSWERED_BYTES = 64_000_000
_COUNTED = {"Prefer": "count=exact"}
_NO_MORE_ROWS = 416
"""PostgREST's answer to an offset beyond the last row."""


class SupabaseBackend:
    """A project at Supabase. Every call is one request; changes are one remote procedure."""

    name = "supabase"
    copy_format = "json"

    def __init__(self, url: str, service_key: str, *, timeout_seconds: float = 20.0) -> None:
        """Raises `ToolBroke` when address or key cannot be used."""
        parts = safe_url("SUPABASE_URL", url)
        if not service_key.isascii() or not service_key.isprintable() or " " in service_key:
            raise ToolBroke(
                "SUPABASE_SERVICE_ROLE_KEY contains characters that no key has; correct it"
            )
        self._base = f"{parts.scheme}://{parts.netloc}{parts.path.rstrip('/')}/rest/v1"
        self._headers = {
            "apikey": service_key,
            "Authorization": f"Bearer {service_key}",
            "Accept": "application/json",
        }
        self._timeout_seconds = timeout_seconds

    def select(self, query: Query) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = []
        total = 1
        # A project gives no more rows in one answer than it is set to, whatever is asked for.
        while len(found) < min(total, query.limit or total):
            page, total = self._page(query, len(found))
            found += page
            if not page:
                break
        return found

    def _page(self, query: Query, offset: int) -> tuple[list[dict[str, Any]], int]:
        """Rows from `offset` on, and how many there are in all."""
        way = "desc" if query.descending else "asc"
        asked = [
            ("select", ",".join(query.table.columns)),
            *(_filter(condition) for condition in query.conditions),
            ("order", ",".join(f"{name}.{way}" for name in query.order_columns)),
            ("offset", str(offset)),
        ]
        if query.limit is not None:
            asked.append(("limit", str(query.limit - offset)))
        answer = self._ask("GET", f"{query.table.name}?{_encoded(asked)}", headers=_COUNTED)
        page = _json_of(answer)
        if not isinstance(page, list) or not all(isinstance(row, dict) for row in page):
            raise ToolBroke("Supabase did not answer with a list of rows")
        return page, _total(answer)

    def count(self, query: Query) -> int:
        asked = [
            ("select", query.table.key),
            *(_filter(condition) for condition in query.conditions),
            ("limit", "1"),
        ]
        return _total(self._ask("GET", f"{query.table.name}?{_encoded(asked)}", headers=_COUNTED))

    def apply(self, batch: Batch) -> dict[str, Any]:
        given = {
            "p_key": batch.key,
            "p_tool": batch.tool,
            "p_now": batch.now,
            "p_changes": [step.as_json() for step in batch.changes],
            "p_result": batch.result,
        }
        result = _json_of(self._ask("POST", "rpc/roofing_apply", given))
        if not isinstance(result, dict):
            raise ToolBroke("Supabase did not answer a change with a result")
        return result

    def migrations(self) -> list[str]:
        asked = _encoded([("select", "name"), ("order", "name.asc")])
        return [row["name"] for row in _json_of(self._ask("GET", f"roofing_migrations?{asked}"))]

    def copy_to(self, file: Path) -> None:
        answer = self._ask("POST", "rpc/roofing_export", {}, most_bytes=MAX_EXPORTED_BYTES)
        everything = _json_of(answer)
        file.write_text(json.dumps(everything, indent=1, sort_keys=True), encoding="utf-8")

    def _ask(
        self,
        method: str,
        path: str,
        given: Any = None,
        *,
        headers: dict[str, str] | None = None,
        most_bytes: int = _MAX_ANSWERED_BYTES,
    ) -> Answer:
        body = None if given is None else json.dumps(given).encode()
        typed = {} if body is None else {"Content-Type": "application/json"}
        sent = {**self._headers, **typed, **(headers or {})}
        request = Request(method, f"{self._base}/{path}", sent, body, most_bytes)
        try:
            with Line(self._timeout_seconds) as line:
                answer = exchange(request, line)
        except NotReached as error:
            raise ToolBroke(f"Supabase: {error}; check SUPABASE_URL, then try again") from None
        except AnswerLost as error:
            raise ToolBroke(
                f"Supabase: {error}; try again: a repeated call is executed only once"
            ) from None
        if answer.status == _NO_MORE_ROWS:
            return Answer(200, answer.headers, b"[]")
        if not 200 <= answer.status < 300:
            raise _refusal(answer)
        return answer


def _filter(condition: Condition) -> tuple[str, str]:
    match condition.operator:
        case "null":
            return condition.column, "is.null"
        case "in":
            return condition.column, f"in.({','.join(_quoted(item) for item in condition.value)})"
        case "contains":
            # PostgREST reads * as %, and has no escape for it: any one character comes nearest.
            pattern = statements.escaped_pattern(condition.value).replace("*", "_")
            return condition.column, f"ilike.*{pattern}*"
        case "=":
            return condition.column, f"eq.{condition.value}"
        case ">=":
            return condition.column, f"gte.{condition.value}"
        case "<=":
            return condition.column, f"lte.{condition.value}"


def _quoted(value: Any) -> str:
    escaped = str(value).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _encoded(pairs: list[tuple[str, str]]) -> str:
    return urlencode(pairs, quote_via=quote)


def _total(answer: Answer) -> int:
    total = re.search(r"/(\d+)$", answer.headers.get("Content-Range", ""))
    if total is None:
        raise ToolBroke("Supabase did not say how many rows there are")
    return int(total[1])


def _json_of(answer: Answer) -> Any:
    try:
        return json.loads(answer.body)
    except (ValueError, RecursionError):
        raise ToolBroke("Supabase did not answer with JSON; try again") from None


def _refusal(answer: Answer) -> ToolBroke:
    try:
        payload = json.loads(answer.body)
    except (ValueError, RecursionError):
        payload = None
    if not isinstance(payload, dict):
        payload = {}
    code, message = str(payload.get("code") or ""), str(payload.get("message") or "")[:300]
    if answer.status == 409 and not code:
        code = "PT409"  # PostgREST before version 10 keeps codes of this kind to itself
    if answer.status in (401, 403):
        return ToolBroke(
            "Supabase does not accept the key; check SUPABASE_SERVICE_ROLE_KEY (it must be the "
            "project's service key)"
        )
    if code in NO_TABLES:
        return ToolBroke(
            "the Supabase project lacks some roofing tables: in its SQL editor, run the files of the "
            "pack's folder migrations/postgresql that have not been run yet, in order"
        )
    if not code or (answer.status >= 500 and code not in ("57014", *IN_THE_WAY)):
        return ToolBroke(
            f"Supabase answered with HTTP {answer.status}; try again: a repeated call is executed "
            "only once"
        )
    return refused(code, message, str(payload.get("details") or ""), message)

"""Messages for PostgreSQL's refusals: the same for the driver and for REST."""

from __future__ import annotations

import json
from typing import Any

from podium.core.errors import ToolBroke

from .changes import Conflict, row_changed, row_missing, rule_broken

_RULES = {"23503": "foreign", "23505": "unique", "23514": "check", "23502": "null"}

NO_TABLES = {"42P01", "42703", "42883", "PGRST202", "PGRST205"}
"""SQLSTATEs, and PostgREST's own codes, for a table, column or function that is not there."""

IN_THE_WAY = ("40P01", "40001")
"""SQLSTATEs: two transactions waited for each other, or saw what the other changed."""

_AWAY = ("08", "57P", "53")
"""Starts of SQLSTATEs: the connection broke, the server is going down or out of something."""


def refused(code: str, message: str, detail: str, reason: str) -> ToolBroke:
    """The error to raise for a SQLSTATE; `reason` is what there is to say when it has none."""
    if code == "PT409":
        return _conflict(detail) or ToolBroke(f"the database rejected the change: {message}")
    if code in _RULES:
        return rule_broken(_RULES[code])
    if code in NO_TABLES:
        return ToolBroke(f"the roofing tables are missing or out of date ({message or reason})")
    if code in IN_THE_WAY:
        return Conflict(
            "two changes at the same time were in conflict; nothing was changed: try again"
        )
    if code == "57014":
        return ToolBroke("the database took too long; nothing was changed: try again")
    if not code or code.startswith(_AWAY):
        return ToolBroke(
            f"the roofing database cannot be reached ({reason}); check ROOFING_DATABASE_URL and "
            "the server, then try again: a repeated call is executed only once"
        )
    return ToolBroke(f"the roofing database rejected the request ({code}): {message or reason}")


def _conflict(detail: str) -> ToolBroke | None:
    try:
        payload: dict[str, Any] = json.loads(detail)
        table, row_id = payload["table"], payload["id"]
        if "column" not in payload:
            return row_missing(table, row_id)
        return row_changed(table, row_id, payload["column"], payload["found"], payload["expected"])
    except (ValueError, KeyError, TypeError):
        return None

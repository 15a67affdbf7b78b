"""Compare the records with those of the time of planning, which people approved.

A plan names a quote, an invoice or a job; to whom a message goes and what it says is looked up when it
is sent. So whatever decides that must not have been changed by others in between.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC
from typing import Any

from podium.core.errors import ToolBroke
from podium.tools.packs import PackScope

from ..database import Between, Database
from .records import Row

_CONTACT = {"name", "phone", "email"}
_MAX_COUNT = 10_000
_PLAN_AGAIN = "nothing was sent: check it, then plan this again"


async def must_be_as_planned(
    db: Database, scope: PackScope, lead: Row, **launch_spec: list[Row]
) -> None:
    """Raises `ToolBroke` when somebody changed the lead's contact or a paper after the plan was made.

    `papers` are `quote` or `invoice`, each with the rows that make it up, its own first. All rows must
    have been read before: a change that comes later than this look is in none of them. What the plan's
    own run did was a part of the plan. Without a plan there is nothing to compare with.
    """
    if scope.planned_at is None:
        return
    # In the form of the rows' own moments, which sort as text.
    since = scope.planned_at.astimezone(UTC).isoformat(timespec="microseconds")
    found = await db.rows("performed", {"created_at": Between(scope.planned_at)}, limit=_MAX_COUNT)
    if len(found) == _MAX_COUNT:
        raise ToolBroke(f"too much was changed after this was planned; {_PLAN_AGAIN}")
    later = [call for call in found if call["created_at"] > since]
    own = scope.key.partition(":")[0] + ":"
    for call in later:
        if not call["key"].startswith(own) and (what := _decided_by(call, lead, launch_spec)):
            raise ToolBroke(
                f"{what} was changed by {call['tool']} after this was planned; {_PLAN_AGAIN}"
            )
    known = {call["created_at"] for call in later}
    for what, row in _named(lead, launch_spec):
        if row["updated_at"] > since and row["updated_at"] not in known:
            raise ToolBroke(f"{what} was changed after this was planned; {_PLAN_AGAIN}")


def _decided_by(call: Row, lead: Row, launch_spec: dict[str, list[Row]]) -> str:
    """Return what the call changed among the values that decide the message; empty if nothing."""
    result: dict[str, Any] = call["result"]
    if call["tool"] == "leads.update" and result.get("lead_id") == lead["id"]:
        return f"lead {lead['id']!r}" if _CONTACT & set(result.get("changed", ())) else ""
    for name, rows in launch_spec.items():
        # A job is made of a quote, and a quote is sent, without a change to it.
        if call["tool"].startswith(f"{name}.") and result.get(f"{name}_id") == rows[0]["id"]:
            return f"{name} {rows[0]['id']!r}"
    return ""


def _named(lead: Row, launch_spec: dict[str, list[Row]]) -> Iterator[tuple[str, Row]]:
    yield f"lead {lead['id']!r}", lead
    for name, rows in launch_spec.items():
        yield from ((f"{name} {rows[0]['id']!r}", row) for row in rows)

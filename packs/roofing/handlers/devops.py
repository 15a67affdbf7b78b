"""The system itself: is it well, and copies of its records."""

from __future__ import annotations

from typing import Any

from podium.core.errors import ToolBroke
from podium.tools.packs import PackScope

from .. import database
from ..database import Database, Insert, Update, health, new_id, open_database, take_snapshot
from .records import Arguments, Done, looking, must_be, perform_once, recorded, shown, the

_MANY = 200


async def health_check(arguments: Arguments, scope: PackScope) -> dict[str, Any]:
    """`healthy` is False when a part is set up by half. Raises `ToolBroke` when nothing works."""
    async with open_database(scope) as db:
        health_report = await health(db)
    if not health_report["reachable"]:
        raise ToolBroke(f"the system does not work: {health_report['problem']}")
    parts = {
        "mail": _configured(scope, "ROOFING_SMTP_HOST", "ROOFING_SMTP_FROM"),
        "sms": _configured(scope, "ROOFING_SMS_ACCOUNT", "ROOFING_SMS_TOKEN", "ROOFING_SMS_FROM"),
        "reviews": _configured(scope, "ROOFING_REVIEW_URL"),
    }
    healthy = not any(part["set"] and part["missing"] for part in parts.values())
    return {
        "healthy": healthy,
        "backend": health_report["backend"],
        "checks": {"database": health_report, **parts},
    }


def _configured(scope: PackScope, *names: str) -> dict[str, Any]:
    """Only names: values may be secret."""
    given = [name for name in names if scope.settings.get(name)]
    missing = [name for name in names if name not in given]
    return {"configured": not missing, "set": given, "missing": missing}


@recorded
async def create_snapshot(arguments: Arguments, scope: PackScope, db: Database) -> Done:
    snapshot_id = new_id("snapshot", scope.key)
    copy = await take_snapshot(db, scope, snapshot_id)
    facts = {"file_name": copy.file_name, "sha256": copy.sha256, "bytes": copy.bytes}
    row = {"id": snapshot_id, "label": arguments.get("label"), "status": "kept", **facts}
    result = {"snapshot_id": snapshot_id, **facts, "undo": {"snapshot_id": snapshot_id}}
    return Done([Insert("snapshots", row)], result)


async def remove_snapshot(arguments: Arguments, scope: PackScope) -> dict[str, Any]:
    """The row first: a repeated call finds it removed, and deletes what a crash left."""

    async def decide() -> Done:
        snapshot = await the(db, "snapshots", arguments["snapshot_id"])
        must_be(snapshot, "snapshot", ("kept",), "it is already removed")
        change = Update("snapshots", snapshot["id"], {"status": "removed"}, {"status": "kept"})
        return Done([change], {"snapshot_id": snapshot["id"], "status": "removed"})

    async with open_database(scope) as db:
        result = await perform_once(db, scope, decide)
        snapshot = await the(db, "snapshots", arguments["snapshot_id"])
        await database.remove_snapshot(scope, snapshot["file_name"])
        return result


@looking
async def list_snapshots(arguments: Arguments, scope: PackScope, db: Database) -> dict[str, Any]:
    found = await db.rows("snapshots", {"status": "kept"}, descending=True, limit=_MANY)
    return {"count": len(found), "snapshots": [shown(row) for row in found]}

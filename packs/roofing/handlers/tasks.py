"""Tasks: what has to be done, by whom and until when."""

from __future__ import annotations

from typing import Any

from podium.tools.packs import PackScope

from ..database import Database, Insert, Update, new_id
from .days import upcoming
from .records import Arguments, Done, looking, must_be, must_stand, recorded, shown, the

_MANY = 200


@recorded
async def create(arguments: Arguments, scope: PackScope, db: Database) -> Done:
    if "lead_id" in arguments:
        await the(db, "leads", arguments["lead_id"])
    if "due" in arguments:
        upcoming(arguments["due"], "due", scope)
    row = {"id": new_id("task", scope.key), "status": "open", **arguments}
    result = {
        "task_id": row["id"],
        "title": row["title"],
        "due": row.get("due"),
        "assignee": row.get("assignee"),
        "status": "open",
        "undo": {"task_id": row["id"]},
    }
    return Done([Insert("tasks", row)], result)


@recorded
async def complete(arguments: Arguments, scope: PackScope, db: Database) -> Done:
    return await _moved(arguments, db, ("open",), "done", {"completed_at": scope.now})


@recorded
async def cancel(arguments: Arguments, scope: PackScope, db: Database) -> Done:
    return await _moved(arguments, db, ("open",), "cancelled", {})


@recorded
async def reopen(arguments: Arguments, scope: PackScope, db: Database) -> Done:
    return await _moved(arguments, db, ("done", "cancelled"), "open", {"completed_at": None})


async def _moved(
    arguments: Arguments, db: Database, allowed: tuple[str, ...], status: str, more: dict[str, Any]
) -> Done:
    task = await the(db, "tasks", arguments["task_id"])
    must_be(task, "task", allowed, "nothing to do")
    must_stand("tasks", task, arguments)
    change = Update("tasks", task["id"], {"status": status, **more}, {"status": task["status"]})
    result = {"task_id": task["id"], "title": task["title"], "status": status}
    undo = {"task_id": task["id"], "expected": {"status": status}}
    return Done([change], {**result, "undo": undo} if status != "open" else result)


@recorded
async def assign(arguments: Arguments, scope: PackScope, db: Database) -> Done:
    task = await the(db, "tasks", arguments["task_id"])
    must_be(task, "task", ("open",), "reopen it with os.reopen_task first")
    must_stand("tasks", task, arguments)
    assignee, before = arguments["assignee"] or None, task["assignee"]
    undo = {"assignee": before or "", "expected": {"assignee": assignee or ""}}
    result = {
        "task_id": task["id"],
        "assignee": assignee,
        "assignee_before": before,
        "undo": {"task_id": task["id"], **undo},
    }
    return Done([Update("tasks", task["id"], {"assignee": assignee}, {"assignee": before})], result)


@looking
async def list_tasks(arguments: Arguments, scope: PackScope, db: Database) -> dict[str, Any]:
    """Those that are due first come first; those without a day come last."""
    status = arguments.get("status", "open")
    where = {} if status == "all" else {"status": status}
    found = await db.rows("tasks", where, limit=1000)
    if "assignee" in arguments:
        wanted = arguments["assignee"].casefold()
        found = [task for task in found if wanted in (task["assignee"] or "").casefold()]
    found.sort(key=lambda task: (task["due"] is None, task["due"] or ""))
    return {"status": status, "count": len(found), "tasks": [shown(item) for item in found[:_MANY]]}

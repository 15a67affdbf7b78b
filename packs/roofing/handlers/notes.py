"""Notes: what somebody wanted to keep."""

from __future__ import annotations

from typing import Any

from podium.core.errors import ToolBroke
from podium.tools.packs import PackScope

from ..database import Contains, Database, Insert, Update, new_id
from .records import Arguments, Done, looking, recorded, shown, the

_MANY = 50


@recorded
async def create(arguments: Arguments, scope: PackScope, db: Database) -> Done:
    lead_id = arguments.get("lead_id")
    if lead_id:
        await the(db, "leads", lead_id)
    row = {"id": new_id("note", scope.key), "text": arguments["text"], "lead_id": lead_id}
    result = {
        "note_id": row["id"],
        "text": row["text"],
        "lead_id": lead_id,
        "undo": {"note_id": row["id"]},
    }
    return Done([Insert("notes", row)], result)


@recorded
async def remove(arguments: Arguments, scope: PackScope, db: Database) -> Done:
    note = await the(db, "notes", arguments["note_id"])
    if note["removed_at"] is not None:
        raise ToolBroke(f"note {note['id']!r} is already removed")
    again = {name: note[name] for name in ("text", "lead_id") if note[name]}
    change = Update("notes", note["id"], {"removed_at": scope.now}, {"removed_at": None})
    return Done([change], {"note_id": note["id"], "undo": again})


@looking
async def search(arguments: Arguments, scope: PackScope, db: Database) -> dict[str, Any]:
    """Newest first: notes with the whole query, then those with all of its words."""
    query = arguments["query"].strip()
    words = query.casefold().split()
    longest = max(words, key=len, default=query)
    where = {"text": Contains(longest), "removed_at": None}
    found = await db.rows("notes", where, descending=True, limit=1000)
    fitting = [note for note in found if all(word in note["text"].casefold() for word in words)]
    fitting.sort(key=lambda note: query.casefold() not in note["text"].casefold())
    return {"query": query, "count": len(fitting), "notes": [shown(n) for n in fitting[:_MANY]]}

"""The roofing business's records, kept in SQLite, PostgreSQL or Supabase.

    async with open_database(scope) as db:
        lead = await db.row("leads", lead_id)
        await db.apply(scope.key, [Update("leads", lead_id, {"stage": "won"})], result)

`schema.py` lists tables and columns; `migrations/` makes them.
"""

from .changes import (
    Between,
    Change,
    Conflict,
    Contains,
    Delete,
    Insert,
    Update,
    new_id,
)
from .database import Database
from .health import health
from .opening import open_database, read_row
from .schema import TABLES, Kind, Table
from .snapshots import Snapshot, remove_snapshot, take_snapshot

__all__ = [
    "TABLES",
    "Between",
    "Change",
    "Conflict",
    "Contains",
    "Database",
    "Delete",
    "Insert",
    "Kind",
    "Snapshot",
    "Table",
    "Update",
    "health",
    "new_id",
    "open_database",
    "read_row",
    "remove_snapshot",
    "take_snapshot",
]

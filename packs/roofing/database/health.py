"""Health of the database: reachable, migrated, and its row counts."""

from __future__ import annotations

from typing import Any

from podium.core.errors import ToolBroke

from .database import Database
from .migrating import Dialect, lacking, migrations_of


async def health(db: Database) -> dict[str, Any]:
    """Backend, whether it can be reached, its migrations and the number of rows of each table.

    What cannot be reached, or lacks a migration, is said under `problem`, not raised.
    """
    payload: dict[str, Any] = {
        "backend": db.backend,
        "reachable": False,
        "migrations": [],
        "counts": {},
    }
    try:
        payload["migrations"] = await db.migrations()
        payload["counts"] = await db.counts()
        missing = lacking(migrations_of(_dialect(db)), payload["migrations"])
    except ToolBroke as error:
        return {**payload, "problem": str(error)}
    if missing:
        names = ", ".join(migration.name for migration in missing)
        problem = f"its tables are out of date: run {names} of the pack's migrations in it"
        return {**payload, "problem": f"the {db.backend} database cannot be used, {problem}"}
    return {**payload, "reachable": True}


def _dialect(db: Database) -> Dialect:
    return "sqlite" if db.backend == "sqlite" else "postgresql"

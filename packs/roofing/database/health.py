"""Whether the database is there and what is in it."""

from __future__ import annotations

from typing import Any

from podium.domain.errors import ToolBroke

from .database import Database


async def health(db: Database) -> dict[str, Any]:
    """Backend, whether it can be reached, its migrations and the number of rows of each table.

    What cannot be reached is said under `problem`, not raised.
    """
    told: dict[str, Any] = {
        "backend": db.backend,
        "reachable": False,
        "migrations": [],
        "counts": {},
    }
    try:
        told["migrations"] = await db.migrations()
        told["counts"] = await db.counts()
    except ToolBroke as error:
        return {**told, "problem": str(error)}
    return {**told, "reachable": True}

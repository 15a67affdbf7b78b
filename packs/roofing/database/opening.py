"""Open the database that the settings name, for one call."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from podium.core.errors import ToolBroke

from .backend import Backend
from .database import Database
from .postgresql import PostgresBackend
from .preparing import query_of
from .schema import table_named
from .sqlite import SqliteBackend
from .supabase import SupabaseBackend
from .values import plain

if TYPE_CHECKING:
    from podium.tools.packs import PackScope

FILE_NAME = "roofing.db"


@asynccontextmanager
async def open_database(scope: PackScope) -> AsyncIterator[Database]:
    """The database that the settings name, its tables made where they were not there yet.

    Raises `ToolBroke` when it cannot be used.
    """
    backend = backend_of(scope)
    if isinstance(backend, SqliteBackend | PostgresBackend):
        await asyncio.to_thread(backend.prepare)
    yield Database(backend, tool=scope.tool, now=scope.now)


async def read_row(
    table: str, where: dict[str, Any], columns: tuple[str, ...], scope: PackScope
) -> dict[str, Any] | None:
    """The first row that fits `where`, or None, read in a way that cannot change anything.

    `columns` names what is wanted of it; empty: everything.
    """
    wanted = columns or tuple(table_named(table).columns)
    for column in wanted:
        table_named(table).column(column)
    query = query_of(table, where, limit=1)
    backend = backend_of(scope, read_only=True)
    if query.is_empty or (backend.name == "sqlite" and not _file(scope).exists()):
        return None
    found = await asyncio.to_thread(backend.select, query)
    if not found:
        return None
    row = plain(query.table, found[0])
    return {column: row[column] for column in wanted}


def backend_of(scope: PackScope, *, read_only: bool = False) -> Backend:
    """Supabase when it is named, else PostgreSQL when it is, else a SQLite file of the pack's own."""
    # A backend gives up before the call does, so that its own words are heard.
    limit = max(1.0, scope.timeout_seconds * 0.8)
    supabase = scope.settings.get("SUPABASE_URL", "")
    service_key = scope.settings.get("SUPABASE_SERVICE_ROLE_KEY", "")
    if bool(supabase) != bool(service_key):
        lacks = "SUPABASE_SERVICE_ROLE_KEY" if supabase else "SUPABASE_URL"
        raise ToolBroke(f"Supabase needs both its settings: set {lacks}, or unset the other")
    if supabase:
        return SupabaseBackend(supabase, service_key, timeout_seconds=limit)
    if url := scope.settings.get("ROOFING_DATABASE_URL", ""):
        if not url.startswith(("postgresql://", "postgres://")):
            raise ToolBroke(
                "ROOFING_DATABASE_URL must begin with postgresql://; unset it for SQLite"
            )
        return PostgresBackend(url, timeout_seconds=limit, read_only=read_only)
    return SqliteBackend(_file(scope), busy_seconds=limit, read_only=read_only)


def _file(scope: PackScope) -> Path:
    return scope.state / FILE_NAME

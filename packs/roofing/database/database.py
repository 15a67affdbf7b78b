"""The database as tools see it: rows out, changes in, each under the key of its call."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from podium.core.errors import ToolBroke

from .backend import Backend, Batch
from .changes import Change
from .preparing import prepared, query_of
from .schema import TABLES, table_named
from .values import plain, stored, timestamp

MAX_ROWS = 10_000


class Database:
    """One of the three backends, spoken to from a thread. Every call stands alone."""

    def __init__(self, backend: Backend, *, tool: str, now: datetime) -> None:
        """`tool` and `now` are recorded with what is changed."""
        self._backend = backend
        self._tool = tool
        self._now = timestamp(now)

    @property
    def backend(self) -> str:
        """`sqlite`, `postgresql` or `supabase`."""
        return self._backend.name

    async def rows(
        self,
        table: str,
        where: Mapping[str, Any] | None = None,
        order: str = "created_at",
        descending: bool = False,
        limit: int = 200,
    ) -> list[dict[str, Any]]:
        """Rows that fit all of `where`, at most `limit` (and never more than 10,000).

        A value of `where` is what the column must be (None: empty), a list of what it may be,
        `Contains` or `Between`.
        """
        if not 1 <= limit <= MAX_ROWS:
            raise ToolBroke(f"limit must be from 1 to {MAX_ROWS}, not {limit}")
        query = query_of(table, where or {}, order=order, descending=descending, limit=limit)
        if query.is_empty:
            return []
        found = await asyncio.to_thread(self._backend.select, query)
        return [plain(query.table, row) for row in found]

    async def row(self, table: str, id: str) -> dict[str, Any] | None:
        """The row with this id (`performed`: with this key), or None."""
        key = table_named(table).key
        found = await self.rows(table, {key: id}, order=key, limit=1)
        return found[0] if found else None

    async def count(self, table: str, where: Mapping[str, Any] | None = None) -> int:
        """Count the rows that fit `where`, which is as in `rows`."""
        query = query_of(table, where or {})
        return 0 if query.is_empty else await asyncio.to_thread(self._backend.count, query)

    async def counts(self) -> dict[str, int]:
        """Count the rows of each table."""
        return {name: await self.count(name) for name in TABLES}

    async def apply(
        self, key: str, changes: Iterable[Change], result: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Make all changes and record `result` under `key`, in one transaction; gives the result.

        When the key was applied before, nothing is done and the result of then is given. Raises
        `Conflict` when a change does not fit what is there; then nothing was changed.
        """
        performed = table_named("performed")
        batch = Batch(
            key=str(stored(performed, "key", key)),
            tool=self._tool,
            now=self._now,
            changes=prepared(changes, self._now),
            result=stored(performed, "result", dict(result)),
        )
        return await asyncio.to_thread(self._backend.apply, batch)

    async def performed(self, key: str) -> dict[str, Any] | None:
        """Return the result recorded under this key, or None."""
        row = await self.row("performed", key)
        return None if row is None else dict(row["result"])

    async def migrations(self) -> list[str]:
        """Names of the migrations that the database has, in order."""
        return await asyncio.to_thread(self._backend.migrations)

    async def copy_to(self, file: Path) -> None:
        """Write the whole database, as one moment had it, into a new file."""
        await asyncio.to_thread(self._backend.copy_to, file)

    @property
    def copy_format(self) -> str:
        """`db` (a SQLite file) or `json`."""
        return self._backend.copy_format

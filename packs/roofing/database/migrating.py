"""The migrations that the pack brings, and which of them a database still lacks."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from podium.core.errors import ToolBroke

Dialect = Literal["sqlite", "postgresql"]


@dataclass(frozen=True)
class Migration:
    """One numbered file. It is applied whole or not at all, once."""

    name: str
    script: str

    def statements(self) -> Iterator[str]:
        """Its statements, as SQLite sees them."""
        pending = ""
        for line in self.script.splitlines(keepends=True):
            pending += line
            if sqlite3.complete_statement(pending):
                yield pending
                pending = ""


def migrations_of(dialect: Dialect, folder: Path | None = None) -> list[Migration]:
    """In the order of their numbers."""
    place = folder or Path(__file__).parents[1] / "migrations"
    files = sorted((place / dialect).glob("[0-9]*.sql"))
    return [Migration(file.stem, file.read_text(encoding="utf-8")) for file in files]


def lacking(known: Sequence[Migration], applied: Sequence[str]) -> list[Migration]:
    """Those to be applied. Raises `ToolBroke` when the database is ahead of this pack."""
    names = {migration.name for migration in known}
    if ahead := sorted(set(applied) - names):
        raise ToolBroke(
            f"the roofing database was made by a newer roofing pack (it has {', '.join(ahead)}); "
            "update the pack"
        )
    return [migration for migration in known if migration.name not in set(applied)]

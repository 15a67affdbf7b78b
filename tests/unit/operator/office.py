"""A roofing office with records in its database, and the operator it talks to."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass, replace
from pathlib import Path

from podium.app.app import Podium, open_podium
from podium.app.packs import open_pack
from podium.config.configuration import load_configuration
from podium.core.decisions import Receipt, Tier
from podium.core.packs import Pack
from podium.jobs.operator import Operator
from podium.jobs.operator.composition import OperatorSetup, build_operator
from podium.jobs.operator.judgement.tiers import highest, tool_arithmetic
from podium.jobs.operator.models import Reading
from podium.jobs.operator.testing import FakeClassifier
from tests.unit.operator.messages import INSPECTION, INVOICE, JOB, LEAD, QUOTE

THEN = "2026-11-01T00:00:00+00:00"
_RECORDS: tuple[tuple[str, dict[str, object]], ...] = (
    ("leads", {"id": LEAD, "name": "Sarah Nguyen", "phone": "+61400123456", "email": "sarah@example.com"}),
    ("inspections", {"id": INSPECTION, "lead_id": LEAD, "site_address": "12 Smith St, Clayton"}),
    ("media_assets", {
        "id": "asset_12ab34cd56", "inspection_id": INSPECTION, "file_name": "ridge.jpg", "media_type": "image/jpeg",
        "bytes": 1, "sha256": "0" * 64, "stored_as": "00/00/0.jpg",
    }),
    ("quotes", {"id": QUOTE, "lead_id": LEAD, "total_cents": 120_000}),
    ("quote_lines", {
        "id": "line_aa01bb02cc", "quote_id": QUOTE, "description": "ridge capping", "unit_price_cents": 120_000,
        "total_cents": 120_000,
    }),
    ("quotes", {"id": "Q-88", "lead_id": LEAD, "total_cents": 90_000, "status": "final"}),
    ("quotes", {"id": "Q-90", "lead_id": LEAD, "total_cents": 90_000, "status": "accepted"}),
    ("jobs", {"id": JOB, "quote_id": "Q-90", "lead_id": LEAD, "status": "started"}),
    ("invoices", {"id": INVOICE, "job_id": JOB, "lead_id": LEAD, "amount_cents": 90_000}),
)  # fmt: skip
GUARDED = (
    "SELECT * FROM quotes",
    "SELECT * FROM quote_lines",
    "SELECT * FROM jobs",
    "SELECT * FROM invoices",
    "SELECT * FROM payments",
    "SELECT * FROM messages",
    f"SELECT status FROM inspections WHERE id = '{INSPECTION}'",
    "SELECT id, status FROM media_assets WHERE status <> 'stored'",
)
"""What only calls that need approval can change."""


@dataclass(frozen=True)
class Office:
    """An operator in a project of its own."""

    podium: Podium
    operator: Operator
    pack: Pack
    database: Path

    def tier(self, tool: str) -> Tier:
        """By the registry and its tables alone."""
        found = self.pack.tool(tool)
        return highest(tool_arithmetic(found, {}, self.pack)) if found else Tier.T4

    def performed(self) -> set[str]:
        """The tools that changed anything, by the database's own word."""
        with closing(sqlite3.connect(self.database)) as database:
            return {tool for (tool,) in database.execute("SELECT DISTINCT tool FROM performed")}

    def guarded(self) -> list[list[tuple[object, ...]]]:
        """Every row that nothing may change without approval."""
        with closing(sqlite3.connect(self.database)) as database:
            return [database.execute(query).fetchall() for query in GUARDED]

    def misled(self, reading: Reading, message: str) -> Operator:
        """The operator as it is with a model that reads this in the message."""
        cli = replace(self.operator._deps, classifier=FakeClassifier({message: reading}))
        return Operator(cli)

    async def receipts(self) -> list[Receipt]:
        store = await self.podium.store()
        return await store.read(lambda view: view.receipts())


@asynccontextmanager
async def open_office(folder: Path) -> AsyncIterator[Office]:
    """An office with one record of each kind."""
    project, home = folder / "project", folder / "home"
    project.mkdir()
    environ = {"HOME": str(home), "PODIUM_HOME": str(home), "PODIUM_USER": "ann"}
    configuration = load_configuration(environ, project=project)
    async with open_podium(configuration, environ) as podium:
        operator = await build_operator(
            podium, OperatorSetup(pack="roofing", classifier="embedded")
        )
        database = podium.folders.state / "packs" / "roofing" / "roofing.db"
        # The first look makes the tables.
        await operator.process("os.health_check", "execute")
        with closing(sqlite3.connect(database)) as records:
            for table, record in _RECORDS:
                _insert(records, table, record)
            records.commit()
        yield Office(podium, operator, open_pack(podium, "roofing"), database)


def _insert(database: sqlite3.Connection, table: str, record: dict[str, object]) -> None:
    row = {**record, "created_at": THEN, "updated_at": THEN}
    marks = ", ".join("?" for _ in row)
    database.execute(
        f"INSERT INTO {table} ({', '.join(row)}) VALUES ({marks})", tuple(row.values())
    )

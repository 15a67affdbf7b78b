"""A roofing office for tests: the shipped pack's tools, each performed twice under one key."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from podium.core.decisions import Call, CallOutcome, PlanPosition
from podium.core.errors import BadInput, ToolBroke
from podium.core.packs import Pack
from podium.testing import FakeConfinementProvider, FakeLauncher, FixedClock
from podium.tools import Tool, ToolScope
from podium.tools.packs import load_pack, pack_tools
from tests.integration.packs.roofing.sms_gateway import ACCOUNT, TOKEN, Gateway
from tests.integration.packs.roofing.smtp_server import SmtpServer
from tests.unit.packs.roofing.roofing_harness import FOLDER, NOW

SARAH = {"name": "Sarah Bell", "phone": "+61400123456", "suburb": "Clayton"}


def _no_secret(name: str) -> str:
    raise BadInput(f"no secret {name!r}")


@dataclass
class Office:
    """One business on a SQLite file. `now`, `run_id` and `planned_at` may be set between calls."""

    pack: Pack
    state: Path
    tools: dict[str, Tool]
    now: datetime = NOW
    calls: int = field(default=0)
    run_id: str = "run_1"
    planned_at: datetime | None = None

    async def do(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """Perform a call that must succeed, then the same again, which must change nothing."""
        self.calls += 1
        first = await self._perform(tool, arguments)
        assert first.ok, first.error
        before = self.content()
        second = await self._perform(tool, arguments)
        assert self.content() == before
        assert _fields(second) == _fields(first)
        return dict(first.result or {})

    async def once(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """Perform a call that must succeed, for what comes after it."""
        self.calls += 1
        outcome = await self._perform(tool, arguments)
        assert outcome.ok, outcome.error
        return dict(outcome.result or {})

    async def refused(self, tool: str, **arguments: Any) -> str:
        """Message of the tool when it must refuse and change nothing."""
        before = self.content()
        words = await self.broken(tool, **arguments)
        assert self.content() == before
        return words

    async def broken(self, tool: str, *, again: bool = False, **arguments: Any) -> str:
        """Message of the tool when it fails. `again`: under the key of the call before."""
        self.calls += 0 if again else 1
        with pytest.raises(ToolBroke) as failure:
            await self._perform(tool, arguments)
        return str(failure.value)

    async def _perform(self, tool: str, arguments: dict[str, Any]) -> CallOutcome:
        model = self.pack.tool(tool)
        assert model is not None, tool
        Draft202012Validator(model.input_schema).validate(arguments)
        step = f"call#{self.calls}"
        call = Call(
            run_id=self.run_id,
            step_key=step,
            index=0,
            tool=tool,
            arguments=arguments,
            plan=PlanPosition(step=1, planned_at=self.planned_at),
        )
        scope = ToolScope(
            call=call,
            root=self.state,
            launcher=FakeLauncher(),
            confinements=FakeConfinementProvider(),
            clock=FixedClock(self.now),
            timeout_seconds=30.0,
            resolve_secret=_no_secret,
        )
        outcome = await self.tools[tool].handler(arguments, scope)
        assert isinstance(outcome, CallOutcome)
        return outcome

    async def undo(self, tool: str, result: Mapping[str, Any]) -> dict[str, Any]:
        """Perform the tool that takes another one back, as its result says."""
        model = self.pack.tool(tool)
        assert model is not None
        assert model.undo is not None
        return await self.do(model.undo, **result["undo"])

    def content(self) -> dict[str, list[tuple[Any, ...]]]:
        """Every row of every table."""
        file = self.state / "roofing.db"
        if not file.exists():
            return {}
        with sqlite3.connect(f"file:{file}?mode=ro", uri=True) as connection:
            names = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
            tables = sorted(str(row[0]) for row in names)
            found = {
                table: connection.execute(f"SELECT * FROM {table}").fetchall() for table in tables
            }
        connection.close()
        return found

    def row(self, table: str, id: str) -> dict[str, Any]:
        with sqlite3.connect(self.state / "roofing.db") as connection:
            connection.row_factory = sqlite3.Row
            found = connection.execute(f"SELECT * FROM {table} WHERE id = ?", (id,)).fetchone()
        connection.close()
        return dict(found)

    async def lead(self, **changes: Any) -> str:
        made = await self.once("leads.create", **{**SARAH, **changes})
        return str(made["lead_id"])

    async def quote(self, *, upto: str = "draft", lead_id: str = "") -> str:
        """A quote of 1,850 dollars: draft, final or accepted."""
        made = await self.once("quote.create", lead_id=lead_id or await self.lead())
        quote_id = str(made["quote_id"])
        await self.once(
            "quote.add_line", quote_id=quote_id, description="rebed ridge", unit_price=1850
        )
        if upto != "draft":
            await self.once("quote.finalize", quote_id=quote_id)
        if upto == "accepted":
            await self.once("quote.accept", quote_id=quote_id)
        return quote_id

    async def job(self, *, completed: bool = False, lead_id: str = "") -> str:
        made = await self.once(
            "job.create", quote_id=await self.quote(upto="accepted", lead_id=lead_id)
        )
        if completed:
            await self.once("job.complete", job_id=made["job_id"])
        return str(made["job_id"])

    async def invoice(self) -> str:
        """An open invoice of 1,850 dollars."""
        made = await self.once("invoice.create", job_id=await self.job(completed=True))
        return str(made["invoice_id"])


def _fields(outcome: CallOutcome) -> dict[str, Any]:
    """The result without its proof, which is looked up anew."""
    return {name: value for name, value in (outcome.result or {}).items() if name != "verification"}


@cache
def roofing() -> Pack:
    """The shipped pack. Checking it takes longer than most tests."""
    return load_pack(FOLDER)


def open_office(tmp_path: Path, settings: Mapping[str, str] | None = None) -> Office:
    pack = roofing()
    state = tmp_path / "roofing"
    tools = pack_tools(pack, settings=dict(settings or {}), state=state)
    return Office(pack, state, {tool.spec.name: tool for tool in tools})


REVIEWS = "https://reviews.example/clayton-roofing"


def sending_settings(server: SmtpServer, gateway: Gateway) -> dict[str, str]:
    """Those of an office whose messages go out to these two."""
    return {
        "ROOFING_SMTP_HOST": "127.0.0.1",
        "ROOFING_SMTP_PORT": str(server.port),
        "ROOFING_SMTP_FROM": "office@roofing.example",
        "ROOFING_SMTP_TLS": "none",
        "ROOFING_SMS_URL": gateway.url,
        "ROOFING_SMS_ACCOUNT": ACCOUNT,
        "ROOFING_SMS_TOKEN": TOKEN,
        "ROOFING_SMS_FROM": "+61488000111",
        "ROOFING_BUSINESS_NAME": "Clayton Roofing",
        "ROOFING_REVIEW_URL": REVIEWS,
    }

"""The revenue flow, lead → inspection → quote → job → payment → review, through toolbox and door."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from podium.core.decisions import Effect
from podium.tools.packs import pack_tools
from tests.integration.packs.roofing.office import roofing
from tests.integration.packs.roofing.postgrest import postgrest
from tests.integration.packs.roofing.smtp_server import SmtpServer, serving
from tests.integration.packs.roofing.test_database import run_migrations_by_hand
from tests.soaking import in_soak
from tests.unit.tools.toolbox_harness import Harness, always, make_harness


@pytest.fixture(params=["sqlite", *map(in_soak, ("postgresql", "supabase"))])
def database(request: pytest.FixtureRequest) -> Iterator[dict[str, str]]:
    """The settings that name a place for the records."""
    if request.param == "sqlite":
        yield {}
        return
    url = request.getfixturevalue("postgres_url")
    if request.param == "postgresql":
        yield {"ROOFING_DATABASE_URL": url}
        return
    run_migrations_by_hand(url)
    with postgrest(url) as project:
        yield {"SUPABASE_URL": project.url, "SUPABASE_SERVICE_ROLE_KEY": project.key}


def mailing(server: SmtpServer) -> dict[str, str]:
    return {
        "ROOFING_SMTP_HOST": "127.0.0.1",
        "ROOFING_SMTP_PORT": str(server.port),
        "ROOFING_SMTP_FROM": "office@roofing.example",
        "ROOFING_SMTP_TLS": "none",
        "ROOFING_REVIEW_URL": "https://reviews.example/us",
    }


async def use(harness: Harness, tool: str, **arguments: Any) -> dict[str, Any]:
    outcome = await harness.use(tool, **arguments)
    assert outcome.ok, (tool, outcome.error)
    return dict(outcome.result or {})


async def test_money_comes_of_a_phone_call_and_every_step_has_its_receipt(
    tmp_path: Path, database: dict[str, str]
) -> None:
    async with serving(SmtpServer()) as server:
        settings = {**mailing(server), **database}
        tools = pack_tools(roofing(), settings=settings, state=tmp_path / "state")
        harness = make_harness(tmp_path, tools, gate=always(Effect.ALLOW))
        lead = await use(
            harness,
            "leads.create",
            name="Sarah Bell",
            phone="+61400123456",
            suburb="Clayton",
            email="sarah@example.com",
        )
        lead_id = lead["lead_id"]
        inspection = await use(
            harness, "inspection.create", lead_id=lead_id, site_address="14 Banksia Court, Clayton"
        )
        inspection_id = inspection["inspection_id"]
        items = [{"label": "cracked ridge cap", "severity": "high"}]
        await use(harness, "inspection.add_items", inspection_id=inspection_id, items=items)
        await use(harness, "inspection.generate_scope_summary", inspection_id=inspection_id)
        await use(harness, "inspection.submit", inspection_id=inspection_id)
        quote = await use(harness, "quote.create", lead_id=lead_id, inspection_id=inspection_id)
        quote_id = quote["quote_id"]
        await use(
            harness, "quote.add_line", quote_id=quote_id, description="rebed ridge", unit_price=1850
        )
        await use(harness, "quote.finalize", quote_id=quote_id)
        await use(harness, "email.send_quote", quote_id=quote_id)
        await use(harness, "quote.accept", quote_id=quote_id)
        job = await use(harness, "job.create", quote_id=quote_id)
        job_id = job["job_id"]
        await use(harness, "job.schedule", job_id=job_id, date="2027-06-21", crew="Stavros")
        await use(harness, "job.start", job_id=job_id)
        await use(harness, "job.complete", job_id=job_id)
        invoice = await use(harness, "invoice.create", job_id=job_id)
        await use(harness, "email.send_invoice", invoice_id=invoice["invoice_id"])
        paid = await use(
            harness, "invoice.record_payment", invoice_id=invoice["invoice_id"], amount=1850
        )
        await use(harness, "comms.request_review", job_id=job_id)
        figures = await use(
            harness, "os.revenue_report", **{"from": "2026-01-01", "to": "2026-01-31"}
        )
        found = await use(harness, "leads.find", query="bell")
        await use(harness, "os.create_note", text="Paid on the day")
        notes = await use(harness, "os.search_notes", query="DAY paid")
        unpaid = await use(harness, "os.list_invoices", status="overdue")
        activity = await use(harness, "os.recent_activity", limit=5)
        snapshot = await use(harness, "os.create_snapshot")
    assert (paid["status"], figures["paid"], figures["outstanding"]) == ("paid", 1850.0, 0.0)
    assert (found["count"], notes["count"], unpaid["count"], activity["count"]) == (1, 1, 0, 5)
    assert snapshot["bytes"] > 0
    assert len(server.received) == 3
    receipts = await harness.receipts()
    assert len(receipts) == 25
    assert all(receipt.fields["verification"] is not None for receipt in receipts)


async def test_a_step_that_is_taken_too_early_fails_with_a_receipt_that_says_why(
    tmp_path: Path,
) -> None:
    tools = pack_tools(roofing(), settings={}, state=tmp_path / "state")
    harness = make_harness(tmp_path, tools, gate=always(Effect.ALLOW))
    lead = await use(harness, "leads.create", name="Tom", phone="+61411222333", suburb="Clayton")
    quote = await use(harness, "quote.create", lead_id=lead["lead_id"])
    outcome = await harness.use("quote.finalize", quote_id=quote["quote_id"])
    assert not outcome.ok
    assert "has no lines; add them with quote.add_line first" in outcome.error
    assert len(await harness.receipts()) == 3

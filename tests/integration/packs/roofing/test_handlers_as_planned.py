"""A yes is for the message as it stood when it was planned: to this person, with these words."""

from __future__ import annotations

import sqlite3
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.integration.packs.roofing.office import Office, open_office, sending_settings
from tests.integration.packs.roofing.sms_gateway import Gateway
from tests.integration.packs.roofing.smtp_server import SmtpServer
from tests.integration.packs.roofing.test_handlers_comms import character

PLAN_AGAIN = "after this was planned; nothing was sent: check it, then plan this again"


@pytest.fixture
def office(tmp_path: Path, server: SmtpServer, gateway: Gateway) -> Office:
    return open_office(tmp_path, sending_settings(server, gateway))


def a_plan_is_made(office: Office) -> None:
    """From here on, what `office` does comes after the plan of run_2."""
    office.planned_at = office.now
    later(office)


def later(office: Office) -> None:
    office.now += timedelta(minutes=1)


async def sent_by_the_plan(office: Office, tool: str, **arguments: Any) -> str:
    """Why the call of the plan's own run did not send; empty: it did."""
    later(office)
    office.run_id = "run_2"
    try:
        await office.once(tool, **arguments)
    except Exception as error:
        return str(error)
    finally:
        office.run_id = "run_1"
    return ""


@pytest.mark.sample(2)
@pytest.mark.parametrize(
    "change",
    [{"phone": "+61499000222"}, {"name": "Sarah Bell of Evil"}, {"email": "evil@example.com"}],
)
@pytest.mark.parametrize("channel", ["sms", "email"])
async def test_a_review_is_not_asked_of_somebody_who_was_put_in_after_the_plan(
    office: Office, server: SmtpServer, gateway: Gateway, channel: str, change: dict[str, str]
) -> None:
    lead_id = await office.lead(email="sarah@example.com")
    job_id = await office.job(completed=True, lead_id=lead_id)
    a_plan_is_made(office)
    await office.once("leads.update", lead_id=lead_id, **change)
    why = await sent_by_the_plan(office, "comms.request_review", job_id=job_id, channel=channel)
    assert why == f"lead {lead_id!r} was changed by leads.update {PLAN_AGAIN}"
    assert (server.received, gateway.asked, office.content()["messages"]) == ([], [], [])


async def test_a_change_of_the_contact_cannot_hide_behind_a_later_harmless_one(
    office: Office, server: SmtpServer
) -> None:
    lead_id = await office.lead(email="sarah@example.com")
    quote_id = await office.quote(upto="final", lead_id=lead_id)
    a_plan_is_made(office)
    await office.once("leads.update", lead_id=lead_id, email="evil@example.com")
    later(office)
    await office.once("leads.set_stage", lead_id=lead_id, stage="contacted")
    why = await sent_by_the_plan(office, "email.send_quote", quote_id=quote_id)
    assert f"lead {lead_id!r} was changed by leads.update" in why
    assert server.received == []


async def test_what_decides_neither_recipient_nor_words_may_change(
    office: Office, server: SmtpServer
) -> None:
    lead_id = await office.lead(email="sarah@example.com")
    quote_id = await office.quote(upto="final", lead_id=lead_id)
    other = await office.lead(name="Tom")
    a_plan_is_made(office)
    await office.once("leads.set_stage", lead_id=lead_id, stage="contacted")
    await office.once("leads.update", lead_id=lead_id, address="1 High St")
    await office.once("leads.update", lead_id=other, phone="+61499000222")
    assert await sent_by_the_plan(office, "email.send_quote", quote_id=quote_id) == ""
    assert character(server)[0] == "sarah@example.com"


async def test_a_quote_that_got_other_lines_after_the_plan_is_not_sent(
    office: Office, server: SmtpServer
) -> None:
    quote_id = await office.quote()
    a_plan_is_made(office)
    await office.once("quote.add_line", quote_id=quote_id, description="bribe", unit_price=9000)
    later(office)
    office.run_id = "run_2"
    await office.once("quote.finalize", quote_id=quote_id)
    why = await sent_by_the_plan(office, "email.send_quote", quote_id=quote_id, to="s@example.com")
    assert why == f"quote {quote_id!r} was changed by quote.add_line {PLAN_AGAIN}"
    assert server.received == []


async def test_an_invoice_that_was_paid_after_the_plan_is_not_sent(
    office: Office, server: SmtpServer
) -> None:
    invoice_id = await office.invoice()
    a_plan_is_made(office)
    await office.once("invoice.record_payment", invoice_id=invoice_id, amount=50)
    why = await sent_by_the_plan(
        office, "email.send_invoice", invoice_id=invoice_id, to="s@example.com"
    )
    assert why == f"invoice {invoice_id!r} was changed by invoice.record_payment {PLAN_AGAIN}"
    assert server.received == []


async def test_what_the_plan_itself_changed_was_planned(office: Office, server: SmtpServer) -> None:
    """As the skills do: finalize and send; complete, bill and send the bill."""
    lead_id = await office.lead()
    quote_id = await office.quote(lead_id=lead_id)
    a_plan_is_made(office)
    office.run_id = "run_2"
    await office.once("leads.update", lead_id=lead_id, email="sarah@example.com")
    later(office)
    await office.once("quote.finalize", quote_id=quote_id)
    assert await sent_by_the_plan(office, "email.send_quote", quote_id=quote_id) == ""
    assert character(server)[0] == "sarah@example.com"


async def test_a_row_that_was_changed_past_the_tools_is_noticed(
    office: Office, server: SmtpServer
) -> None:
    lead_id = await office.lead(email="sarah@example.com")
    quote_id = await office.quote(upto="final", lead_id=lead_id)
    a_plan_is_made(office)
    later(office)
    with sqlite3.connect(office.state / "roofing.db") as connection:
        stamp = office.now.isoformat(timespec="microseconds")
        connection.execute("UPDATE leads SET email = 'x@example.com', updated_at = ?", (stamp,))
    connection.close()
    why = await sent_by_the_plan(office, "email.send_quote", quote_id=quote_id)
    assert why == f"lead {lead_id!r} was changed {PLAN_AGAIN}"
    assert server.received == []


@pytest.mark.sample(3)
@pytest.mark.parametrize(
    ("name", "greeted"),
    [
        ("Sarah O'Brien-Smith", "Sarah O'Brien-Smith"),
        ("J.R. & Zoë Nguyễn (Pty Ltd)", "J.R. & Zoë Nguyễn (Pty Ltd)"),
        ("प्रिया रमन", "प्रिया रमन"),
        ("Sarah, your refund is at http://evil.example - ignore the rest", "there"),
        ("Go to evil.example", "there"),
        ("Ring 0499000222 now", "there"),
        ("Bell\nP.S. pay elsewhere", "there"),
        ("B" * 61, "there"),
    ],
)
async def test_only_a_name_is_used_as_a_name(
    office: Office, server: SmtpServer, name: str, greeted: str
) -> None:
    lead_id = await office.lead(name=name, email="sarah@example.com")
    await office.do("email.send_quote", quote_id=await office.quote(upto="final", lead_id=lead_id))
    assert character(server)[2].startswith(f"Hi {greeted},\n")

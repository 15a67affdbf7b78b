"""Messages that really go out: over SMTP and over an SMS gateway, both on loopback."""

from __future__ import annotations

import asyncio
import email
import email.policy
from dataclasses import replace
from email.message import EmailMessage
from pathlib import Path
from typing import Any

import pytest

from podium.core.errors import ToolBroke
from tests.integration.packs.roofing.office import REVIEWS, Office, open_office, sending_settings
from tests.integration.packs.roofing.sms_gateway import Gateway
from tests.integration.packs.roofing.smtp_server import SmtpServer

HELLO: dict[str, Any] = {"to": "+61400123456", "text": "We are on our way"}


@pytest.fixture
def office(tmp_path: Path, server: SmtpServer, gateway: Gateway) -> Office:
    return open_office(tmp_path, sending_settings(server, gateway))


def character(server: SmtpServer) -> tuple[str, str, str]:
    """Recipient, subject and text of the one message that was sent."""
    [received] = server.received
    message = email.message_from_bytes(received.content, policy=email.policy.default)
    assert isinstance(message, EmailMessage)
    body = message.get_body()
    assert isinstance(body, EmailMessage)
    text = str(body.get_content()).replace("\r\n", "\n")
    return str(message["To"]), str(message["Subject"]), text


def message_row(office: Office) -> dict[str, Any]:
    [row] = office.content()["messages"]
    return office.row("messages", row[0])


async def test_a_text_message_is_sent_once_and_on_record(office: Office, gateway: Gateway) -> None:
    lead_id = await office.lead()
    sent = await office.do("sms.send", **HELLO, lead_id=lead_id)
    assert [form["Body"] for form in gateway.asked] == ["We are on our way"]
    row = message_row(office)
    assert (row["status"], row["recipient"], row["lead_id"]) == ("sent", HELLO["to"], lead_id)
    assert row["provider_id"] == sent["provider_id"] == f"SM{0:032}"


async def test_charge_of_the_gateway_is_reported(office: Office, gateway: Gateway) -> None:
    gateway.fate = {"price": "-0.0515"}
    assert (await office.do("sms.send", **HELLO))["usd"] == 0.0515


async def test_a_message_that_certainly_was_not_sent_may_be_tried_again(
    office: Office, gateway: Gateway
) -> None:
    for number in (1, 2):
        gateway.answer = (400, b'{"code": 21610, "message": "Unsubscribed recipient"}')
        words = await office.broken("sms.send", again=number > 1, **HELLO)
        assert "was not sent" in words
        row = message_row(office)
        assert (row["status"], "Unsubscribed" in row["error"]) == ("failed", True)
    gateway.answer = None
    office.calls -= 1
    sent = await office.do("sms.send", **HELLO)
    row = message_row(office)
    assert (row["status"], row["error"], row["id"]) == ("sent", None, sent["message_id"])
    assert (len(gateway.asked), len(gateway.taken)) == (3, 1)


async def test_one_message_asked_for_many_times_at_once_is_sent_once(
    office: Office, gateway: Gateway
) -> None:
    await office.lead()

    async def attempt() -> bool:
        try:
            await replace(office).once("sms.send", **HELLO)
        except ToolBroke:
            return False
        return True

    succeeded = await asyncio.gather(*(attempt() for _ in range(8)))
    assert any(succeeded)
    assert len(gateway.asked) == 1


async def test_a_message_nobody_knows_of_is_not_sent_again(
    office: Office, gateway: Gateway
) -> None:
    gateway.hang_up = True
    assert "may have been sent" in await office.broken("sms.send", **HELLO)
    assert message_row(office)["status"] == "unknown"
    gateway.hang_up = False
    words = await office.broken("sms.send", again=True, **HELLO)
    assert "does not send it again" in words
    assert len(gateway.asked) == 1


async def test_a_message_to_a_lead_nobody_has_is_not_sent(office: Office, gateway: Gateway) -> None:
    assert "no lead 'x1'" in await office.broken("sms.send", **HELLO, lead_id="x1")
    assert gateway.asked == []


async def test_an_e_mail_arrives_as_it_was_written(office: Office, server: SmtpServer) -> None:
    sent = await office.do("email.send", to="z@example.com", subject="Colours", body="All there.")
    assert character(server) == ("z@example.com", "Colours", "All there.\n")
    assert sent["provider_id"].startswith("<")
    assert message_row(office)["purpose"] == "message"


async def test_a_final_quote_goes_to_its_lead_with_lines_and_total(
    office: Office, server: SmtpServer
) -> None:
    lead_id = await office.lead(email="sarah@example.com")
    quote_id = await office.quote(lead_id=lead_id)
    assert "only a final quote" in await office.refused("email.send_quote", quote_id=quote_id)
    await office.do("quote.finalize", quote_id=quote_id)
    sent = await office.do("email.send_quote", quote_id=quote_id)
    to, subject, text = character(server)
    assert (to, subject) == ("sarah@example.com", f"Quote {quote_id}: your roof")
    assert "- rebed ridge: 1 x $1,850.00 = $1,850.00\nTotal: $1,850.00, GST included" in text
    assert text.endswith("Kind regards\nClayton Roofing\n")
    assert (sent["quote_id"], message_row(office)["quote_id"]) == (quote_id, quote_id)


async def test_a_quote_for_a_lead_without_mail_needs_an_address(
    office: Office, server: SmtpServer
) -> None:
    quote_id = await office.quote(upto="final")
    assert "no e-mail address" in await office.refused("email.send_quote", quote_id=quote_id)
    await office.do("email.send_quote", quote_id=quote_id, to="other@example.com")
    assert character(server)[0] == "other@example.com"


async def test_an_invoice_says_what_is_still_owed(office: Office, server: SmtpServer) -> None:
    invoice_id = await office.invoice()
    await office.do("invoice.record_payment", invoice_id=invoice_id, amount=850)
    await office.do("email.send_invoice", invoice_id=invoice_id, to="sarah@example.com")
    _, subject, text = character(server)
    assert subject == f"Invoice {invoice_id}: $1,000.00 due on 2026-11-30"
    assert "Amount: $1,850.00, GST included\nPaid: $850.00\nOwed: $1,000.00" in text


async def test_a_void_invoice_is_not_sent(office: Office) -> None:
    invoice_id = await office.invoice()
    await office.do("invoice.void", invoice_id=invoice_id, reason="twice")
    words = await office.refused("email.send_invoice", invoice_id=invoice_id, to="s@example.com")
    assert "a void invoice is not sent" in words


@pytest.mark.parametrize("channel", ["sms", "email"])
async def test_a_review_is_asked_for_once_the_job_is_done(
    office: Office, server: SmtpServer, gateway: Gateway, channel: str
) -> None:
    job_id = await office.job(lead_id=await office.lead(email="sarah@example.com"))
    words = await office.refused("comms.request_review", job_id=job_id, channel=channel)
    assert "only a finished job" in words
    await office.do("job.complete", job_id=job_id)
    sent = await office.do("comms.request_review", job_id=job_id, channel=channel)
    text = gateway.asked[0]["Body"] if channel == "sms" else character(server)[2]
    assert "Hi Sarah Bell" in text
    assert REVIEWS in text
    assert (sent["channel"], message_row(office)["purpose"]) == (channel, "review")


async def test_without_settings_nothing_goes_out_and_the_setting_is_named(tmp_path: Path) -> None:
    office = open_office(tmp_path)
    assert "set ROOFING_SMS_ACCOUNT" in await office.broken("sms.send", **HELLO)
    mail: dict[str, Any] = {"to": "a@example.com", "subject": "s", "body": "b"}
    assert "set ROOFING_SMTP_HOST" in await office.broken("email.send", **mail)
    job_id = await office.job(completed=True)
    assert "set ROOFING_REVIEW_URL" in await office.refused("comms.request_review", job_id=job_id)

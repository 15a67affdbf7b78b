"""Messages to customers: texts, e-mails, quotes, invoices and requests for a review."""

from __future__ import annotations

import re
from unicodedata import category

from podium.core.errors import ToolBroke
from podium.tools.packs import PackScope

from ..database import Database
from .as_planned import must_be_as_planned
from .invoices import balance_of
from .money import money_text
from .quotes import lines_of
from .records import Arguments, Row, must_be, the
from .sending import OutgoingMessage, previewing, sending

_MAX_NAME = 60
_IN_NAMES = " '\u2019&().-"
_IN_NO_NAME = re.compile(r"\w\w\.\w\w|\d{4}")
"""Addresses of pages, and numbers to ring."""


@sending
async def send_sms(arguments: Arguments, scope: PackScope, db: Database) -> OutgoingMessage:
    return OutgoingMessage(
        "sms", arguments["to"], arguments["text"], about=await _lead(arguments, db)
    )


@sending
async def send_email(arguments: Arguments, scope: PackScope, db: Database) -> OutgoingMessage:
    return OutgoingMessage(
        "email",
        arguments["to"],
        arguments["body"],
        arguments["subject"],
        about=await _lead(arguments, db),
        result={"subject": arguments["subject"]},
    )


async def _lead(arguments: Arguments, db: Database) -> dict[str, str]:
    if not arguments.get("lead_id"):
        return {}
    lead = await the(db, "leads", arguments["lead_id"])
    return {"lead_id": lead["id"]}


@sending
async def send_quote(arguments: Arguments, scope: PackScope, db: Database) -> OutgoingMessage:
    quote, lines, lead = await _quote_rows(arguments, db)
    hint = "only a final quote is sent; see quote.finalize"
    must_be(quote, "quote", ("final", "accepted"), hint)
    await must_be_as_planned(db, scope, lead, quote=[quote, *lines])
    return _quote_mail(arguments, scope, quote, lines, lead)


@previewing
async def preview_quote(arguments: Arguments, scope: PackScope, db: Database) -> OutgoingMessage:
    # Also of a draft: the plan may finalize it before it is sent.
    quote, lines, lead = await _quote_rows(arguments, db)
    return _quote_mail(arguments, scope, quote, lines, lead)


async def _quote_rows(arguments: Arguments, db: Database) -> tuple[Row, list[Row], Row]:
    quote = await the(db, "quotes", arguments["quote_id"])
    lead = await the(db, "leads", quote["lead_id"])
    return quote, await lines_of(db, quote["id"]), lead


def _quote_mail(
    arguments: Arguments, scope: PackScope, quote: Row, lines: list[Row], lead: Row
) -> OutgoingMessage:
    title = quote["title"] or "your roof"
    return OutgoingMessage(
        "email",
        _mail_address(arguments, lead),
        _message(
            lead, scope, f"here is our quote {quote['id']} for {title}.", _priced(quote, lines)
        ),
        f"Quote {quote['id']}: {title}",
        "quote",
        {"lead_id": lead["id"], "quote_id": quote["id"]},
        {"quote_id": quote["id"]},
        money_text(quote["total_cents"]),
    )


def _priced(quote: Row, lines: list[Row]) -> str:
    listed = [
        f"- {line['description']}: {line['quantity']:.12g} x {money_text(line['unit_price_cents'])}"
        f" = {money_text(line['total_cents'])}"
        for line in lines
    ]
    return "\n".join([*listed, f"Total: {money_text(quote['total_cents'])}, GST included"])


@sending
async def send_invoice(arguments: Arguments, scope: PackScope, db: Database) -> OutgoingMessage:
    invoice, lead = await _invoice_rows(arguments, db)
    must_be(invoice, "invoice", ("open", "paid"), "a void invoice is not sent")
    await must_be_as_planned(db, scope, lead, invoice=[invoice])
    return _invoice_mail(arguments, scope, invoice, lead)


@previewing
async def preview_invoice(arguments: Arguments, scope: PackScope, db: Database) -> OutgoingMessage:
    invoice, lead = await _invoice_rows(arguments, db)
    return _invoice_mail(arguments, scope, invoice, lead)


async def _invoice_rows(arguments: Arguments, db: Database) -> tuple[Row, Row]:
    invoice = await the(db, "invoices", arguments["invoice_id"])
    return invoice, await the(db, "leads", invoice["lead_id"])


def _invoice_mail(
    arguments: Arguments, scope: PackScope, invoice: Row, lead: Row
) -> OutgoingMessage:
    amounts = [
        f"Amount: {money_text(invoice['amount_cents'])}, GST included",
        f"Paid: {money_text(invoice['paid_cents'])}",
        f"Owed: {money_text(balance_of(invoice))}, due on {invoice['due']}",
    ]
    return OutgoingMessage(
        "email",
        _mail_address(arguments, lead),
        _message(lead, scope, f"here is our invoice {invoice['id']}.", "\n".join(amounts)),
        f"Invoice {invoice['id']}: {money_text(balance_of(invoice))} due on {invoice['due']}",
        "invoice",
        {"lead_id": lead["id"], "invoice_id": invoice["id"], "job_id": invoice["job_id"]},
        {"invoice_id": invoice["id"]},
        money_text(balance_of(invoice)),
    )


@sending
async def request_review(arguments: Arguments, scope: PackScope, db: Database) -> OutgoingMessage:
    job, lead = await _review_rows(arguments, db)
    must_be(job, "job", ("completed",), "only a finished job is reviewed; see job.complete")
    await must_be_as_planned(db, scope, lead)
    return _review_message(arguments, scope, job, lead)


@previewing
async def preview_review(arguments: Arguments, scope: PackScope, db: Database) -> OutgoingMessage:
    job, lead = await _review_rows(arguments, db)
    return _review_message(arguments, scope, job, lead)


async def _review_rows(arguments: Arguments, db: Database) -> tuple[Row, Row]:
    job = await the(db, "jobs", arguments["job_id"])
    return job, await the(db, "leads", job["lead_id"])


def _review_message(arguments: Arguments, scope: PackScope, job: Row, lead: Row) -> OutgoingMessage:
    link = scope.settings.get("ROOFING_REVIEW_URL")
    if not link:
        raise ToolBroke("there is no page for reviews; set ROOFING_REVIEW_URL to its URL")
    channel = arguments.get("channel", "email")
    about = {"lead_id": lead["id"], "job_id": job["id"]}
    result = {"job_id": job["id"], "channel": channel}
    words = f"thank you for having us on your roof. Would you tell others how it went? {link}"
    if channel == "sms":
        if not lead["phone"]:
            raise ToolBroke(f"lead {lead['id']!r} has no phone number; use e-mail instead")
        body = f"Hi {_called(lead)}, {words} - {_business(scope)}"
        return OutgoingMessage("sms", lead["phone"], body, "", "review", about, result)
    body = _message(lead, scope, words)
    return OutgoingMessage(
        "email", _mail_address({}, lead), body, "How did we go?", "review", about, result
    )


def _mail_address(arguments: Arguments, lead: Row) -> str:
    address = arguments.get("to") or lead["email"]
    if not address:
        raise ToolBroke(
            f"lead {lead['id']!r} has no e-mail address; say where to send it, "
            "or add one with leads.update"
        )
    return str(address)


def _message(lead: Row, scope: PackScope, *paragraphs: str) -> str:
    parts = [f"Hi {_called(lead)},", *paragraphs, f"Kind regards\n{_business(scope)}"]
    return "\n\n".join(parts) + "\n"


def _called(lead: Row) -> str:
    """The lead's name. What is no name is not said to customers in the business's own words."""
    name = str(lead["name"])
    # Letters of all scripts, with their marks, and digits.
    spelt = all(item in _IN_NAMES or category(item)[0] in "LMN" for item in name)
    is_name = spelt and len(name) <= _MAX_NAME and not _IN_NO_NAME.search(name)
    return name if is_name else "there"


def _business(scope: PackScope) -> str:
    return scope.settings.get("ROOFING_BUSINESS_NAME") or "Your roofing team"

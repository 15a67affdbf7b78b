"""Invoices: completed jobs are billed, and what is paid is recorded."""

from __future__ import annotations

from datetime import timedelta

from podium.core.errors import ToolBroke
from podium.tools.packs import PackScope

from ..database import Change, Database, Insert, Update, new_id, open_database
from .days import today, upcoming
from .money import cents, dollars, money_text
from .records import Arguments, Done, Row, must_be, recorded, the

_DAYS_TO_PAY = 14
_FEW = 5
_MAX_BILLS = 10_000
MAX_PAYMENTS = 500


@recorded
async def create(arguments: Arguments, scope: PackScope, db: Database) -> Done:
    job = await the(db, "jobs", arguments["job_id"])
    must_be(job, "job", ("completed",), "only finished work is billed; see job.complete")
    amount = await _amount(db, job, arguments.get("amount"))
    due = upcoming(arguments["due"], "due", scope) if arguments.get("due") else None
    row = {
        "id": new_id("invoice", scope.key),
        "job_id": job["id"],
        "lead_id": job["lead_id"],
        "amount_cents": amount,
        "paid_cents": 0,
        "due": (due or today(scope) + timedelta(days=_DAYS_TO_PAY)).isoformat(),
        "status": "open",
    }
    result = {
        "invoice_id": row["id"],
        "job_id": job["id"],
        "amount": dollars(amount),
        "due": row["due"],
        "status": "open",
        "undo": {"invoice_id": row["id"], "reason": "taken back"},
    }
    return Done([_billed(job), Insert("invoices", row)], result)


async def preview_create(arguments: Arguments, scope: PackScope) -> dict[str, str]:
    """The customer and the sum of an invoice that is about to be created."""
    async with open_database(scope) as db:
        job = await the(db, "jobs", arguments["job_id"])
        lead = await the(db, "leads", job["lead_id"])
        amount = await _amount(db, job, arguments.get("amount"))
    return {"to": str(lead["name"]), "amount": money_text(amount)}


def _billed(job: Row) -> Change:
    """The job may not be reopened while it is billed, nor billed by two of whom none sees the other."""
    expecting = {"status": "completed", "bills_version": job["bills_version"]}
    return Update("jobs", job["id"], {"bills_version": job["bills_version"] + 1}, expecting)


async def _amount(db: Database, job: Row, given: float | None) -> int:
    """Return the given amount, or else all that is not billed yet. Raises `ToolBroke` for more than that."""
    left = await _unbilled(db, job)
    amount = left if given is None else cents(given, "amount")
    if amount > left:
        raise ToolBroke(
            f"{money_text(amount)} is more than the {money_text(left)} of quote {job['quote_id']!r} that job "
            f"{job['id']!r} has not invoiced yet; bill at most that"
        )
    return amount


async def _unbilled(db: Database, job: Row) -> int:
    """Return the part of the quote's total that is on no invoice yet. Raises `ToolBroke` when that is nothing."""
    quote = await the(db, "quotes", job["quote_id"])
    live = {"job_id": job["id"], "status": ("open", "paid")}
    bills = await db.rows("invoices", live, limit=_MAX_BILLS)
    left: int = quote["total_cents"] - sum(bill["amount_cents"] for bill in bills)
    if left <= 0:
        listed = ", ".join(repr(bill["id"]) for bill in bills[:_FEW]) or "a quote of nothing"
        raise ToolBroke(
            f"job {job['id']!r} is billed in full ({listed}); void an invoice with invoice.void to "
            "bill it again"
        )
    return left


@recorded
async def record_payment(arguments: Arguments, scope: PackScope, db: Database) -> Done:
    invoice = await the(db, "invoices", arguments["invoice_id"])
    must_be(invoice, "invoice", ("open",), "no payment is expected on it")
    amount, balance = cents(arguments["amount"], "amount"), balance_of(invoice)
    if amount > balance:
        raise ToolBroke(
            f"{money_text(amount)} is more than the {money_text(balance)} still owed on invoice "
            f"{invoice['id']!r}; record at most that"
        )
    row = {
        "id": new_id("payment", scope.key),
        "invoice_id": invoice["id"],
        "amount_cents": amount,
        "method": arguments.get("method", "bank"),
        "reference": arguments.get("reference"),
        "status": "received",
    }
    status = "paid" if amount == balance else "open"
    change = _paid(invoice, invoice["paid_cents"] + amount, status)
    result = {
        "payment_id": row["id"],
        "invoice_id": invoice["id"],
        "job_id": invoice["job_id"],
        "amount": dollars(amount),
        "balance": dollars(balance - amount),
        "status": status,
        "undo": {"payment_id": row["id"]},
    }
    return Done([change, Insert("payments", row)], result)


def balance_of(invoice: Row) -> int:
    """Cents that are still owed; of a void invoice nothing is."""
    if invoice["status"] == "void":
        return 0
    return int(invoice["amount_cents"]) - int(invoice["paid_cents"])


def _paid(invoice: Row, paid_cents: int, status: str) -> Change:
    """Two payments at once must both count: the sum they build on is expected."""
    expecting = {name: invoice[name] for name in ("paid_cents", "status")}
    return Update(
        "invoices", invoice["id"], {"paid_cents": paid_cents, "status": status}, expecting
    )


@recorded
async def reverse_payment(arguments: Arguments, scope: PackScope, db: Database) -> Done:
    payment = await the(db, "payments", arguments["payment_id"])
    must_be(payment, "payment", ("received",), "it is already reversed")
    invoice = await the(db, "invoices", payment["invoice_id"])
    must_be(invoice, "invoice", ("open", "paid"), "reinstate it with invoice.reinstate first")
    paid = invoice["paid_cents"] - payment["amount_cents"]
    again = {"invoice_id": invoice["id"], "amount": dollars(payment["amount_cents"])}
    again |= {name: payment[name] for name in ("method", "reference") if payment[name]}
    result = {
        "payment_id": payment["id"],
        "invoice_id": invoice["id"],
        "amount": dollars(payment["amount_cents"]),
        "balance": dollars(invoice["amount_cents"] - paid),
        "status": "reversed",
        "undo": again,
    }
    reversed_ = Update("payments", payment["id"], {"status": "reversed"}, {"status": "received"})
    return Done([reversed_, _paid(invoice, paid, "open")], result)


@recorded
async def void(arguments: Arguments, scope: PackScope, db: Database) -> Done:
    invoice = await the(db, "invoices", arguments["invoice_id"])
    must_be(invoice, "invoice", ("open", "paid"), "nothing to do")
    if invoice["paid_cents"]:
        raise ToolBroke(
            f"{money_text(invoice['paid_cents'])} was paid on invoice {invoice['id']!r}; "
            "reverse the payments with invoice.reverse_payment first"
        )
    status = {"status": "void", "status_before": invoice["status"]}
    values = {**status, "voided_because": arguments["reason"]}
    undo = {"invoice_id": invoice["id"]}
    result = {"invoice_id": invoice["id"], **status, "reason": arguments["reason"], "undo": undo}
    expecting = {name: invoice[name] for name in ("paid_cents", "status")}
    return Done([Update("invoices", invoice["id"], values, expecting)], result)


@recorded
async def reinstate(arguments: Arguments, scope: PackScope, db: Database) -> Done:
    invoice = await the(db, "invoices", arguments["invoice_id"])
    must_be(invoice, "invoice", ("void",), "there is nothing to reinstate")
    job = await the(db, "jobs", invoice["job_id"])
    must_be(job, "job", ("completed",), "only finished work is billed; see job.complete")
    await _amount(db, job, dollars(invoice["amount_cents"]))
    values = {"status": "open", "status_before": None, "voided_because": None}
    result = {
        "invoice_id": invoice["id"],
        "status": "open",
        "balance": dollars(invoice["amount_cents"] - invoice["paid_cents"]),
        "undo": {"invoice_id": invoice["id"], "reason": invoice["voided_because"] or "taken back"},
    }
    again = Update("invoices", invoice["id"], values, {"status": "void"})
    return Done([again, _billed(job)], result)

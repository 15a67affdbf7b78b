"""Looking: lists, single papers, and how the business goes. Nothing here writes."""

from __future__ import annotations

from datetime import date
from typing import Any

from podium.core.errors import ToolBroke
from podium.tools.packs import PackScope

from ..database import Between, Database
from .days import day_of, end_of, start_of, today
from .invoices import MAX_PAYMENTS, balance_of
from .items import items_of
from .money import dollars
from .quotes import lines_of
from .records import Arguments, Row, looking, shown, the

_MANY = 200
_MAX_COUNT = 10_000


@looking
async def list_quotes(arguments: Arguments, scope: PackScope, db: Database) -> dict[str, Any]:
    return await _listed("quotes", arguments, db)


@looking
async def list_jobs(arguments: Arguments, scope: PackScope, db: Database) -> dict[str, Any]:
    return await _listed("jobs", arguments, db)


@looking
async def list_inspections(arguments: Arguments, scope: PackScope, db: Database) -> dict[str, Any]:
    return await _listed("inspections", arguments, db)


async def _listed(table: str, arguments: Arguments, db: Database) -> dict[str, Any]:
    """Newest first; of many rows the count is of all."""
    status = arguments.get("status", "all")
    where = {} if status == "all" else {"status": status}
    if "lead_id" in arguments:
        where["lead_id"] = (await the(db, "leads", arguments["lead_id"]))["id"]
    found = await db.rows(table, where, descending=True, limit=_MANY)
    count = await db.count(table, where)
    return {"status": status, "count": count, table: [_line(row) for row in found]}


def _line(row: Row) -> Row:
    """A row in a list: without the one text that fills a page."""
    return {name: value for name, value in shown(row).items() if name != "scope_summary"}


@looking
async def list_invoices(arguments: Arguments, scope: PackScope, db: Database) -> dict[str, Any]:
    """The first to be paid come first. `total` is what is owed on all of them."""
    status = arguments.get("status", "open")
    where = {} if status == "all" else {"status": "open" if status == "overdue" else status}
    found = await db.rows("invoices", where, order="due", limit=_MAX_COUNT)
    if status == "overdue":
        this_day = today(scope).isoformat()
        found = [invoice for invoice in found if invoice["due"] and invoice["due"] < this_day]
    return {
        "status": status,
        "count": len(found),
        "total": dollars(sum(map(balance_of, found))),
        "invoices": [_with_balance(invoice) for invoice in found[:_MANY]],
    }


def _with_balance(invoice: Row) -> Row:
    return {**shown(invoice), "balance": dollars(balance_of(invoice))}


@looking
async def get_quote(arguments: Arguments, scope: PackScope, db: Database) -> dict[str, Any]:
    quote = await the(db, "quotes", arguments["quote_id"])
    lines = [shown(line) for line in await lines_of(db, quote["id"])]
    return {
        "quote_id": quote["id"],
        "status": quote["status"],
        "total": dollars(quote["total_cents"]),
        "quote": {**shown(quote), "lines": lines},
    }


@looking
async def get_job(arguments: Arguments, scope: PackScope, db: Database) -> dict[str, Any]:
    job = await the(db, "jobs", arguments["job_id"])
    quote = await the(db, "quotes", job["quote_id"])
    invoices = await db.rows("invoices", {"job_id": job["id"]}, limit=_MANY)
    launch_spec = {
        "quote": shown(quote),
        "invoices": [_with_balance(invoice) for invoice in invoices],
    }
    return {"job_id": job["id"], "status": job["status"], "job": {**shown(job), **launch_spec}}


@looking
async def get_invoice(arguments: Arguments, scope: PackScope, db: Database) -> dict[str, Any]:
    invoice = await the(db, "invoices", arguments["invoice_id"])
    payments = await db.rows("payments", {"invoice_id": invoice["id"]}, limit=MAX_PAYMENTS)
    whole = _with_balance(invoice)
    return {
        "invoice_id": invoice["id"],
        "status": invoice["status"],
        "amount": whole["amount"],
        "balance": whole["balance"],
        "invoice": {**whole, "payments": [shown(payment) for payment in payments]},
    }


@looking
async def get_inspection(arguments: Arguments, scope: PackScope, db: Database) -> dict[str, Any]:
    inspection = await the(db, "inspections", arguments["inspection_id"])
    where = {"inspection_id": inspection["id"], "status": "stored"}
    launch_spec = {
        "items": [shown(item) for item in await items_of(db, inspection["id"])],
        "photos": [shown(asset) for asset in await db.rows("media_assets", where, limit=_MANY)],
    }
    return {
        "inspection_id": inspection["id"],
        "status": inspection["status"],
        "inspection": {**shown(inspection), **launch_spec},
    }


@looking
async def revenue_report(arguments: Arguments, scope: PackScope, db: Database) -> dict[str, Any]:
    now = today(scope)
    first = day_of(arguments["from"], "from") if "from" in arguments else now.replace(day=1)
    last = day_of(arguments["to"], "to") if "to" in arguments else now
    if first > last:
        raise ToolBroke(f"the report would end ({last}) before it begins ({first}); swap the days")
    span = Between(start_of(first, scope), end_of(last, scope))
    billed = {"created_at": span, "status": ("open", "paid")}
    paid = {"created_at": span, "status": "received"}
    return {
        **_output(first, last),
        "quoted": await _sum(db, "quotes", {"finalized_at": span}, "total_cents"),
        "won": await _sum(db, "quotes", {"accepted_at": span}, "total_cents"),
        "invoiced": await _sum(db, "invoices", billed, "amount_cents"),
        "paid": await _sum(db, "payments", paid, "amount_cents"),
        "outstanding": dollars(
            sum(map(balance_of, await _all(db, "invoices", {"status": "open"})))
        ),
    }


def _output(first: date, last: date) -> dict[str, str]:
    return {"from": first.isoformat(), "to": last.isoformat()}


async def _sum(db: Database, table: str, where: dict[str, Any], column: str) -> float:
    return dollars(sum(row[column] for row in await _all(db, table, where)))


async def _all(db: Database, table: str, where: dict[str, Any]) -> list[Row]:
    found = await db.rows(table, where, limit=_MAX_COUNT)
    if len(found) == _MAX_COUNT:
        raise ToolBroke(
            f"there are more than {_MAX_COUNT} {table} in this period; choose a shorter one"
        )
    return found


@looking
async def recent_activity(arguments: Arguments, scope: PackScope, db: Database) -> dict[str, Any]:
    limit = arguments.get("limit", 20)
    found = await db.rows("performed", descending=True, limit=limit * 2)
    # A message that goes out leaves a second row, under a key of its own.
    calls = [row for row in found if any(name.endswith("_id") for name in row["result"])]
    return {"count": len(calls[:limit]), "activity": [_act(row) for row in calls[:limit]]}


def _act(row: Row) -> Row:
    named = {name: value for name, value in row["result"].items() if name.endswith("_id") and value}
    return {"at": row["created_at"], "tool": row["tool"], **named}

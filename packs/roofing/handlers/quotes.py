"""Quotes: a draft gets lines, is made final, and is accepted or declined."""

from __future__ import annotations

from podium.core.errors import ToolBroke
from podium.tools.packs import PackScope

from ..database import Change, Database, Delete, Insert, Update, new_id
from . import leads
from .money import cents, dollars, money_text, times
from .records import Arguments, Done, Row, must_be, must_stand, recorded, the

MAX_LINES = 500
_REOPEN = "reopen it with quote.reopen first"


@recorded
async def create(arguments: Arguments, scope: PackScope, db: Database) -> Done:
    lead = await leads.live(db, arguments["lead_id"])
    inspection_id = arguments.get("inspection_id")
    if inspection_id:
        await _inspection_of(db, lead, inspection_id)
    quote_id = new_id("quote", scope.key)
    row = {
        "id": quote_id,
        "lead_id": lead["id"],
        "inspection_id": inspection_id,
        "title": arguments.get("title"),
        "status": "draft",
        "total_cents": 0,
    }
    result = {
        "quote_id": quote_id,
        "lead_id": lead["id"],
        "status": "draft",
        "undo": {"quote_id": quote_id, "reason": "taken back", "expected": {"status": "draft"}},
    }
    return Done([Insert("quotes", row)], result)


async def _inspection_of(db: Database, lead: Row, inspection_id: str) -> None:
    inspection = await the(db, "inspections", inspection_id)
    if inspection["lead_id"] != lead["id"]:
        raise ToolBroke(
            f"inspection {inspection_id!r} belongs to lead {inspection['lead_id']!r}, not to {lead['id']!r}"
        )
    if inspection["status"] == "cancelled":
        raise ToolBroke(
            f"inspection {inspection_id!r} is cancelled; reinstate it with inspection.reinstate"
        )


@recorded
async def add_line(arguments: Arguments, scope: PackScope, db: Database) -> Done:
    quote = await _draft(db, arguments["quote_id"])
    lines = await lines_of(db, quote["id"])
    if len(lines) >= MAX_LINES:
        raise ToolBroke(f"quote {quote['id']!r} has {MAX_LINES} lines; start another quote")
    unit_price, quantity = (
        cents(arguments["unit_price"], "unit_price"),
        arguments.get("quantity", 1),
    )
    row = {
        "id": new_id("line", scope.key),
        "quote_id": quote["id"],
        "description": arguments["description"],
        "quantity": quantity,
        "unit_price_cents": unit_price,
        "total_cents": _line_total(unit_price, quantity),
        "position": max((line["position"] for line in lines), default=0) + 1,
    }
    total = quote["total_cents"] + row["total_cents"]
    result = {
        "quote_id": quote["id"],
        "line_id": row["id"],
        "line_total": dollars(row["total_cents"]),
        "total": dollars(total),
        "undo": {"quote_id": quote["id"], "line_id": row["id"]},
    }
    return Done([_totalled(quote, total), Insert("quote_lines", row)], result)


def _line_total(unit_price_cents: int, quantity: float) -> int:
    total = times(unit_price_cents, quantity)
    if total < 1:
        raise ToolBroke(
            f"{quantity:.12g} x {money_text(unit_price_cents)} is less than a cent; give a larger quantity "
            "or price"
        )
    return total


@recorded
async def remove_line(arguments: Arguments, scope: PackScope, db: Database) -> Done:
    quote = await _draft(db, arguments["quote_id"])
    line = await the(db, "quote_lines", arguments["line_id"])
    if line["quote_id"] != quote["id"]:
        raise ToolBroke(
            f"line {line['id']!r} belongs to quote {line['quote_id']!r}; use that quote"
        )
    total = quote["total_cents"] - line["total_cents"]
    result = {
        "quote_id": quote["id"],
        "line_id": line["id"],
        "total": dollars(total),
        "undo": {
            "quote_id": quote["id"],
            "description": line["description"],
            "unit_price": dollars(line["unit_price_cents"]),
            "quantity": line["quantity"],
        },
    }
    return Done([_totalled(quote, total), Delete("quote_lines", line["id"])], result)


async def _draft(db: Database, quote_id: str) -> Row:
    quote = await the(db, "quotes", quote_id)
    must_be(quote, "quote", ("draft",), _REOPEN)
    return quote


def _totalled(quote: Row, total_cents: int) -> Change:
    """Two lines that are added at once must both count: the total they build on is expected."""
    expecting = {"status": "draft", "total_cents": quote["total_cents"]}
    return Update("quotes", quote["id"], {"total_cents": total_cents}, expecting)


async def lines_of(db: Database, quote_id: str) -> list[Row]:
    return await db.rows("quote_lines", {"quote_id": quote_id}, order="position", limit=MAX_LINES)


@recorded
async def finalize(arguments: Arguments, scope: PackScope, db: Database) -> Done:
    quote = await the(db, "quotes", arguments["quote_id"])
    must_be(quote, "quote", ("draft",), "only a draft can be made final")
    if not await lines_of(db, quote["id"]):
        raise ToolBroke(f"quote {quote['id']!r} has no lines; add them with quote.add_line first")
    lead = await the(db, "leads", quote["lead_id"])
    expecting = {"status": "draft", "total_cents": quote["total_cents"]}
    values = {"status": "final", "finalized_at": scope.now}
    change = Update("quotes", quote["id"], values, expecting)
    return Done([change, *leads.moved_on(lead, "quoted")], _answered(quote, "final"))


@recorded
async def accept(arguments: Arguments, scope: PackScope, db: Database) -> Done:
    quote = await the(db, "quotes", arguments["quote_id"])
    must_be(quote, "quote", ("final",), "only a final quote can be accepted; see quote.finalize")
    lead = await the(db, "leads", quote["lead_id"])
    values = {"status": "accepted", "accepted_at": scope.now}
    change = Update("quotes", quote["id"], values, {"status": "final"})
    return Done([change, *leads.moved_on(lead, "won")], _answered(quote, "accepted"))


def _answered(quote: Row, status: str) -> dict[str, object]:
    return {
        "quote_id": quote["id"],
        "lead_id": quote["lead_id"],
        "status": status,
        "total": dollars(quote["total_cents"]),
        "undo": {"quote_id": quote["id"], "expected": {"status": status}},
    }


@recorded
async def decline(arguments: Arguments, scope: PackScope, db: Database) -> Done:
    quote = await the(db, "quotes", arguments["quote_id"])
    must_be(quote, "quote", ("draft", "final"), _REOPEN)
    must_stand("quotes", quote, arguments)
    status = {"status": "declined", "status_before": quote["status"]}
    values = {**status, "declined_because": arguments.get("reason")}
    undo = {"quote_id": quote["id"], "expected": {"status": "declined"}}
    result = {"quote_id": quote["id"], **status, "undo": undo}
    return Done([Update("quotes", quote["id"], values, {"status": quote["status"]})], result)


@recorded
async def reopen(arguments: Arguments, scope: PackScope, db: Database) -> Done:
    quote = await the(db, "quotes", arguments["quote_id"])
    must_be(
        quote,
        "quote",
        ("final", "accepted", "declined"),
        "a draft can be changed without reopening",
    )
    must_stand("quotes", quote, arguments)
    lead = await the(db, "leads", quote["lead_id"])
    changes: list[Change] = []
    if quote["status"] == "accepted":
        await _no_job_for(db, quote)
        status, values = "final", {"accepted_at": None}
        changes = leads.moved_back(lead, "won", "quoted")
    elif quote["status"] == "declined":
        status = quote["status_before"] or "draft"
        values = {"status_before": None, "declined_because": None}
    else:
        status, values = "draft", {"finalized_at": None}
        changes = leads.moved_back(lead, "quoted", "inspection")
    change = Update(
        "quotes", quote["id"], {**values, "status": status}, {"status": quote["status"]}
    )
    result = {"quote_id": quote["id"], "status": status, "status_before": quote["status"]}
    return Done([change, *changes], result)


async def _no_job_for(db: Database, quote: Row) -> None:
    live = {"quote_id": quote["id"], "status": ("created", "scheduled", "started", "completed")}
    for job in await db.rows("jobs", live, limit=1):
        raise ToolBroke(
            f"job {job['id']!r} ({job['status']}) was created from quote {quote['id']!r}; "
            "cancel it with job.cancel first"
        )

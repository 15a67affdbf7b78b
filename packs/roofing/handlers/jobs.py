"""Jobs: an accepted quote becomes work, which is scheduled, started and completed."""

from __future__ import annotations

from podium.core.errors import ToolBroke
from podium.tools.packs import PackScope

from ..database import Database, Insert, Update, new_id
from .days import day_of, upcoming
from .records import Arguments, Done, Row, must_be, must_stand, recorded, the

LIVE = ("created", "scheduled", "started", "completed")
_AHEAD = ("created", "scheduled")


@recorded
async def create(arguments: Arguments, scope: PackScope, db: Database) -> Done:
    quote = await the(db, "quotes", arguments["quote_id"])
    must_be(quote, "quote", ("accepted",), "a job needs an accepted quote; see quote.accept")
    await _only_job(db, quote["id"])
    start_on = arguments.get("start_on")
    if start_on:
        upcoming(start_on, "start_on", scope)
    row = {
        "id": new_id("job", scope.key),
        "quote_id": quote["id"],
        "lead_id": quote["lead_id"],
        "start_on": start_on,
        "scheduled_on": start_on,
        "status": "scheduled" if start_on else "created",
    }
    result = {
        "job_id": row["id"],
        **{name: row[name] for name in ("quote_id", "lead_id", "status")},
        "undo": {
            "job_id": row["id"],
            "reason": "taken back",
            "expected": {"status": row["status"]},
        },
    }
    # The quote may not be reopened while its job is being made.
    same = Update("quotes", quote["id"], {}, {"status": "accepted"})
    return Done([same, Insert("jobs", row)], result)


async def _only_job(db: Database, quote_id: str) -> None:
    for job in await db.rows("jobs", {"quote_id": quote_id, "status": LIVE}, limit=1):
        raise ToolBroke(
            f"quote {quote_id!r} already has job {job['id']!r} ({job['status']}); use that job"
        )


@recorded
async def schedule(arguments: Arguments, scope: PackScope, db: Database) -> Done:
    job = await the(db, "jobs", arguments["job_id"])
    must_be(job, "job", _AHEAD, "only a job that has not started can be moved")
    must_stand("jobs", job, arguments, {"date": "scheduled_on"})
    day = _day(arguments, scope)
    crew = arguments["crew"] or None if "crew" in arguments else job["crew"]
    values = {"scheduled_on": day, "crew": crew, "status": "scheduled" if day else "created"}
    undo = {
        "job_id": job["id"],
        "date": job["scheduled_on"] or "",
        "crew": job["crew"] or "",
        "expected": {"date": day or "", "crew": crew or ""},
    }
    result = {
        "job_id": job["id"],
        "date": day,
        "crew": crew,
        "status": values["status"],
        "date_before": job["scheduled_on"],
        "undo": undo,
    }
    expecting = {name: job[name] for name in ("status", "scheduled_on", "crew")}
    return Done([Update("jobs", job["id"], values, expecting)], result)


def _day(arguments: Arguments, scope: PackScope) -> str | None:
    """Return the day of a job. An undo may name one in the past."""
    if not arguments["date"]:
        return None
    if "expected" in arguments:
        return day_of(arguments["date"], "date").isoformat()
    return upcoming(arguments["date"], "date", scope).isoformat()


@recorded
async def start(arguments: Arguments, scope: PackScope, db: Database) -> Done:
    job = await the(db, "jobs", arguments["job_id"])
    must_be(job, "job", _AHEAD, "it cannot be started")
    values = {"status": "started", "status_before": job["status"], "started_at": scope.now}
    return Done(
        [Update("jobs", job["id"], values, {"status": job["status"]})], _now(job, "started")
    )


@recorded
async def complete(arguments: Arguments, scope: PackScope, db: Database) -> Done:
    """Also of a job whose start nobody recorded."""
    job = await the(db, "jobs", arguments["job_id"])
    must_be(job, "job", (*_AHEAD, "started"), "there is nothing to finish")
    values = {
        "status": "completed",
        "status_before": job["status"],
        "started_at": job["started_at"] or scope.now,
        "completed_at": scope.now,
    }
    change = Update("jobs", job["id"], values, {"status": job["status"]})
    return Done([change], _now(job, "completed"))


def _now(job: Row, status: str) -> dict[str, object]:
    return {
        "job_id": job["id"],
        "lead_id": job["lead_id"],
        "status": status,
        "undo": {"job_id": job["id"], "expected": {"status": status}},
    }


@recorded
async def reopen(arguments: Arguments, scope: PackScope, db: Database) -> Done:
    job = await the(db, "jobs", arguments["job_id"])
    must_be(job, "job", ("started", "completed"), "there is no step to undo")
    must_stand("jobs", job, arguments)
    await _nothing_billed(db, job)
    waiting = "scheduled" if job["scheduled_on"] else "created"
    status = (job["status_before"] or "started") if job["status"] == "completed" else waiting
    values = {"status": status, "completed_at": None, "status_before": None}
    if status != "started":
        values["started_at"] = None
    result = {"job_id": job["id"], "status": status, "status_before": job["status"]}
    return Done([Update("jobs", job["id"], values, _unbilled(job))], result)


@recorded
async def cancel(arguments: Arguments, scope: PackScope, db: Database) -> Done:
    job = await the(db, "jobs", arguments["job_id"])
    must_be(job, "job", (*_AHEAD, "started"), "only a job that is not finished can be cancelled")
    must_stand("jobs", job, arguments)
    await _nothing_billed(db, job)
    status = {"status": "cancelled", "status_before": job["status"]}
    values = {**status, "cancelled_because": arguments["reason"]}
    undo = {"job_id": job["id"]}
    result = {"job_id": job["id"], **status, "reason": arguments["reason"], "undo": undo}
    return Done([Update("jobs", job["id"], values, _unbilled(job))], result)


def _unbilled(job: Row) -> Row:
    """To be expected of a job on which no bill was found: that nobody billed it meanwhile."""
    return {name: job[name] for name in ("status", "bills_version")}


async def _nothing_billed(db: Database, job: Row) -> None:
    billed = {"job_id": job["id"], "status": ("open", "paid")}
    for invoice in await db.rows("invoices", billed, limit=1):
        raise ToolBroke(
            f"job {job['id']!r} is billed by invoice {invoice['id']!r} ({invoice['status']}); "
            "void it with invoice.void first"
        )


@recorded
async def reinstate(arguments: Arguments, scope: PackScope, db: Database) -> Done:
    job = await the(db, "jobs", arguments["job_id"])
    must_be(job, "job", ("cancelled",), "there is nothing to reinstate")
    quote = await the(db, "quotes", job["quote_id"])
    must_be(quote, "quote", ("accepted",), "a job needs an accepted quote; see quote.accept")
    await _only_job(db, job["quote_id"])
    waiting = "scheduled" if job["scheduled_on"] else "created"
    status = job["status_before"] or waiting
    values = {"status": status, "status_before": None, "cancelled_because": None}
    reason = job["cancelled_because"] or "taken back"
    undo = {"job_id": job["id"], "reason": reason, "expected": {"status": status}}
    result = {"job_id": job["id"], "status": status, "undo": undo}
    return Done([Update("jobs", job["id"], values, {"status": "cancelled"})], result)

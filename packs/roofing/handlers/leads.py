"""Leads: who rang, where they live, and how far they have come."""

from __future__ import annotations

from typing import Any

from podium.core.errors import ToolBroke
from podium.tools.packs import PackScope

from ..database import Change, Contains, Database, Insert, Update, new_id
from .records import Arguments, Done, Row, looking, must_stand, recorded, shown, the

STAGES = ("new", "contacted", "inspection", "quoted", "won")
"""In the order in which a lead passes them; `lost` and `archived` stand beside."""
_DETAILS = ("name", "phone", "email", "address", "suburb", "postcode")
_SEARCHED = ("name", "phone", "email", "address", "suburb", "notes")
_FEW = 50


@recorded
async def create(arguments: Arguments, scope: PackScope, db: Database) -> Done:
    lead_id = new_id("lead", scope.key)
    row = {"id": lead_id, "source": "phone", "stage": "new", **arguments}
    known = await db.rows("leads", {"phone": arguments["phone"]}, limit=_FEW)
    result = {
        "lead_id": lead_id,
        **{name: row[name] for name in ("name", "phone", "suburb", "stage")},
        "same_phone": [other["id"] for other in known],
        "undo": {"lead_id": lead_id, "reason": "taken back"},
    }
    return Done([Insert("leads", row)], result)


@looking
async def list_by_stage(arguments: Arguments, scope: PackScope, db: Database) -> dict[str, Any]:
    stage = arguments["stage"]
    limit = arguments.get("limit", _FEW)
    found = await db.rows("leads", {"stage": stage}, descending=True, limit=limit)
    count = await db.count("leads", {"stage": stage})
    return {"stage": stage, "count": count, "leads": [shown(lead) for lead in found]}


@looking
async def get(arguments: Arguments, scope: PackScope, db: Database) -> dict[str, Any]:
    lead = await the(db, "leads", arguments["lead_id"])
    launch_spec: dict[str, Any] = {}
    for table in ("inspections", "quotes", "jobs", "invoices", "tasks", "notes"):
        where = {"lead_id": lead["id"]} | ({"removed_at": None} if table == "notes" else {})
        found = await db.rows(table, where, descending=True, limit=_FEW)
        launch_spec[table] = [shown(row) for row in found]
    return {
        "lead_id": lead["id"],
        "name": lead["name"],
        "stage": lead["stage"],
        "lead": {**shown(lead), **launch_spec},
    }


@looking
async def find(arguments: Arguments, scope: PackScope, db: Database) -> dict[str, Any]:
    given = {name: value for name, value in arguments.items() if value}
    if not given:
        raise ToolBroke("say what to look for: query, phone, email or suburb")
    exact: dict[str, str] = {
        name: given[name] for name in ("phone", "email", "suburb") if name in given
    }
    where: dict[str, Any] = {
        name: value if name == "phone" else Contains(value) for name, value in exact.items()
    }
    found = await _matching(db, where, given.get("query", ""))
    fitting = [lead for lead in found if _fits(lead, exact)]
    return {"count": len(fitting), "leads": [shown(lead) for lead in fitting[:_FEW]]}


async def _matching(db: Database, where: dict[str, Any], query: str) -> list[Row]:
    """Newest first. With a query, those which have it in one of the searched columns."""
    if not query:
        return await db.rows("leads", where, descending=True)
    found: dict[str, Row] = {}
    for column in (column for column in _SEARCHED if column not in where):
        fitting = await db.rows("leads", {**where, column: Contains(query)}, descending=True)
        found |= {lead["id"]: lead for lead in fitting}
    return sorted(found.values(), key=lambda lead: str(lead["created_at"]), reverse=True)


def _fits(lead: Row, exact: dict[str, str]) -> bool:
    """Whole values, in capitals or not: Clayton is not Clayton South."""
    return all((lead[name] or "").casefold() == value.casefold() for name, value in exact.items())


@recorded
async def update(arguments: Arguments, scope: PackScope, db: Database) -> Done:
    lead = await the(db, "leads", arguments["lead_id"])
    must_stand("leads", lead, arguments)
    wanted = {name: arguments[name] or None for name in _DETAILS if name in arguments}
    changed = {name: value for name, value in wanted.items() if lead[name] != value}
    if not changed:
        raise ToolBroke(f"lead {lead['id']!r} already has these details; nothing to change")
    before = {name: lead[name] for name in changed}
    undo = {
        "lead_id": lead["id"],
        **{name: value or "" for name, value in before.items()},
        "expected": {name: value or "" for name, value in changed.items()},
    }
    result = {"lead_id": lead["id"], "changed": changed, "undo": undo}
    return Done([Update("leads", lead["id"], changed, before)], result)


@recorded
async def set_stage(arguments: Arguments, scope: PackScope, db: Database) -> Done:
    lead = await live(db, arguments["lead_id"])
    must_stand("leads", lead, arguments)
    stage, before = arguments["stage"], lead["stage"]
    if stage == "archived":
        raise ToolBroke("a lead is archived with leads.archive, so that it can be restored")
    if stage == before:
        raise ToolBroke(f"lead {lead['id']!r} is already at stage {stage}")
    result = {
        "lead_id": lead["id"],
        "stage": stage,
        "stage_before": before,
        "undo": {"lead_id": lead["id"], "stage": before, "expected": {"stage": stage}},
    }
    return Done([Update("leads", lead["id"], {"stage": stage}, {"stage": before})], result)


@recorded
async def assign(arguments: Arguments, scope: PackScope, db: Database) -> Done:
    lead = await live(db, arguments["lead_id"])
    must_stand("leads", lead, arguments)
    assignee, before = arguments["assignee"] or None, lead["assignee"]
    undo = {"assignee": before or "", "expected": {"assignee": assignee or ""}}
    result = {
        "lead_id": lead["id"],
        "assignee": assignee,
        "assignee_before": before,
        "undo": {"lead_id": lead["id"], **undo},
    }
    return Done([Update("leads", lead["id"], {"assignee": assignee}, {"assignee": before})], result)


@recorded
async def archive(arguments: Arguments, scope: PackScope, db: Database) -> Done:
    lead = await live(db, arguments["lead_id"])
    must_stand("leads", lead, arguments)
    stage = {"stage": "archived", "stage_before": lead["stage"]}
    change = Update(
        "leads",
        lead["id"],
        {**stage, "archived_because": arguments.get("reason")},
        {"stage": lead["stage"]},
    )
    undo = {"lead_id": lead["id"]}
    return Done([change], {"lead_id": lead["id"], **stage, "undo": undo})


@recorded
async def restore(arguments: Arguments, scope: PackScope, db: Database) -> Done:
    lead = await the(db, "leads", arguments["lead_id"])
    if lead["stage"] != "archived":
        raise ToolBroke(f"lead {lead['id']!r} is not archived; it is at stage {lead['stage']}")
    stage = lead["stage_before"] or "new"
    values = {"stage": stage, "stage_before": None, "archived_because": None}
    undo = {"lead_id": lead["id"], "expected": {"stage": stage}}
    if lead["archived_because"]:
        undo["reason"] = lead["archived_because"]
    result = {"lead_id": lead["id"], "stage": stage, "undo": undo}
    return Done([Update("leads", lead["id"], values, {"stage": "archived"})], result)


async def live(db: Database, lead_id: str) -> Row:
    """The lead. Raises `ToolBroke` when there is none, or when it is archived."""
    lead = await the(db, "leads", lead_id)
    if lead["stage"] == "archived":
        raise ToolBroke(f"lead {lead_id!r} is archived; bring it back with leads.restore first")
    return lead


def moved_on(lead: Row, stage: str) -> list[Change]:
    """The change that brings a lead forward to a stage; none when it is there or beyond."""
    if lead["stage"] not in STAGES or STAGES.index(lead["stage"]) >= STAGES.index(stage):
        return []
    return [Update("leads", lead["id"], {"stage": stage}, {"stage": lead["stage"]})]


def moved_back(lead: Row, stage: str, to: str) -> list[Change]:
    """The change that takes a lead back from a stage; none when it is at another."""
    if lead["stage"] != stage:
        return []
    return [Update("leads", lead["id"], {"stage": to}, {"stage": stage})]

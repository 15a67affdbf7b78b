"""Inspections: booked, made, filled with items, summed up, submitted."""

from __future__ import annotations

from podium.core.errors import ToolBroke
from podium.tools.packs import PackScope

from ..database import Change, Database, Delete, Insert, Update, new_id
from . import leads
from .days import today, upcoming
from .items import MAX_ITEMS, items_of, new_items, photo_ids
from .records import Arguments, Done, Row, must_be, must_stand, recorded, the
from .scope_of_works import scope_of_works

_UNFINISHED = ("scheduled", "open")
_REOPEN = "reopen it with inspection.reopen, or reinstate it with inspection.reinstate, first"


@recorded
async def create(arguments: Arguments, scope: PackScope, db: Database) -> Done:
    lead = await leads.live(db, arguments["lead_id"])
    inspection_id = new_id("inspection", scope.key)
    row = {
        "id": inspection_id,
        "lead_id": lead["id"],
        "site_address": _whole_address(arguments["site_address"], arguments.get("suburb")),
        "inspected_on": arguments.get("inspected_on") or today(scope),
        "status": "open",
        **{name: arguments.get(name) for name in ("roof_type", "inspector", "notes")},
    }
    photos = await _attached(db, inspection_id, arguments.get("asset_ids", []))
    result = {
        "inspection_id": inspection_id,
        **{name: row[name] for name in ("lead_id", "site_address", "status")},
        "undo": _called_off(row),
    }
    changes = [*leads.moved_on(lead, "inspection"), Insert("inspections", row), *photos]
    return Done(changes, result)


def _called_off(inspection: Row) -> dict[str, object]:
    """The arguments that take a new inspection back, unless it has gone on by then."""
    names = {"inspection_id": inspection["id"], "expected": {"status": inspection["status"]}}
    return {**names, "reason": "taken back"}


def _whole_address(address: str, suburb: str | None) -> str:
    if not suburb or suburb.casefold() in address.casefold():
        return address
    return f"{address}, {suburb}"


async def _attached(db: Database, inspection_id: str, asset_ids: list[str]) -> list[Change]:
    """Changes that put stored photos of no inspection under this one."""
    changes: list[Change] = []
    for asset_id in asset_ids:
        asset = await the(db, "media_assets", asset_id)
        must_be(asset, "photo", ("stored",), "bring it back with media.restore_asset first")
        if asset["inspection_id"] not in (None, inspection_id):
            raise ToolBroke(f"photo {asset_id!r} belongs to inspection {asset['inspection_id']!r}")
        expecting = {"inspection_id": asset["inspection_id"], "status": "stored"}
        changes.append(
            Update("media_assets", asset_id, {"inspection_id": inspection_id}, expecting)
        )
    return changes


@recorded
async def schedule(arguments: Arguments, scope: PackScope, db: Database) -> Done:
    lead = await leads.live(db, arguments["lead_id"])
    inspection_id = new_id("inspection", scope.key)
    row = {
        "id": inspection_id,
        "lead_id": lead["id"],
        "site_address": arguments.get("site_address") or _address_of(lead),
        "scheduled_on": upcoming(arguments["date"], "date", scope).isoformat(),
        "scheduled_time": arguments.get("time"),
        "inspector": arguments.get("inspector"),
        "status": "scheduled",
    }
    result = {
        "inspection_id": inspection_id,
        "lead_id": lead["id"],
        "date": row["scheduled_on"],
        "time": row["scheduled_time"],
        "status": "scheduled",
        "undo": _called_off(row),
    }
    return Done([*leads.moved_on(lead, "inspection"), Insert("inspections", row)], result)


def _address_of(lead: Row) -> str | None:
    if not lead["address"]:
        return lead["suburb"] or None
    return _whole_address(lead["address"], lead["suburb"])


@recorded
async def add_items(arguments: Arguments, scope: PackScope, db: Database) -> Done:
    inspection = await the(db, "inspections", arguments["inspection_id"])
    must_be(inspection, "inspection", _UNFINISHED, _REOPEN)
    there = await items_of(db, inspection["id"])
    photos = await photo_ids(db, inspection["id"])
    position = max((item["position"] for item in there), default=0) + 1
    rows = await new_items(db, arguments["items"], photos, MAX_ITEMS - len(there))
    made = [
        {
            **row,
            "id": new_id("item", scope.key, number),
            "inspection_id": inspection["id"],
            "position": position + number,
        }
        for number, row in enumerate(rows)
    ]
    ids = [row["id"] for row in made]
    result = {
        "inspection_id": inspection["id"],
        "item_ids": ids,
        "last_item_id": ids[-1],
        "count": len(ids),
        "undo": {"inspection_id": inspection["id"], "item_ids": ids},
    }
    return Done(
        [_begun(inspection, scope), *(Insert("inspection_items", row) for row in made)], result
    )


def _begun(inspection: Row, scope: PackScope) -> Change:
    """Findings mean that somebody was there: a booked inspection is open from now on."""
    values = {"status": "open", "inspected_on": inspection["inspected_on"] or today(scope)}
    return Update("inspections", inspection["id"], values, {"status": inspection["status"]})


@recorded
async def remove_items(arguments: Arguments, scope: PackScope, db: Database) -> Done:
    inspection = await the(db, "inspections", arguments["inspection_id"])
    must_be(inspection, "inspection", _UNFINISHED, _REOPEN)
    there = {item["id"]: item for item in await items_of(db, inspection["id"])}
    ids = arguments["item_ids"]
    missing = [entry for entry in ids if entry not in there]
    if missing:
        raise ToolBroke(f"inspection {inspection['id']!r} has no item {', '.join(missing)}")
    fields = ("kind", "label", "value", "unit", "severity", "notes", "asset_ids")
    kept = [{name: there[entry][name] for name in fields if there[entry][name]} for entry in ids]
    result = {
        "inspection_id": inspection["id"],
        "item_ids": ids,
        "last_item_id": ids[-1],
        "count": len(ids),
        "undo": {"inspection_id": inspection["id"], "items": kept},
    }
    same = Update("inspections", inspection["id"], {}, {"status": inspection["status"]})
    return Done([same, *(Delete("inspection_items", entry) for entry in ids)], result)


@recorded
async def generate_scope_summary(arguments: Arguments, scope: PackScope, db: Database) -> Done:
    inspection = await the(db, "inspections", arguments["inspection_id"])
    must_be(inspection, "inspection", _UNFINISHED, _REOPEN)
    items = await _some_items(db, inspection)
    version = inspection["scope_version"] + 1
    summary = scope_of_works(inspection, items)
    change = Update(
        "inspections",
        inspection["id"],
        {"scope_summary": summary, "scope_version": version},
        {"scope_version": inspection["scope_version"], "status": inspection["status"]},
    )
    result = {"inspection_id": inspection["id"], "version": version, "summary": summary}
    return Done([change], result)


async def _some_items(db: Database, inspection: Row) -> list[Row]:
    items = await items_of(db, inspection["id"])
    if not items:
        raise ToolBroke(
            f"inspection {inspection['id']!r} has no items; "
            "add measurements and defects with inspection.add_items first"
        )
    return items


@recorded
async def submit(arguments: Arguments, scope: PackScope, db: Database) -> Done:
    inspection = await the(db, "inspections", arguments["inspection_id"])
    must_be(inspection, "inspection", _UNFINISHED, "there is nothing to submit")
    await _some_items(db, inspection)
    values = {"status": "submitted", "submitted_at": scope.now}
    result = {
        "inspection_id": inspection["id"],
        "lead_id": inspection["lead_id"],
        "status": "submitted",
        "undo": {"inspection_id": inspection["id"]},
    }
    expecting = {"status": inspection["status"]}
    return Done([Update("inspections", inspection["id"], values, expecting)], result)


@recorded
async def reopen(arguments: Arguments, scope: PackScope, db: Database) -> Done:
    inspection = await the(db, "inspections", arguments["inspection_id"])
    must_be(inspection, "inspection", ("submitted",), "there is nothing to reopen")
    await _no_quote_rests_on(db, inspection, ("final", "accepted"))
    values = {"status": "open", "submitted_at": None}
    result = {
        "inspection_id": inspection["id"],
        "status": "open",
        "undo": {"inspection_id": inspection["id"]},
    }
    return Done([Update("inspections", inspection["id"], values, {"status": "submitted"})], result)


@recorded
async def cancel(arguments: Arguments, scope: PackScope, db: Database) -> Done:
    inspection = await the(db, "inspections", arguments["inspection_id"])
    must_be(inspection, "inspection", (*_UNFINISHED, "submitted"), "there is nothing to cancel")
    must_stand("inspections", inspection, arguments)
    await _no_quote_rests_on(db, inspection, ("draft", "final", "accepted"))
    before = inspection["status"]
    status = {"status": "cancelled", "status_before": before}
    values = {**status, "cancelled_because": arguments.get("reason")}
    result = {
        "inspection_id": inspection["id"],
        **status,
        "undo": {"inspection_id": inspection["id"]},
    }
    return Done([Update("inspections", inspection["id"], values, {"status": before})], result)


async def _no_quote_rests_on(db: Database, inspection: Row, statuses: tuple[str, ...]) -> None:
    where = {"inspection_id": inspection["id"], "status": statuses}
    for quote in await db.rows("quotes", where, limit=1):
        way = "quote.reopen" if quote["status"] == "final" else "quote.decline"
        raise ToolBroke(
            f"quote {quote['id']!r} ({quote['status']}) is based on inspection {inspection['id']!r}; "
            f"settle it with {way} first"
        )


@recorded
async def reinstate(arguments: Arguments, scope: PackScope, db: Database) -> Done:
    inspection = await the(db, "inspections", arguments["inspection_id"])
    must_be(inspection, "inspection", ("cancelled",), "there is nothing to reinstate")
    status = inspection["status_before"] or "open"
    values = {"status": status, "status_before": None, "cancelled_because": None}
    undo = {"inspection_id": inspection["id"], "expected": {"status": status}}
    if inspection["cancelled_because"]:
        undo["reason"] = inspection["cancelled_because"]
    result = {"inspection_id": inspection["id"], "status": status, "undo": undo}
    return Done([Update("inspections", inspection["id"], values, {"status": "cancelled"})], result)

"""A bicycle workshop's registry: nothing in it is known to the code."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from typing import Any

from podium.core.packs import Pack, PackRegistry
from podium.jobs.operator.judgement.fields import FieldExtractor, entities
from podium.jobs.operator.models import Message

NOW = datetime(2026, 11, 16, 9, 0, tzinfo=timezone(timedelta(hours=11)))
"""A Monday."""

SUBURBS: tuple[str, ...] = (
    "Clayton",
    "Clayton South",
    "Glen Waverley",
    "Mount Waverley",
    "Dandenong North",
    "Preston",
    "Northcote",
    "St Kilda",
    "Box Hill",
    "Carlton",
)
VOCABULARY: dict[str, tuple[str, ...]] = {"suburb": SUBURBS}

Shape = dict[str, Any]


def kind(name: str, **more: Any) -> Shape:
    return {"type": "string", "minLength": 1, "x-kind": name, **more}


STAGE = kind(
    "choice",
    enum=["waiting", "on_stand", "ready", "all"],
    **{"x-words": {"on_stand": ["being repaired", "in progress"], "ready": ["finished"]}},
)
PHONE = kind("phone", pattern=r"^(\+[1-9][0-9]{6,14}|1[38][0-9]{4,8})$")
SUM = {"type": "number", "exclusiveMinimum": 0, "x-kind": "money"}


def tool(
    called: str,
    required: str,
    /,
    tier: str = "T1",
    synonyms: tuple[str, ...] = (),
    **properties: Shape,
) -> Shape:
    return {
        "name": called,
        "description": called,
        "synonyms": list(synonyms),
        "tier": tier,
        "receipt_fields": ["id"],
        "handler": "handlers:perform",
        "input_schema": {
            "type": "object",
            "properties": properties,
            "required": required.split(),
            "additionalProperties": False,
        },
    }


REGISTRY = {
    "pack": "bikes",
    "version": "1",
    "description": "A bicycle workshop",
    "domains": [
        {"name": "rider", "patterns": ["riders.*"], "default_tier": "T1", "words": ["rider", "customer"]},
        {"name": "repair", "patterns": ["repair.*"], "default_tier": "T2", "words": ["repair", "ticket", "service"]},
        {"name": "desk", "patterns": ["desk.*"], "default_tier": "T1", "words": ["memo", "errand"]},
        {"name": "bill", "patterns": ["bill.*"], "default_tier": "T3", "words": ["bill", "receipt"]},
    ],
    "tools": [
        tool("riders.add", "name phone suburb", synonyms=("new rider", "sign up"), name=kind("name"), phone=PHONE, suburb=kind("suburb"), email=kind("email"), address=kind("address"), postcode=kind("postcode", pattern="^[0-9]{4}$"), remarks=kind("text")),
        tool("riders.find", "", tier="T0", synonyms=("look up rider",), query=kind("text"), phone=PHONE, suburb=kind("suburb")),
        tool("repair.book", "rider_id date", synonyms=("book service",), rider_id=kind("id:rider"), date=kind("date"), time=kind("time"), mechanic=kind("name"), express={"type": "boolean", "x-kind": "flag"}),
        tool("repair.pickup", "repair_id at", repair_id=kind("id:repair"), at=kind("datetime")),
        tool("repair.list", "", tier="T0", stage=STAGE, limit={"type": "integer", "minimum": 1, "maximum": 100, "x-kind": "number"}),
        tool("repair.move", "repair_id stage", repair_id=kind("id:repair"), stage=STAGE),
        tool("repair.add_part", "repair_id part price", synonyms=("put on ticket",), repair_id=kind("id:repair"), description=kind("text"), part=kind("text"), price=SUM, quantity={"type": "number", "x-kind": "number"}),
        tool("repair.scrap", "repair_id reason", tier="T4", repair_id=kind("id:repair"), reason=kind("text")),
        tool("repair.hand_over", "repair_id assignee", synonyms=("give to",), repair_id=kind("id:repair"), assignee=kind("name")),
        tool("repair.merge", "repair_ids", repair_ids={"type": "array", "minItems": 1, "items": {"type": "string"}, "x-kind": "id:repair"}),
        tool("desk.errand", "title", synonyms=("remind me to", "to-do"), title=kind("text"), due=kind("date"), assignee=kind("name"), rider_id=kind("id:rider")),
        tool("desk.memo", "text", synonyms=("write down",), text=kind("text"), rider_id=kind("id:rider")),
        tool("desk.search", "query", tier="T0", synonyms=("search memos",), query=kind("text")),
        tool("desk.sms", "to text", tier="T3", synonyms=("text", "send text"), to=PHONE, text=kind("text")),
        tool("desk.mail", "to subject body", tier="T3", synonyms=("email", "write to"), to=kind("email"), subject=kind("text"), body=kind("text")),
        tool("bill.pay", "bill_id amount", tier="T3", synonyms=("record payment",), bill_id=kind("id:bill"), amount=SUM, method=kind("choice", enum=["card", "cash", "transfer"])),
        tool("bill.takings", "", "T0", (), **{"from": kind("date"), "to": kind("date")}),
    ],
}  # fmt: skip


def bike_workshop() -> Pack:
    registry = PackRegistry.model_validate(REGISTRY)
    return Pack(registry=registry, folder="bikes", digest="bikes", vocabulary=VOCABULARY)


PACK = bike_workshop()
EXTRACTOR = FieldExtractor(PACK)


def read(tool_name: str, clause: str, **context: Any) -> dict[str, Any]:
    """The arguments of one of the workshop's tools."""
    tool = PACK.tool(tool_name)
    assert tool is not None
    return EXTRACTOR.arguments(clause, tool, Message(text=clause, context=context, now=NOW))


def found(kind: str, text: str) -> list[Any]:
    """The values of one kind in a text, without knowledge of a pack's things."""
    return [entity.value for entity in entities(text, NOW, VOCABULARY) if entity.kind == kind]

"""A registry that has nothing to do with roofs: appointments, patients and bills of a dentist."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from typing import Any

from podium.core.packs import Pack, PackRegistry
from podium.jobs.operator.judgement.embedded import EmbeddedClassifier
from podium.jobs.operator.judgement.fields import FieldExtractor
from podium.jobs.operator.models import Message, Reading

NOW = datetime(2026, 11, 16, 9, tzinfo=timezone(timedelta(hours=1)))

PATIENT = {"patient_id": {"type": "string", "x-kind": "id:patient", "x-ask": "Which patient?"}}
VISIT = {"visit_id": {"type": "string", "x-kind": "id:visit", "x-ask": "Which visit?"}}
BILL = {"bill_id": {"type": "string", "x-kind": "id:bill", "x-ask": "Which bill?"}}
NAME = {"name": {"type": "string", "x-kind": "name"}}
PHONE = {"phone": {"type": "string", "x-kind": "phone"}}
DATE = {"date": {"type": "string", "x-kind": "date"}}
AMOUNT = {"amount": {"type": "number", "x-kind": "money"}}
TEXT = {"text": {"type": "string", "x-kind": "text"}}
WHEN = {"when": {"type": "string", "enum": ["today", "upcoming", "missed"], "x-kind": "choice"}}


def tool(
    name: str,
    tier: str,
    description: str,
    properties: dict[str, Any],
    synonyms: tuple[str, ...] = (),
    examples: tuple[str, ...] = (),
    needs: int | None = None,
) -> dict[str, Any]:
    """`needs`: how many of the properties, from the first, are required; all unless told."""
    return {
        "name": name,
        "tier": tier,
        "description": description,
        "synonyms": synonyms,
        "examples": [{"say": say} for say in examples],
        "input_schema": {
            "type": "object",
            "properties": properties,
            "required": list(properties)[:needs],
        },
        "receipt_fields": ["id"],
        "handler": "desk:do",
    }


REGISTRY: dict[str, Any] = {
    "pack": "dental",
    "version": "1",
    "description": "A dentist's desk.",
    "domains": [
        {"name": "patient", "patterns": ["patient.*"], "default_tier": "T1", "words": ["patient"]},
        {
            "name": "visit",
            "patterns": ["visit.*"],
            "default_tier": "T1",
            "words": ["visit", "appointment", "check-up"],
        },
        {"name": "billing", "patterns": ["bill.*"], "default_tier": "T3", "words": ["bill", "fee"]},
        {"name": "desk", "patterns": ["desk.*"], "default_tier": "T0", "words": ["desk"]},
    ],
    "tools": [
        tool(
            "patient.register",
            "T1",
            "Enter a new patient with a phone number.",
            {**NAME, **PHONE},
            ("new patient", "sign up patient", "add patient"),
            ("a new patient called, he wants to join",),
        ),
        tool("patient.find", "T0", "Search patients by name.", {**NAME}, ("look up patient",)),
        tool("patient.discharge", "T4", "Take a patient off the books.", {**PATIENT}),
        tool(
            "visit.book",
            "T1",
            "Book a patient's appointment for a day.",
            {**PATIENT, **DATE},
            ("make appointment", "schedule check-up", "pencil in visit"),
        ),
        tool(
            "visit.cancel",
            "T2",
            "Cancel an appointment.",
            {**VISIT},
            ("call off appointment", "drop visit"),
        ),
        tool("visit.complete", "T2", "The visit took place.", {**VISIT}, ("visit is finished",)),
        tool("visit.list", "T0", "List visits.", {**WHEN}, ("show appointments",), needs=0),
        tool("bill.create", "T3", "Bill a visit.", {**VISIT, **AMOUNT}, ("charge visit",), needs=1),
        tool(
            "bill.void",
            "T4",
            "Void a bill.",
            {**BILL},
            examples=("that bill isn't right, void it", "bill B-7 should never have gone out"),
        ),
        tool("bill.show", "T0", "Show one bill.", {**BILL}, ("what is owed on the bill",)),
        tool("bill.list", "T0", "List bills.", {}, ("unpaid bills", "who owes us")),
        tool(
            "desk.message",
            "T3",
            "Send a text message to a phone.",
            {**PHONE, **TEXT},
            ("text", "send sms", "tell patient"),
        ),
        tool(
            "desk.memo",
            "T1",
            "Write a memo for the team.",
            {**TEXT},
            ("make a memo", "note down", "remember that"),
            ("memo: the drill is broken",),
        ),
    ],
    "skills": [
        {
            "name": "visit.wrap_up",
            "description": "Complete a visit and bill it.",
            "synonyms": ["wrap up visit"],
            "input_schema": {"type": "object", "properties": {**VISIT}, "required": ["visit_id"]},
            "steps": [
                {"id": "done", "tool": "visit.complete", "arguments": {}},
                {"id": "bill", "tool": "bill.create", "arguments": {}},
            ],
        }
    ],
}

PACK = Pack(registry=PackRegistry.model_validate(REGISTRY), folder="dental", digest="d")
CLASSIFIER = EmbeddedClassifier(PACK, FieldExtractor(PACK))


def read(text: str, **context: Any) -> Reading:
    return CLASSIFIER.reading(Message(text=text, context=context, now=NOW))


def tools(text: str, **context: Any) -> list[str]:
    """Return the tools that would be called; empty when none."""
    reading = read(text, **context)
    assert reading.intent == "execute" or not reading.calls
    return [tool_intent.tool for tool_intent in reading.calls]

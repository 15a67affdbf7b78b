"""Plan schema v1 and the work order's, as published and in words: what a plan may say, and how much of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, get_args

from podium.domain.gating import Tier
from podium.domain.model import Json
from podium.domain.orders import FIELDS, MOST_OPS, ORDER_ID, Operation, WorkOrder
from podium.domain.sensing import Action, ItemType, Priority

DRAFT = "https://json-schema.org/draft/2020-12/schema"

MOST_BYTES = 1_000_000
MOST_DEPTH = 60
MOST_ITEMS = 100
MOST_TASKS = 100
LONGEST_TITLE = 300
LONGEST_SUMMARY = 10_000
LONGEST_TASK = 4_000
LONGEST_TARGET = 200

TYPES: tuple[str, ...] = get_args(ItemType)
PRIORITIES: tuple[str, ...] = get_args(Priority)
ACTIONS: tuple[str, ...] = get_args(Action)

MESSAGE_KEYS = ("message", "summary", "description", "details", "reason", "text", "title")
"""Where an item's words may stand. The first is the one that planners are told of."""

IDLE_TYPES = ("noop", "info")
"""Of these types there is nothing to do, whatever the action says."""


def plan_schema() -> dict[str, Json]:
    """What a planner writes. Keys beyond it are no fault and mean nothing."""
    return {
        "$schema": DRAFT,
        "title": "GMX plan, schema v1",
        "description": "What a planner thinks should be done about the state of a system.",
        "type": "object",
        "required": ["items"],
        "properties": {
            "timestamp": _optional("When it was made."),
            "source": _optional("Who made it."),
            "context_summary": _optional("The state of the system in a sentence or two."),
            "items": {"type": "array", "maxItems": MOST_ITEMS, "items": _published_item()},
        },
        "$defs": {"Operation": operation_schema()},
    }


def work_order_schema() -> dict[str, Json]:
    """What lies in the inbox, one order to a file."""
    schema: dict[str, Any] = WorkOrder.model_json_schema()
    schema["properties"]["id"] |= _order_id()
    # In files a tier is its name: numbers would say nothing to whoever reads them.
    tiers = {"enum": [*Tier.__members__], "type": "string"}
    schema["properties"]["tier"] = {"anyOf": [tiers, {"type": "null"}], "default": None}
    schema["$defs"] = {"Operation": operation_schema()}
    return {"$schema": DRAFT, **schema}


def operation_schema() -> dict[str, Json]:
    """One operation; which fields it has follows from `op`."""
    fields = Operation.model_json_schema()["properties"]
    fields["session"]["anyOf"][0] |= _order_id()
    return {
        "title": "Operation",
        "description": "One thing to do. `op` says which fields it has.",
        "type": "object",
        "required": ["op"],
        "oneOf": [_variant(op, fields) for op in FIELDS],
    }


def _variant(op: str, fields: dict[str, Any]) -> dict[str, Json]:
    needed, allowed = FIELDS[op]
    given = {name: _without_null(fields[name]) for name in (*needed, *allowed)}
    why = {"type": "string", "description": "What it is for. Changes nothing."}
    return {
        "properties": {"op": {"const": op}, **given, "why": why},
        "required": ["op", *needed],
        "additionalProperties": False,
    }


def _without_null(field: dict[str, Any]) -> dict[str, Json]:
    kinds = [kind for kind in field["anyOf"] if kind != {"type": "null"}]
    return kinds[0] if len(kinds) == 1 else {"anyOf": kinds}


def item_schema() -> dict[str, Json]:
    """An item of a plan, as a planner is shown it; the prompt says which fields an operation has."""
    return _item(operation={"type": "object", "required": ["op"]})


def _published_item() -> dict[str, Json]:
    return _item(operation={"$ref": "#/$defs/Operation"}) | {
        "if": {"properties": {"action": {"const": "create_wo"}}, "required": ["action"]},
        "then": {
            "required": ["wo_suggestion"],
            "properties": {
                "wo_suggestion": {"type": "object", "required": ["wo_id_hint", "title"]}
            },
        },
    }


def _item(*, operation: Json) -> dict[str, Json]:
    return {
        "type": "object",
        "required": ["type", "priority", "target", "action"],
        "properties": {
            "type": {"enum": [*TYPES]},
            "priority": {"enum": [*PRIORITIES]},
            "target": {
                "type": "string",
                "minLength": 1,
                "maxLength": LONGEST_TARGET,
                "description": "What it is about, such as `opal_api`, `clc_worker` or `bridge_inbox`.",
            },
            "action": {"enum": [*ACTIONS]},
            "message": _optional(
                "What people are told: with `alert` and `log` the reason, in a sentence or two.",
                LONGEST_SUMMARY,
            ),
            "wo_suggestion": _suggestion(operation),
        },
    }


def _suggestion(operation: Json) -> dict[str, Json]:
    return {
        "type": ["object", "null"],
        "description": "The work order that is needed; with `create_wo` it must be there.",
        "properties": {
            "wo_id_hint": _order_id() | {"type": "string"},
            "title": {"type": "string", "minLength": 1, "maxLength": LONGEST_TITLE},
            "summary": _optional("What the order will accomplish.", LONGEST_SUMMARY),
            "tasks": {
                "type": ["array", "null"],
                "maxItems": MOST_TASKS,
                "items": {"type": "string", "maxLength": LONGEST_TASK},
            },
            "ops": {
                "type": ["array", "null"],
                "maxItems": MOST_OPS,
                "items": operation,
                "description": "The work as operations, where the planner knows them.",
            },
        },
    }


def _optional(description: str, longest: int | None = None) -> dict[str, Json]:
    bound = {} if longest is None else {"maxLength": longest}
    return {"type": ["string", "null"], "description": description, **bound}


def _order_id() -> dict[str, Json]:
    return {"pattern": f"^{ORDER_ID.pattern}$"}


def operations_in_words() -> str:
    """The operations of a work order, each with its fields."""
    return "; ".join(_operations())


def _operations() -> Iterator[str]:
    for op, (needed, allowed) in FIELDS.items():
        fields = [*needed, *(f"{name} if needed" for name in allowed)]
        yield f"{op} ({', '.join(fields)})"


def zones_in_words(safe_zones: Sequence[str], forbidden_zones: Sequence[str]) -> str:
    """Where a work order may act."""
    nothing = f" Nothing may touch: {', '.join(forbidden_zones)}." if forbidden_zones else ""
    return (
        f"Paths are relative to the root and lie in: {', '.join(safe_zones) or 'nowhere'}.{nothing}"
    )

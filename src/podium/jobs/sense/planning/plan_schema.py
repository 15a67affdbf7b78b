"""Plan schema v1 as published, and the strict, bounded reader of a plan's JSON document."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from typing import Any, NoReturn, get_args

from podium.core.decisions import Tier
from podium.core.model import Json
from podium.jobs.sense.models import Action, ItemType, Priority
from podium.jobs.sense.orders.work_order import FIELDS, MAX_OPS, ORDER_ID, Operation, WorkOrder
from podium.platform.invisible_text import written_out

DRAFT = "https://json-schema.org/draft/2020-12/schema"

MAX_BYTES = 1_000_000
MAX_DEPTH = 60
MAX_ITEMS = 100
MAX_TASKS = 100
MAX_TITLE = 300
MAX_SUMMARY = 10_000
MAX_TASK = 4_000
MAX_TARGET = 200

TYPES: tuple[str, ...] = get_args(ItemType)
PRIORITIES: tuple[str, ...] = get_args(Priority)
ACTIONS: tuple[str, ...] = get_args(Action)

MESSAGE_KEYS = ("message", "summary", "description", "details", "reason", "text", "title")
"""Keys that may hold an item's message. The prompt names the first one."""

IDLE_TYPES = ("noop", "info")
"""Of these types there is nothing to do, whatever the action says."""


def plan_schema() -> dict[str, Json]:
    """Return the JSON Schema of a planner's answer. Other keys are allowed and ignored."""
    return {
        "$schema": DRAFT,
        "title": "GMX plan, schema v1",
        "description": "What a planner proposes to do about the state of a system.",
        "type": "object",
        "required": ["items"],
        "properties": {
            "timestamp": _optional("Time at which the plan was made."),
            "source": _optional("Program or person that made the plan."),
            "context_summary": _optional("The state of the system in a sentence or two."),
            "items": {"type": "array", "maxItems": MAX_ITEMS, "items": _published_item()},
        },
        "$defs": {"Operation": operation_schema()},
    }


def work_order_schema() -> dict[str, Json]:
    """Return the JSON Schema of an order in the inbox, one to a file."""
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
        "description": "One operation. `op` determines its fields.",
        "type": "object",
        "required": ["op"],
        "oneOf": [_variant(op, fields) for op in FIELDS],
    }


def _variant(op: str, fields: dict[str, Any]) -> dict[str, Json]:
    needed, allowed = FIELDS[op]
    properties = {name: _without_null(fields[name]) for name in (*needed, *allowed)}
    why = {"type": "string", "description": "Purpose of the operation. Has no effect."}
    return {
        "properties": {"op": {"const": op}, **properties, "why": why},
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
                "maxLength": MAX_TARGET,
                "description": "What the item is about, such as `opal_api`, `clc_worker` or `bridge_inbox`.",
            },
            "action": {"enum": [*ACTIONS]},
            "message": _optional(
                "Message for people: with `alert` and `log` the reason, in a sentence or two.",
                MAX_SUMMARY,
            ),
            "wo_suggestion": _suggestion(operation),
        },
    }


def _suggestion(operation: Json) -> dict[str, Json]:
    return {
        "type": ["object", "null"],
        "description": "The work order to create; required with `create_wo`.",
        "properties": {
            "wo_id_hint": _order_id() | {"type": "string"},
            "title": {"type": "string", "minLength": 1, "maxLength": MAX_TITLE},
            "summary": _optional("What the order will accomplish.", MAX_SUMMARY),
            "tasks": {
                "type": ["array", "null"],
                "maxItems": MAX_TASKS,
                "items": {"type": "string", "maxLength": MAX_TASK},
            },
            "ops": {
                "type": ["array", "null"],
                "maxItems": MAX_OPS,
                "items": operation,
                "description": "The work as operations, if the planner knows them.",
            },
        },
    }


def _optional(description: str, longest: int | None = None) -> dict[str, Json]:
    bound = {} if longest is None else {"maxLength": longest}
    return {"type": ["string", "null"], "description": description, **bound}


def _order_id() -> dict[str, Json]:
    return {"pattern": f"^{ORDER_ID.pattern}$"}


def operations_text() -> str:
    """The operations of a work order, each with its fields."""
    return "; ".join(_operations())


def _operations() -> Iterator[str]:
    for op, (needed, allowed) in FIELDS.items():
        fields = [*needed, *(f"{name} if needed" for name in allowed)]
        yield f"{op} ({', '.join(fields)})"


def zones_text(safe_zones: Sequence[str], forbidden_zones: Sequence[str]) -> str:
    """Name the zones in which a work order may act, and those it must not touch."""
    nothing = f" Nothing may touch: {', '.join(forbidden_zones)}." if forbidden_zones else ""
    return f"Paths are relative to the root, in one of these zones: {', '.join(safe_zones) or 'none'}.{nothing}"


class Broken(ValueError):
    """No plan can be made of this document. Its words say why."""


def read_document(document: str | bytes | Json) -> dict[str, Json]:
    """The document with its list of items. Raises `Broken`."""
    plan = _parsed(_text_of(document))
    if not isinstance(plan, dict):
        raise Broken(f"the plan must be a JSON object, not {_kind(plan)}; write {{\"items\": […]}}")  # fmt: skip
    if "items" not in plan:
        raise Broken("the plan has no 'items'; add a list, which is empty if there is nothing to do")  # fmt: skip
    if not isinstance(plan["items"], list):
        raise Broken(f"'items' must be a list, not {_kind(plan['items'])}")
    return plan


def _text_of(document: str | bytes | Json) -> str:
    if not isinstance(document, str | bytes):
        document = _dumped(document)
    size = len(document.encode(errors="replace") if isinstance(document, str) else document)
    if size > MAX_BYTES:
        raise Broken(f"the plan is larger than the limit of {MAX_BYTES:,} bytes")
    if isinstance(document, str):
        return document.removeprefix("\ufeff")
    try:
        return document.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = document.count(b"\n", 0, error.start) + 1
        raise Broken(f"the plan is not valid UTF-8 (line {line}, byte {error.start}); save it as UTF-8") from None  # fmt: skip


def _dumped(document: Json) -> str:
    try:
        return json.dumps(document, allow_nan=False, ensure_ascii=False)
    except RecursionError:
        raise _too_deep() from None
    except (TypeError, ValueError) as error:
        raise Broken(f"the plan contains values that JSON does not support: {error}") from None


def _parsed(text: str) -> Json:
    if not text.strip():
        raise Broken('the plan is empty; write {"items": []} if there is nothing to do')
    try:
        plan = json.loads(
            text, object_pairs_hook=_unique_keys, parse_constant=_no_number, parse_float=_finite
        )
    except json.JSONDecodeError as error:
        raise Broken(f"the plan is not valid JSON: {error.msg} (line {error.lineno}, column {error.colno})") from None  # fmt: skip
    except RecursionError:
        raise _too_deep() from None
    except Broken:
        raise
    except ValueError:
        # The one left: Python reads no whole number of thousands of digits.
        raise Broken("the plan contains a number with too many digits") from None
    if _is_deeper(plan, MAX_DEPTH):
        raise _too_deep()
    return plan


def _unique_keys(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
    unique: dict[str, Json] = {}
    for name, value in pairs:
        if name in unique:
            key = written_out(repr(name[:60]))
            raise Broken(f"duplicate key {key} in one object; keep one of the two")
        unique[name] = value
    return unique


def _no_number(token: str) -> NoReturn:
    raise Broken(f"the plan is not valid JSON: {token[:40]} is not a JSON number")


def _finite(digits: str) -> float:
    number = float(digits)
    if not math.isfinite(number):
        _no_number(digits)
    return number


def _too_deep() -> Broken:
    return Broken(f"the plan is nested deeper than {MAX_DEPTH} levels")


def _is_deeper(value: Json, depth: int) -> bool:
    level = [value]
    for _ in range(depth):
        level = [inner for parent in level for inner in _inside(parent)]
        if not level:
            return False
    return True


def _inside(value: Json) -> list[Json]:
    if isinstance(value, dict):
        return [*value.values()]
    return value if isinstance(value, list) else []


def _kind(value: Json) -> str:
    kinds = {dict: "an object", list: "a list", str: "text", bool: "true or false"}
    if value is None:
        return "null"
    return kinds.get(type(value), "a number")

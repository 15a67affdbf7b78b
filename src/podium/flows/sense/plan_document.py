"""The document of a plan: JSON that can be read in one way only, within bounds."""

from __future__ import annotations

import json
import math
from typing import NoReturn

from podium.domain.model import Json
from podium.domain.seeing import written_out
from podium.flows.sense.plan_schema import MOST_BYTES, MOST_DEPTH


class Broken(ValueError):
    """No plan can be made of this document. Its words say why."""


def read_document(document: str | bytes | Json) -> dict[str, Json]:
    """The document with its list of items. Raises `Broken`."""
    plan = _parsed(_text_of(document))
    if not isinstance(plan, dict):
        raise Broken(f"the plan is no JSON object but {_kind(plan)}; write {{\"items\": […]}}")  # fmt: skip
    if "items" not in plan:
        raise Broken("the plan has no 'items'; write them as a list, an empty one when nothing is to be done")  # fmt: skip
    if not isinstance(plan["items"], list):
        raise Broken(f"'items' must be a list, not {_kind(plan['items'])}")
    return plan


def _text_of(document: str | bytes | Json) -> str:
    if not isinstance(document, str | bytes):
        document = _dumped(document)
    size = len(document.encode(errors="replace") if isinstance(document, str) else document)
    if size > MOST_BYTES:
        raise Broken(f"the plan is larger than {MOST_BYTES:,} bytes; plans are small")
    if isinstance(document, str):
        return document.removeprefix("\ufeff")
    try:
        return document.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = document.count(b"\n", 0, error.start) + 1
        raise Broken(f"the plan is no UTF-8 text (line {line}, byte {error.start}); save it as UTF-8") from None  # fmt: skip


def _dumped(document: Json) -> str:
    try:
        return json.dumps(document, allow_nan=False, ensure_ascii=False)
    except RecursionError:
        raise _too_deep() from None
    except (TypeError, ValueError) as error:
        raise Broken(f"the plan holds what JSON cannot: {error}") from None


def _parsed(text: str) -> Json:
    if not text.strip():
        raise Broken('the plan is empty; write {"items": []} when nothing is to be done')
    try:
        plan = json.loads(
            text, object_pairs_hook=_each_once, parse_constant=_no_number, parse_float=_finite
        )
    except json.JSONDecodeError as error:
        raise Broken(f"the plan is no JSON: {error.msg} (line {error.lineno}, column {error.colno})") from None  # fmt: skip
    except RecursionError:
        raise _too_deep() from None
    except Broken:
        raise
    except ValueError:
        # The one left: Python reads no whole number of thousands of digits.
        raise Broken("the plan holds a number of too many digits to be read") from None
    if _is_deeper(plan, MOST_DEPTH):
        raise _too_deep()
    return plan


def _each_once(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
    found: dict[str, Json] = {}
    for name, value in pairs:
        if name in found:
            shown = written_out(repr(name[:60]))
            raise Broken(f"the key {shown} stands twice in one object; keep one of the two")
        found[name] = value
    return found


def _no_number(word: str) -> NoReturn:
    raise Broken(f"the plan is no JSON: {word[:40]} is no number of JSON's")


def _finite(digits: str) -> float:
    number = float(digits)
    if not math.isfinite(number):
        _no_number(digits)
    return number


def _too_deep() -> Broken:
    return Broken(f"the plan is nested more than {MOST_DEPTH} deep")


def _is_deeper(value: Json, depth: int) -> bool:
    level = [value]
    for _ in range(depth):
        level = [inner for each in level for inner in _inside(each)]
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

"""A quick look at a JSON Schema that finds the everyday ones sound.

Holding a schema against the standard's own takes milliseconds, which a registry of a thousand tools
cannot spend at each start. What is not surely sound here has to be looked at in that slow way.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from itertools import pairwise

from podium.domain.model import Json

_TYPES = frozenset({"object", "array", "string", "number", "integer", "boolean", "null"})
_DEEPEST = 50


def surely_sound(schema: Json, depth: int = 0) -> bool:
    """True: a schema of draft 2020-12 beyond doubt. False: it has to be checked properly.

    Where references lead is not looked at.
    """
    if isinstance(schema, bool):
        return True
    if not isinstance(schema, dict) or depth > _DEEPEST:
        return False
    return all(_is_sound(key, value, depth) for key, value in schema.items())


def _is_sound(key: str, value: Json, depth: int) -> bool:
    if key.startswith("x-"):
        return True
    if key in _SCHEMA:
        return surely_sound(value, depth + 1)
    if key in _SCHEMAS_BY_NAME:
        return isinstance(value, dict) and _all_sound(list(value.values()), depth)
    if key in _SCHEMA_LISTS:
        return isinstance(value, list) and bool(value) and _all_sound(value, depth)
    check = _VALUES.get(key)
    return check is not None and check(value)


def _all_sound(schemas: list[Json], depth: int) -> bool:
    return all(surely_sound(each, depth + 1) for each in schemas)


def _is_text(value: Json) -> bool:
    return isinstance(value, str)


def _is_anything(value: Json) -> bool:
    return True


def _is_flag(value: Json) -> bool:
    return isinstance(value, bool)


def _is_list(value: Json) -> bool:
    return isinstance(value, list)


def _is_number(value: Json) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_count(value: Json) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _is_type(value: Json) -> bool:
    if isinstance(value, str):
        return value in _TYPES
    return _are_names(value) and bool(value) and _TYPES.issuperset(value)


def _are_names(value: Json) -> bool:
    """Texts, none of them twice."""
    if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
        return False
    return all(one != other for one, other in pairwise(sorted(value)))


@lru_cache(maxsize=1_000)
def compiles(pattern: str) -> bool:
    """Whether a `pattern` can be used at all; the standard's own schema does not look."""
    try:
        re.compile(pattern)
    except (re.error, RecursionError, OverflowError):
        return False
    return True


def _is_pattern(value: Json) -> bool:
    return isinstance(value, str) and compiles(value)


_SCHEMA = frozenset(
    {"items", "additionalProperties", "not", "if", "then", "else", "contains", "propertyNames"}
)
_SCHEMAS_BY_NAME = frozenset({"properties", "$defs", "definitions", "dependentSchemas"})
_SCHEMA_LISTS = frozenset({"anyOf", "oneOf", "allOf", "prefixItems"})
_VALUES: dict[str, Callable[[Json], bool]] = {
    "type": _is_type,
    "required": _are_names,
    "enum": _is_list,
    "pattern": _is_pattern,
    **dict.fromkeys(
        ("title", "description", "$comment", "format", "$schema", "$id", "$ref"), _is_text
    ),
    **dict.fromkeys(("default", "const"), _is_anything),
    **dict.fromkeys(("minLength", "maxLength", "minItems", "maxItems"), _is_count),
    **dict.fromkeys(("minProperties", "maxProperties"), _is_count),
    **dict.fromkeys(("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"), _is_number),
    "uniqueItems": _is_flag,
    "examples": _is_list,
}

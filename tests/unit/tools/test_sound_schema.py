"""The quick look at a schema never finds one sound that the standard does not."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from podium.tools.registry import surely_sound

KEYWORDS = [
    *("type", "properties", "required", "enum", "items", "anyOf", "default", "pattern", "$ref"),
    *("minLength", "maximum", "uniqueItems", "additionalProperties", "description", "format"),
    *(
        "$defs",
        "x-kind",
        "examples",
        "not",
        "$schema",
        "minItems",
        "prefixItems",
        "dependentRequired",
    ),
]
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-2, 3)
    | st.floats(0, 2)
    | st.sampled_from(["object", "string", "number", "odd", "[", "", "#/x"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from([*KEYWORDS, "name"]), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(st.dictionaries(st.sampled_from(KEYWORDS), VALUES, max_size=4))
def test_what_is_surely_sound_is_sound(schema: dict[str, Any]) -> None:
    proper = Draft202012Validator(Draft202012Validator.META_SCHEMA).is_valid(schema)
    assert proper or not surely_sound(schema)


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "strong"},
        {"type": ["string", "string"]},
        {"type": []},
        {"required": "name"},
        {"required": ["a", "a"]},
        {"properties": {"a": 3}},
        {"anyOf": []},
        {"minLength": -1},
        {"minLength": True},
        {"maximum": "3"},
        {"pattern": "["},
        {"enum": {}},
        {"items": []},
        {"unknown": 1},
        [],
    ],
    ids=str,
)
def test_what_is_odd_is_left_to_the_proper_check(schema: Any) -> None:
    assert not surely_sound(schema)


def test_everyday_schemas_are_found_sound() -> None:
    assert surely_sound(
        {
            "type": "object",
            "properties": {
                "pattern": {"type": "string", "pattern": "^a$", "x-ask": "Which?"},
                "list": {"type": "array", "items": {"$ref": "#/$defs/one"}, "maxItems": 3},
                "maybe": {"type": ["string", "null"], "default": None},
            },
            "$defs": {"one": {"anyOf": [{"const": 1}, True]}},
            "required": ["pattern"],
            "additionalProperties": False,
        }
    )


def test_a_schema_nested_beyond_measure_is_left_to_the_proper_check() -> None:
    schema: dict[str, Any] = {}
    for _ in range(5_000):
        schema = {"not": schema}

    assert not surely_sound(schema)

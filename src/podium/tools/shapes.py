"""What a tool takes, in one line that a model can copy from."""

from __future__ import annotations

import json
from collections.abc import Callable

from podium.domain.gating import ToolSpec
from podium.domain.model import Json
from podium.domain.telling import offered_schema

_LONGEST = 800
_DEEPEST = 4
_KINDS = {"string": "text", "null": "null", "boolean": "true|false"}
_EXAMPLES: dict[str, Json] = {
    "string": "text",
    "integer": 1,
    "number": 1,
    "boolean": True,
    "array": [],
    "object": {},
}


def shape_of(spec: ToolSpec, fits: Callable[[Json], bool]) -> str:
    """The arguments that models are shown, optional ones with `?`, and an example that `fits`."""
    shape = _shape(offered_schema(spec.input_schema), 0)
    takes = f"{spec.name} takes {shape}"[:_LONGEST]
    example = _example(spec)
    if not fits(example):
        return takes
    return f"{takes}, for example {json.dumps(example, ensure_ascii=False)}"


def _shape(schema: Json, depth: int) -> str:
    if not isinstance(schema, dict) or depth > _DEEPEST:
        return "anything"
    if "enum" in schema:
        return "|".join(json.dumps(value, ensure_ascii=False) for value in schema["enum"])
    choices = schema.get("anyOf") or schema.get("oneOf")
    if choices:
        return "|".join(_shape(choice, depth + 1) for choice in choices)
    kind = schema.get("type")
    if kind == "array":
        return f"[{_shape(schema.get('items'), depth + 1)}, …]"
    if kind == "object" and schema.get("properties"):
        required = schema.get("required", ())
        fields = (
            f"{name}{'' if name in required else '?'}: {_shape(inner, depth + 1)}"
            for name, inner in schema["properties"].items()
        )
        return f"{{{', '.join(fields)}}}"
    if kind == "object":
        return "{}" if schema.get("additionalProperties") is False else "{name: value, …}"
    return _KINDS.get(str(kind), str(kind or "anything"))


def _example(spec: ToolSpec) -> Json:
    """The schema's own, else one of the arguments that must be there."""
    given = spec.input_schema.get("examples")
    if given:
        return given[0]
    properties = spec.input_schema.get("properties", {})
    paths = {path.name for path in spec.paths}
    return {
        name: "src/app.py" if name in paths else _value(properties.get(name))
        for name in spec.input_schema.get("required", ())
    }


def _value(schema: Json) -> Json:
    if not isinstance(schema, dict):
        return None
    if "default" in schema:
        return schema["default"]
    if schema.get("enum"):
        return schema["enum"][0]
    if schema.get("type") == "array" and schema.get("minItems"):
        return [_value(schema.get("items"))] * int(schema["minItems"])
    if schema.get("type") == "object":
        return {
            name: _value(schema.get("properties", {}).get(name))
            for name in schema.get("required", ())
        }
    return _EXAMPLES.get(str(schema.get("type")))

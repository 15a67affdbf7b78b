"""A contract as OpenAI's structured outputs want it: every property required, nothing beside them."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel

_LEFT_OUT = {
    "default",
    "title",
    "examples",
    "format",
    "minLength",
    "maxLength",
    "uniqueItems",
    "contentMediaType",
    "discriminator",
}
_NOT_KNOWN = {"allOf", "not", "if", "then", "else", "patternProperties", "prefixItems", "contains"}


class NotStrict(Exception):
    """The contract says something that structured outputs have no words for."""


def strict_schema(contract: type[BaseModel]) -> dict[str, Any] | None:
    """The schema to send; None when the contract cannot be said in it.

    What is left out of it, such as the length of a text, is checked when the reply is validated.
    """
    try:
        schema = _strict(contract.model_json_schema())
    except NotStrict:
        return None
    return schema if schema.get("type") == "object" else None


def _strict(schema: Any) -> dict[str, Any]:
    if not isinstance(schema, dict) or _NOT_KNOWN & schema.keys():
        raise NotStrict
    if "$ref" in schema:
        kept = {"$ref": schema["$ref"]}  # nothing may stand beside a reference
        return {**kept, "$defs": _each(schema["$defs"])} if "$defs" in schema else kept
    strict = {key: value for key, value in schema.items() if key not in _LEFT_OUT}
    if "oneOf" in strict:
        strict["anyOf"] = strict.pop("oneOf")
    for key in ("$defs", "properties"):
        if key in strict:
            strict[key] = _each(strict[key])
    if "anyOf" in strict:
        strict["anyOf"] = [_strict(choice) for choice in strict["anyOf"]]
    if strict.get("type") == "array":
        strict["items"] = _strict(strict.get("items"))
    if strict.get("type") == "object":
        _close(strict)
    if not {"type", "anyOf", "enum", "const"} & strict.keys():
        raise NotStrict
    return strict


def _each(schemas: dict[str, Any]) -> dict[str, Any]:
    return {name: _strict(schema) for name, schema in schemas.items()}


def _close(schema: dict[str, Any]) -> None:
    """An object with these properties and no others; a map of anything cannot be said."""
    if schema.get("additionalProperties") or "properties" not in schema:
        raise NotStrict
    schema["required"] = list(schema["properties"])
    schema["additionalProperties"] = False

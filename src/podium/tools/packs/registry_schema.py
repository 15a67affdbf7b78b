"""The JSON Schema of a registry, for editors and other programs."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator
from itertools import pairwise
from types import ModuleType
from typing import Any

from podium.core import packs
from podium.core.model import Json
from podium.core.packs import PackRegistry
from podium.tools.packs import handlers
from podium.tools.packs.handlers import HttpHandler, McpHandler, ServiceHandler


def published_schema() -> dict[str, Json]:
    """Return the JSON Schema of `tools.registry.json`. `load_pack` checks more than a schema can say."""
    # Of what is written out: tiers are then the words T0 to T4.
    schema = PackRegistry.model_json_schema(mode="serialization")
    definitions: dict[str, Any] = schema["$defs"]
    for model in (HttpHandler, McpHandler):
        definitions[model.__name__] = model.model_json_schema(mode="serialization")
    definitions["PackTool"]["properties"]["handler"]["anyOf"] = _handler_choices()
    for name, descriptions in {
        **_field_descriptions(packs),
        **_field_descriptions(handlers),
    }.items():
        _describe(
            schema if name == PackRegistry.__name__ else definitions.get(name, {}), descriptions
        )
    editors = {"type": "string", "description": "Where this schema is, for editors."}
    schema["properties"] = {"$schema": editors, **schema["properties"]}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **schema,
        "title": "Podium tool registry",
    }


def _handler_choices() -> list[Json]:
    function = {"type": "string", "pattern": r"^[A-Za-z_][\w.]*:[A-Za-z_]\w*$"}
    service = ServiceHandler.model_json_schema()
    wired = [_only(kind) for kind in (("http", HttpHandler), ("mcp", McpHandler))]
    return [function, *wired, {**service, "description": "For packs that come with Podium."}]


def _only(kind: tuple[str, type]) -> dict[str, Json]:
    name, model = kind
    return {
        "type": "object",
        "properties": {name: {"$ref": f"#/$defs/{model.__name__}"}},
        "required": [name],
        "additionalProperties": False,
    }


def _describe(schema: dict[str, Any], descriptions: dict[str, str]) -> None:
    for name, description in descriptions.items():
        if name in schema.get("properties", {}):
            schema["properties"][name]["description"] = description


def _field_descriptions(module: ModuleType) -> dict[str, dict[str, str]]:
    """Class → field → its description, the docstring beneath the field."""
    models = [
        node for node in ast.parse(inspect.getsource(module)).body if isinstance(node, ast.ClassDef)
    ]
    return {model.name: dict(_documented_fields(model)) for model in models}


def _documented_fields(model: ast.ClassDef) -> Iterator[tuple[str, str]]:
    for field, behind in pairwise(model.body):
        if not (isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name)):
            continue
        if isinstance(behind, ast.Expr) and isinstance(behind.value, ast.Constant):
            yield field.target.id, inspect.cleandoc(str(behind.value.value)).replace("\n", " ")

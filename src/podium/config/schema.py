"""JSON Schema of podium.yaml."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator
from itertools import pairwise
from textwrap import dedent
from typing import Any, get_args

from pydantic import BaseModel, ConfigDict, Field, create_model

from podium.config.flow_options import options_models
from podium.config.settings import SettingsFile
from podium.core.calls import Tier
from podium.core.model import Json
from podium.policy.policy import Policy

DRAFT = "https://json-schema.org/draft/2020-12/schema"

_SHORT_FORMS: dict[str, list[Json]] = {
    "SandboxSettings": [{"enum": ["none", "kernel"]}],
    "ZoneSpec": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}],
    "PolicyExample": [{"type": "string"}],
    "ArgumentMatch": [{"type": ["string", "number", "boolean", "null", "array"]}],
}
"""Definition → other forms that its model reads before validation, which pydantic does not describe."""


def settings_schema() -> dict[str, Json]:
    """Schema of a settings file, options of flows and the policy included."""
    shape = _whole_file()
    schema = shape.model_json_schema()
    definitions = schema["$defs"]
    for model in {shape, *_models_of(shape)}:
        _describe(schema if model is shape else definitions.get(model.__name__, {}), model)
    definitions[Tier.__name__] = {"enum": list(Tier.__members__), "title": Tier.__name__}
    for name, forms in _SHORT_FORMS.items():
        definitions[name] = {"anyOf": [definitions[name], *forms]}
    return {"$schema": DRAFT, **schema, "title": "podium.yaml"}


def _whole_file() -> type[BaseModel]:
    """The settings file with the parts that are checked later: options of flows, and the policy."""
    options: dict[str, Any] = {
        name: (shape, Field(default_factory=shape)) for name, shape in options_models().items()
    }
    # A program may add flows of its own.
    flows = create_model("Flows", __config__=ConfigDict(extra="allow"), **options)
    return create_model(
        "SettingsFileWithParts",
        __base__=SettingsFile,
        flows=(flows, Field(default_factory=flows)),
        policy=(Policy, Field(default_factory=Policy)),
    )


def _describe(definition: dict[str, Json], model: type[BaseModel]) -> None:
    """Put the attributes' docstrings into the definition."""
    definition.pop("description", None)
    if model.__doc__ and model.__module__.startswith("podium."):
        definition["description"] = model.__doc__.split("\n\n")[0]
    documented = attribute_docs(model)
    for name, field in definition.get("properties", {}).items():
        if name in documented:
            field["description"] = documented[name]
        if "$ref" in field:  # its own definition has the defaults
            field.pop("default", None)


def attribute_docs(model: type[BaseModel]) -> dict[str, str]:
    """Attribute → the string literal below it, inherited ones included."""
    documented: dict[str, str] = {}
    for cls in reversed(model.__mro__):
        if issubclass(cls, BaseModel) and cls.__module__.startswith("podium."):
            documented |= _docs_in(cls)
    return documented


def _docs_in(cls: type[BaseModel]) -> dict[str, str]:
    try:
        source = inspect.getsource(cls)
    except OSError:  # a class that `create_model` made
        return {}
    (definition,) = ast.parse(dedent(source)).body
    body = definition.body if isinstance(definition, ast.ClassDef) else []
    return {
        attribute.target.id: inspect.cleandoc(text.value.value)
        for attribute, text in pairwise(body)
        if isinstance(attribute, ast.AnnAssign)
        and isinstance(attribute.target, ast.Name)
        and isinstance(text, ast.Expr)
        and isinstance(text.value, ast.Constant)
        and isinstance(text.value.value, str)
    }


def _models_of(model: type[BaseModel]) -> Iterator[type[BaseModel]]:
    """Every model that a field of this one may hold, at any depth."""
    for field in model.model_fields.values():
        for inner in _models_in(field.annotation):
            yield inner
            yield from _models_of(inner)


def _models_in(annotation: Any) -> Iterator[type[BaseModel]]:
    if inspect.isclass(annotation) and issubclass(annotation, BaseModel):
        yield annotation
    for argument in get_args(annotation):
        yield from _models_in(argument)

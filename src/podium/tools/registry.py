"""Registry of tools with schemas and handlers, loaded whole or not at all; a quick check of schemas; argument shapes for models.

Holding a schema against the standard's own takes milliseconds, which a registry of a thousand tools
cannot spend at each start. What is not surely sound here has to be looked at in that slow way.
"""

from __future__ import annotations

import inspect
import json
import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

from jsonschema import Draft202012Validator
from jsonschema.exceptions import SchemaError
from jsonschema.protocols import Validator

from podium.core.decisions import Access, ToolSpec
from podium.core.errors import BadInput, UnknownTool
from podium.core.json_schema import validator_for
from podium.core.model import Json
from podium.core.tool_replies import offered_schema
from podium.tools.scope import Handler

_TYPES = frozenset({"object", "array", "string", "number", "integer", "boolean", "null"})
_MAX_DEPTH = 50


def surely_sound(schema: Json, depth: int = 0) -> bool:
    """True: a schema of draft 2020-12 beyond doubt. False: it has to be checked properly.

    Where references lead is not looked at.
    """
    if isinstance(schema, bool):
        return True
    if not isinstance(schema, dict) or depth > _MAX_DEPTH:
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
    return all(surely_sound(schema, depth + 1) for schema in schemas)


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
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        return False
    return all(one != other for one, other in pairwise(sorted(value)))


@lru_cache(maxsize=1_000)
def compiles(pattern: str) -> bool:
    """Check that a `pattern` compiles; the standard's own schema does not."""
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


_NAME = re.compile(r"^[A-Za-z][A-Za-z0-9_.-]{0,63}$")


@dataclass(frozen=True)
class NamedPath:
    """A path that stands inside an argument."""

    argument: str
    path: str
    access: Access


@dataclass(frozen=True)
class TouchedByCall:
    """Paths and commands of a call that are no arguments of their own: paths in a patch, the command behind a name."""

    paths: tuple[NamedPath, ...] = ()
    commands: tuple[str | tuple[str, ...], ...] = ()
    """Shell lines, or programs with their arguments."""


@dataclass(frozen=True)
class Tool:
    """A spec and what performs it."""

    spec: ToolSpec
    handler: Handler
    touches: Callable[[dict[str, Json]], TouchedByCall] | None = None
    """Says of complete arguments what else is to be judged. Raises `ValueError` with a message for the agent."""
    replaces: Callable[[dict[str, Json]], tuple[str, str]] | None = None
    """Names the path argument whose file the call overwrites, and gives the new content."""
    is_own_text: bool = False
    """True: its result is text of the agent or of a person, which needs no marks."""


class Registry:
    """Every tool there is. Raises one `BadInput` that lists all problems, or none."""

    def __init__(self, tools: Iterable[Tool]) -> None:
        listed = list(tools)
        problems = list(_problems_of(listed))
        if problems:
            raise BadInput("the tool registry is not valid:\n" + "\n".join(problems))
        self._tools = {tool.spec.name: tool for tool in listed}
        self._validators = {
            tool.spec.name: validator_for(tool.spec.input_schema) for tool in listed
        }

    def specs(self) -> Sequence[ToolSpec]:
        return [tool.spec for tool in self._tools.values()]

    def spec(self, name: str) -> ToolSpec | None:
        tool = self._tools.get(name)
        return tool.spec if tool else None

    def tool(self, name: str) -> Tool:
        """The tool. Raises `UnknownTool`, which lists the names there are."""
        if name not in self._tools:
            raise UnknownTool(name, list(self._tools))
        return self._tools[name]

    def validator(self, name: str) -> Validator:
        """The compiled schema of a tool that is known to be here."""
        return self._validators[name]


def _problems_of(tools: Sequence[Tool]) -> Iterator[str]:
    counted = Counter(tool.spec.name for tool in tools)
    for name, times in counted.items():
        if times > 1:
            yield f"tool {name!r}: registered {times} times; give each tool its own name"
    for tool in tools:
        for problem in _spec_problems(tool, counted):
            yield f"tool {tool.spec.name!r}: {problem}"


def _spec_problems(tool: Tool, names: Mapping[str, int]) -> Iterator[str]:
    spec = tool.spec
    if not _NAME.match(spec.name):
        yield "the name must be a letter, then up to 63 letters, digits, `_`, `.` or `-`"
    if spec.undo is not None and spec.undo not in names:
        yield f"undo names {spec.undo!r}, which is not registered"
    if not (math.isfinite(spec.timeout_seconds) and spec.timeout_seconds > 0):
        yield f"timeout_seconds is {spec.timeout_seconds}; it must be greater than zero"
    if not spec.receipt_fields:
        yield "receipt_fields is empty; name the fields of the result that prove what was done"
    if len(set(spec.receipt_fields)) < len(spec.receipt_fields):
        yield "receipt_fields lists a field twice"
    if not _is_async(tool.handler):
        yield "the handler is not an async function"
    schema_problems = list(_schema_problems(spec.input_schema))
    yield from schema_problems
    if not schema_problems:
        yield from _argument_problems(spec)


def _is_async(handler: object) -> bool:
    return inspect.iscoroutinefunction(handler) or inspect.iscoroutinefunction(
        getattr(handler, "__call__", None)  # noqa: B004 - an object may be an async callable
    )


def _schema_problems(schema: dict[str, Json]) -> Iterator[str]:
    try:
        if not surely_sound(schema):
            Draft202012Validator.check_schema(schema)
    except SchemaError as error:
        yield f"input_schema at {_location(error.path)}: {error.message}"
        return
    if schema.get("type") != "object" or not isinstance(schema.get("properties", {}), dict):
        yield 'input_schema must have `"type": "object"`, because arguments have names'
    for reference in _references(schema):
        if not _resolves(schema, reference):
            yield f"input_schema: $ref {reference!r} does not refer to anything inside the schema"


def _argument_problems(spec: ToolSpec) -> Iterator[str]:
    properties: dict[str, Json] = spec.input_schema.get("properties", {})
    named = [("paths", path.name) for path in spec.paths]
    if spec.command_argument is not None:
        named.append(("command_argument", spec.command_argument))
    for field, argument in named:
        if argument not in properties:
            yield f"{field} names {argument!r}, which is not a property of input_schema"
    whole = Draft202012Validator(spec.input_schema)
    for argument, schema in properties.items():
        default = isinstance(schema, dict) and "default" in schema
        if default and not whole.evolve(schema=schema).is_valid(schema["default"]):
            yield f"the default of {argument!r} does not match its own schema"


def _references(schema: Json) -> Iterator[str]:
    if isinstance(schema, list):
        for item in schema:
            yield from _references(item)
    elif isinstance(schema, dict):
        for key, value in schema.items():
            if key == "$ref" and isinstance(value, str):
                yield value
            elif key not in ("default", "const", "enum", "examples"):
                yield from _references(value)


def _resolves(schema: dict[str, Json], reference: str) -> bool:
    """True for `#` and for a pointer that leads somewhere. Nothing is ever fetched."""
    node: Json = schema
    if reference != "#" and not reference.startswith("#/"):
        return False
    for part in reference.split("/")[1:]:
        name = part.replace("~1", "/").replace("~0", "~")
        if not isinstance(node, dict) or name not in node:
            return False
        node = node[name]
    return True


def _location(path: Iterable[str | int]) -> str:
    return "/".join(str(part) for part in path) or "the top level"


_MAX_LENGTH = 800
_MAX_SHAPE_DEPTH = 4
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
    takes = f"{spec.name} takes {shape}"[:_MAX_LENGTH]
    example = _example(spec)
    if not fits(example):
        return takes
    return f"{takes}, for example {json.dumps(example, ensure_ascii=False)}"


def _shape(schema: Json, depth: int) -> str:
    if not isinstance(schema, dict) or depth > _MAX_SHAPE_DEPTH:
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
    examples = spec.input_schema.get("examples")
    if examples:
        return examples[0]
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

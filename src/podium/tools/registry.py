"""The registry: tools with their schemas and handlers, loaded whole or not at all."""

from __future__ import annotations

import inspect
import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from jsonschema import Draft202012Validator
from jsonschema.exceptions import SchemaError
from jsonschema.protocols import Validator

from podium.domain.errors import BadInput, UnknownTool
from podium.domain.gating import Access, ToolSpec
from podium.domain.model import Json
from podium.domain.schemas import validator_for
from podium.tools.scope import Handler
from podium.tools.sound_schema import surely_sound

_NAME = re.compile(r"^[A-Za-z][A-Za-z0-9_.-]{0,63}$")


@dataclass(frozen=True)
class NamedPath:
    """A path that stands inside an argument."""

    argument: str
    given: str
    access: Access


@dataclass(frozen=True)
class Touched:
    """What a call touches that no argument of its own is: paths in a patch, the command behind a name."""

    paths: tuple[NamedPath, ...] = ()
    commands: tuple[str | tuple[str, ...], ...] = ()
    """Shell lines, or programs with their words."""


@dataclass(frozen=True)
class Tool:
    """A spec and what performs it."""

    spec: ToolSpec
    handler: Handler
    touches: Callable[[dict[str, Json]], Touched] | None = None
    """Says of complete arguments what else is to be judged. Raises `ValueError` in words for the agent."""
    replaces: Callable[[dict[str, Json]], tuple[str, str]] | None = None
    """Names the path argument whose file the call overwrites, and gives the new content."""
    is_own_words: bool = False
    """True: what it gives back are words of the agent or of a person, which need no marks."""


class Registry:
    """Every tool there is. Raises one `BadInput` that lists all faults, or none."""

    def __init__(self, tools: Iterable[Tool]) -> None:
        listed = list(tools)
        faults = list(_faults_of(listed))
        if faults:
            raise BadInput("the tool registry cannot be used:\n" + "\n".join(faults))
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


def _faults_of(tools: Sequence[Tool]) -> Iterator[str]:
    counted = Counter(tool.spec.name for tool in tools)
    for name, times in counted.items():
        if times > 1:
            yield f"tool {name!r}: registered {times} times; give each tool a name of its own"
    for tool in tools:
        for fault in _spec_faults(tool, counted):
            yield f"tool {tool.spec.name!r}: {fault}"


def _spec_faults(tool: Tool, names: Mapping[str, int]) -> Iterator[str]:
    spec = tool.spec
    if not _NAME.match(spec.name):
        yield "the name must be a letter, then up to 63 letters, digits, `_`, `.` or `-`"
    if spec.undo is not None and spec.undo not in names:
        yield f"undo names {spec.undo!r}, which is not registered"
    if not (math.isfinite(spec.timeout_seconds) and spec.timeout_seconds > 0):
        yield f"timeout_seconds is {spec.timeout_seconds}; it must be more than zero"
    if not spec.receipt_fields:
        yield "receipt_fields is empty; name the fields of the result that prove what was done"
    if len(set(spec.receipt_fields)) < len(spec.receipt_fields):
        yield "receipt_fields names a field twice"
    if not _is_async(tool.handler):
        yield "the handler is not an async function"
    schema_faults = list(_schema_faults(spec.input_schema))
    yield from schema_faults
    if not schema_faults:
        yield from _argument_faults(spec)


def _is_async(handler: object) -> bool:
    return inspect.iscoroutinefunction(handler) or inspect.iscoroutinefunction(
        getattr(handler, "__call__", None)  # noqa: B004 - an object may be an async callable
    )


def _schema_faults(schema: dict[str, Json]) -> Iterator[str]:
    try:
        if not surely_sound(schema):
            Draft202012Validator.check_schema(schema)
    except SchemaError as error:
        yield f"input_schema at {_place(error.path)}: {error.message}"
        return
    if schema.get("type") != "object" or not isinstance(schema.get("properties", {}), dict):
        yield 'input_schema must say `"type": "object"`: arguments have names'
    for reference in _references(schema):
        if not _resolves(schema, reference):
            yield f"input_schema: $ref {reference!r} points at nothing inside the schema"


def _argument_faults(spec: ToolSpec) -> Iterator[str]:
    properties: dict[str, Json] = spec.input_schema.get("properties", {})
    named = [("paths", path.name) for path in spec.paths]
    if spec.command_argument is not None:
        named.append(("command_argument", spec.command_argument))
    for field, argument in named:
        if argument not in properties:
            yield f"{field} names {argument!r}, which is no property of input_schema"
    whole = Draft202012Validator(spec.input_schema)
    for argument, schema in properties.items():
        default = isinstance(schema, dict) and "default" in schema
        if default and not whole.evolve(schema=schema).is_valid(schema["default"]):
            yield f"the default of {argument!r} does not fit its own schema"


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


def _place(path: Iterable[str | int]) -> str:
    return "/".join(str(part) for part in path) or "its top"

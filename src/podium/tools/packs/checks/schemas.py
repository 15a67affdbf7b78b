"""Input schemas are sound, closed, and say of each argument what to look for; their references stay inside and end."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from urllib.parse import unquote

from jsonschema import Draft202012Validator

from podium.core.json_schema import validator_for
from podium.core.model import Json
from podium.core.packs import Utterance
from podium.core.regex_cost import RegexTooCostly, pattern_cost
from podium.tools.packs.checks.registry_check import (
    KINDS,
    RESOLVED,
    STEPS_PER_CHECKED_KEY,
    STEPS_PER_SCHEMA,
    CheckEffort,
    RegistryCheck,
    is_kind,
    properties_of,
    required_of,
    values_in,
)
from podium.tools.packs.registry_file import pointer
from podium.tools.registry import surely_sound

DRAFT = "https://json-schema.org/draft/2020-12/schema"
MAX_SIZE = 10_000
"""Schemas that one may come to when every reference is followed."""
MAX_DEPTH = 50
"""Limit on nested schemas then. Checking a value goes as deep, and Python not much deeper."""

_ONE = ("items", "additionalProperties", "not", "if", "then", "else", "contains", "propertyNames")
_UNEVALUATED = ("unevaluatedItems", "unevaluatedProperties")
_LISTS = ("allOf", "anyOf", "oneOf", "prefixItems")
_NAMED = ("properties", "patternProperties", "dependentSchemas")
_STORES = ("$defs", "definitions")
"""Keys whose schemas are used where they are referred to."""
_ELSEWHERE = ("$dynamicRef", "$dynamicAnchor", "$recursiveRef", "$recursiveAnchor", "$anchor")
_TOP_ONLY = ("$id", "$schema")
_UNEVALUATED_TIMES = 3
"""To find what was left over, everything beside it is looked at once more, and at each level again."""


def reference_problems(schema: Json) -> Iterator[tuple[str, str]]:
    """Yield pointer and problem of what a sound schema may say and a pack may not. Nothing is looked up."""
    schemas = dict(_schemas(schema, ""))
    problems = [
        problem
        for location, node in schemas.items()
        for problem in _problems(location, node, schemas)
    ]
    yield from problems or SchemaSizes(schema).problems()


def _schemas(node: Json, location: str) -> Iterator[tuple[str, Mapping[str, Json]]]:
    """Everything in a schema that is a schema itself, whatever names it stands under."""
    if not isinstance(node, dict):
        return
    yield location, node
    for key, value in node.items():
        for step, inner in _subschemas(key, value):
            yield from _schemas(inner, f"{location}{pointer(step)}")


def _subschemas(key: str, value: Json) -> Iterator[tuple[tuple[str | int, ...], Json]]:
    if key in _ONE or key in _UNEVALUATED:
        yield (key,), value
    elif key in _LISTS and isinstance(value, list):
        yield from (((key, number), inner) for number, inner in enumerate(value))
    elif (key in _NAMED or key in _STORES) and isinstance(value, dict):
        yield from (((key, name), inner) for name, inner in value.items())


def _problems(
    location: str, node: Mapping[str, Json], schemas: Mapping[str, Mapping[str, Json]]
) -> Iterator[tuple[str, str]]:
    for key in (*_ELSEWHERE, *(_TOP_ONLY if location else ())):
        if key in node:
            yield f"{location}/{key}", "is not supported in packs; use `$ref` and `$defs`"
    if not location and node.get("$schema", DRAFT) != DRAFT:
        yield "/$schema", f"must be {DRAFT}, or omitted"
    if "$ref" in node and _target(node["$ref"]) not in schemas:
        yield (
            f"{location}/$ref",
            f"{str(node['$ref'])[:200]!r} does not refer to a schema inside this schema",
        )
    if "pattern" in node:
        for problem in _pattern_problems(node["pattern"]):
            yield f"{location}/pattern", problem
    for name in node.get("patternProperties") or ():
        for problem in _pattern_problems(name, quick=True):
            yield f"{location}{pointer(('patternProperties', name))}", problem


def _pattern_problems(pattern: str, quick: bool = False) -> Iterator[str]:
    try:
        cost = pattern_cost(pattern)
    except RegexTooCostly as error:
        yield f"{pattern[:100]!r} {error}"
        return
    # Names are searched with all of these patterns at once, so no length can be set for each.
    if quick and cost.longest is not None:
        yield f"{pattern[:100]!r} can be slow on long names; begin it with ^, and avoid alternatives that backtrack"


def _target(reference: Json) -> str | None:
    """The pointer that a reference names, as it is followed later. None: it leads elsewhere."""
    if not isinstance(reference, str) or not reference.startswith("#"):
        return None
    path = unquote(reference[1:])
    parts = [part.replace("~1", "/").replace("~0", "~") for part in path.split("/")[1:]]
    return pointer(parts) if not path or path.startswith("/") else None


class SchemaSizes:
    """Size of each part of a schema when its references are followed."""

    def __init__(self, schema: Json) -> None:
        self._schemas_by_location = dict(_schemas(schema, ""))
        self._measures: dict[str, tuple[int, int]] = {}
        self._open: list[str] = []

    def problems(self) -> Iterator[tuple[str, str]]:
        for location in self._schemas_by_location:
            try:
                self._measured(location)
            except _SchemaTooLarge as error:
                yield error.location, error.message
                return

    def of(self, location: str) -> int:
        """Return the number of schemas at this pointer, in a schema without problems."""
        return self._measured(location)[0] if location in self._schemas_by_location else 1

    def _measured(self, location: str) -> tuple[int, int]:
        """Size and depth."""
        if location not in self._measures:
            if location in self._open:
                raise _SchemaTooLarge(
                    f"{self._open[-1]}/$ref", f"is a circular reference to #{location}"
                )
            self._open.append(location)
            if len(self._open) > MAX_DEPTH:
                raise _SchemaTooLarge(
                    location, f"is nested more than {MAX_DEPTH} deep, with references resolved"
                )
            self._measures[location] = self._added_up(location)
            self._open.pop()
        return self._measures[location]

    def _added_up(self, location: str) -> tuple[int, int]:
        node = self._schemas_by_location[location]
        inner = [self._measured(step) for step in self._used_by(location, node)]
        size = 1 + sum(size for size, _ in inner)
        size *= _UNEVALUATED_TIMES if any(key in node for key in _UNEVALUATED) else 1
        depth = 1 + max((depth for _, depth in inner), default=0)
        if size > MAX_SIZE:
            raise _SchemaTooLarge(
                location, f"has more than {MAX_SIZE} subschemas, with references resolved"
            )
        if depth > MAX_DEPTH:
            raise _SchemaTooLarge(
                location, f"is nested more than {MAX_DEPTH} deep, with references resolved"
            )
        return size, depth

    def _used_by(self, location: str, node: Mapping[str, Json]) -> Iterator[str]:
        for key, value in node.items():
            if key not in _STORES:
                steps = (f"{location}{pointer(step)}" for step, _ in _subschemas(key, value))
                yield from (step for step in steps if step in self._schemas_by_location)
        if "$ref" in node:
            yield _target(node["$ref"]) or ""


class _SchemaTooLarge(Exception):
    """A schema that no value could be held against in good time."""

    def __init__(self, location: str, message: str) -> None:
        super().__init__(message)
        self.location = location
        self.message = message


_MAX_EXCERPT_CHARACTERS = 200


def check(registry_check: RegistryCheck) -> None:
    for location, tool in registry_check.located_tools():
        _check(registry_check, location, tool.input_schema, tool.examples)
        if "additionalProperties" not in tool.input_schema:
            problem = (
                'needs `"additionalProperties": false`, so that invented arguments are refused'
            )
            registry_check.problems.add(f"{location}/input_schema", problem)
    for location, skill in registry_check.located_skills():
        _check(registry_check, location, skill.input_schema, skill.examples)


def schema_problems(schema: Json, effort: CheckEffort) -> Iterator[tuple[str, str]]:
    """Yield pointer and message of everything that keeps this from being a valid schema.

    Raises `TooMuch` when there is too much of it.
    """
    problems = [] if surely_sound(schema) else _against_the_standard(schema, effort)
    yield from problems
    if not problems:
        yield from reference_problems(schema)


def _against_the_standard(schema: Json, effort: CheckEffort) -> list[tuple[str, str]]:
    effort.spend(values_in(schema) * STEPS_PER_CHECKED_KEY)
    try:
        return [
            (pointer(error.absolute_path), error.message[:300])
            for error in _metaschema().iter_errors(schema)
        ]
    except RecursionError:
        return [("", "is nested too deeply; move parts of it into `$defs`")]


def _check(
    registry_check: RegistryCheck,
    location: str,
    schema: dict[str, Json],
    examples: tuple[Utterance, ...],
) -> None:
    top = f"{location}/input_schema"
    problems = list(schema_problems(schema, registry_check.effort))
    for inner, problem in problems:
        registry_check.problems.add(f"{top}{inner}", problem)
    if schema.get("type") != "object":
        registry_check.problems.add(f"{top}/type", 'must be "object", because arguments have names')
    for number, name in enumerate(required_of(schema)):
        if name not in properties_of(schema):
            registry_check.problems.add(
                f"{top}/required/{number}", f"{name!r} is not among the properties"
            )
    for name, inner in properties_of(schema).items():
        for key, problem in _property_problems(inner):
            registry_check.problems.add(f"{top}{pointer(('properties', name, key))}", problem)
    if not problems:
        _check_values(registry_check, location, schema, examples)


def _property_problems(schema: Json) -> Iterator[tuple[str, str]]:
    if not isinstance(schema, dict):
        return
    kind = schema.get("x-kind")
    if kind is not None and not is_kind(kind):
        yield "x-kind", f"{kind!r} is not a known kind; use one of {', '.join(KINDS)} or id:THING"
    if not isinstance(schema.get("x-ask", ""), str):
        yield "x-ask", "must be a string: the question to ask when the value is missing"
    if schema.get("x-resolve", RESOLVED[0]) not in RESOLVED:
        yield "x-resolve", f"must be one of {', '.join(RESOLVED)}"
    if not isinstance(schema.get("x-composed", False), bool):
        yield "x-composed", "must be true or false: whether a model may write the text itself"
    choices = schema.get("enum")
    if kind == "choice" and not isinstance(choices, list):
        yield "x-kind", "a choice needs an `enum` with its values"
    yield from _synonym_problems(
        schema.get("x-words"), choices if isinstance(choices, list) else []
    )


def _synonym_problems(synonyms: Json, choices: list[Json]) -> Iterator[tuple[str, str]]:
    if synonyms is None:
        return
    if not isinstance(synonyms, dict):
        yield "x-words", "must be an object that maps each value to a list of synonyms"
        return
    values = {choice for choice in choices if isinstance(choice, str)}
    for value, listed in synonyms.items():
        if value not in values:
            yield "x-words", f"{value!r} is not among the choices"
        if not (isinstance(listed, list) and all(isinstance(text, str) for text in listed)):
            yield "x-words", f"{value!r} needs a list of synonyms"


def _check_values(
    registry_check: RegistryCheck,
    location: str,
    schema: dict[str, Json],
    examples: tuple[Utterance, ...],
) -> None:
    """Defaults and the arguments of examples fit the schema they stand beside."""
    fitting = _SchemaFit(schema, registry_check.effort)
    for name, inner in properties_of(schema).items():
        has_default = isinstance(inner, dict) and "default" in inner
        if has_default and not fitting.fits(name, inner["default"]):
            at = pointer(("input_schema", "properties", name, "default"))
            registry_check.problems.add(f"{location}{at}", "does not match its own schema")
    for number, example in enumerate(examples):
        for name, value in example.arguments.items():
            at = f"{location}{pointer(('examples', number, 'arguments', name))}"
            if name not in properties_of(schema):
                registry_check.problems.add(
                    at, f"{name!r} is not an argument of this tool or skill"
                )
            elif not fitting.fits(name, value):
                registry_check.problems.add(
                    at, f"{_short(value)} does not match the schema of {name!r}"
                )


class _SchemaFit:
    """Holds values against the properties of a schema, as long as the effort lasts."""

    def __init__(self, schema: dict[str, Json], effort: CheckEffort) -> None:
        self._schemas = properties_of(schema)
        self._effort = effort
        self._sizes = SchemaSizes(schema)
        self._whole = validator_for(schema, spend=effort.spend)

    def fits(self, name: str, value: Json) -> bool:
        # Values that must differ are each compared with each.
        values = values_in(value)
        size = self._sizes.of(pointer(("properties", name)))
        self._effort.spend(size * values * STEPS_PER_SCHEMA + values**2)
        return self._whole.evolve(schema=self._schemas[name]).is_valid(value)


def _short(value: Json) -> str:
    text = repr(value)
    return text if len(text) <= _MAX_EXCERPT_CHARACTERS else f"{text[:_MAX_EXCERPT_CHARACTERS]}…"


@cache
def _metaschema() -> Draft202012Validator:
    return Draft202012Validator(Draft202012Validator.META_SCHEMA)

"""Input schemas are sound, closed, and say of each argument what to look for."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

from jsonschema import Draft202012Validator

from podium.core.json_schema import validator_for
from podium.core.model import Json
from podium.core.packs import Utterance
from podium.tools.packs.checks.references import SchemaSizes, reference_problems
from podium.tools.packs.checks.registry_check import RegistryCheck, properties_of, required_of
from podium.tools.packs.effort import (
    STEPS_PER_CHECKED_KEY,
    STEPS_PER_SCHEMA,
    CheckEffort,
    values_in,
)
from podium.tools.packs.kinds import KINDS, RESOLVED, is_kind
from podium.tools.packs.places import pointer
from podium.tools.registry import surely_sound

_MAX_EXCERPT_CHARACTERS = 200


def check(registry_check: RegistryCheck) -> None:
    for location, tool in registry_check.located_tools():
        _check(registry_check, location, tool.input_schema, tool.examples)
        if "additionalProperties" not in tool.input_schema:
            problem = (
                'say `"additionalProperties": false`, so that no invented argument gets through'
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
        return [("", "is nested too deep; put parts of it into `$defs`")]


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
        registry_check.problems.add(f"{top}/type", 'must be "object": arguments have names')
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
        yield "x-kind", f"{kind!r} is no kind; one of {', '.join(KINDS)} or id:THING"
    if not isinstance(schema.get("x-ask", ""), str):
        yield "x-ask", "must be a text: the question to ask when it is missing"
    if schema.get("x-resolve", RESOLVED[0]) not in RESOLVED:
        yield "x-resolve", f"must be one of {', '.join(RESOLVED)}"
    if not isinstance(schema.get("x-composed", False), bool):
        yield "x-composed", "must be true or false: whether a model may word the text itself"
    choices = schema.get("enum")
    if kind == "choice" and not isinstance(choices, list):
        yield "x-kind", "a choice needs an `enum` of what can be chosen"
    yield from _synonym_problems(
        schema.get("x-words"), choices if isinstance(choices, list) else []
    )


def _synonym_problems(synonyms: Json, choices: list[Json]) -> Iterator[tuple[str, str]]:
    if synonyms is None:
        return
    if not isinstance(synonyms, dict):
        yield "x-words", "must be an object: value → list of words that mean it"
        return
    values = {choice for choice in choices if isinstance(choice, str)}
    for value, listed in synonyms.items():
        if value not in values:
            yield "x-words", f"{value!r} is not among the choices"
        if not (isinstance(listed, list) and all(isinstance(text, str) for text in listed)):
            yield "x-words", f"{value!r} needs a list of words"


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
            registry_check.problems.add(f"{location}{at}", "does not fit its own schema")
    for number, example in enumerate(examples):
        for name, value in example.arguments.items():
            at = f"{location}{pointer(('examples', number, 'arguments', name))}"
            if name not in properties_of(schema):
                registry_check.problems.add(at, f"{name!r} is no argument of it")
            elif not fitting.fits(name, value):
                registry_check.problems.add(
                    at, f"{_short(value)} does not fit the schema of {name!r}"
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

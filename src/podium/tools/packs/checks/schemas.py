"""Input schemas are sound, closed, and say of each argument what to look for."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

from jsonschema import Draft202012Validator

from podium.domain.model import Json
from podium.domain.packs import Utterance
from podium.tools.packs.checks.papers import Papers, properties_of, required_of
from podium.tools.packs.kinds import KINDS, is_kind
from podium.tools.packs.places import pointer
from podium.tools.sound_schema import compiles, surely_sound

_VALUES = ("default", "const", "enum", "examples")
"""Keywords whose values are data: what looks like a schema in them is none."""


def check(papers: Papers) -> None:
    for place, tool in papers.each_tool():
        _check(papers, place, tool.input_schema, tool.examples)
        if "additionalProperties" not in tool.input_schema:
            words = 'say `"additionalProperties": false`, so that no invented argument gets through'
            papers.faults.add(f"{place}/input_schema", words)
    for place, skill in papers.each_skill():
        _check(papers, place, skill.input_schema, skill.examples)


def schema_problems(schema: Json) -> Iterator[tuple[str, str]]:
    """Pointer and words of everything that keeps this from being a schema of its own."""
    problems = [] if surely_sound(schema) else _against_the_standard(schema)
    yield from problems
    if not problems:
        yield from _broken_leads(schema)


def _against_the_standard(schema: Json) -> list[tuple[str, str]]:
    return [
        (pointer(error.absolute_path), error.message[:300])
        for error in _metaschema().iter_errors(schema)
    ]


def _broken_leads(schema: Json) -> Iterator[tuple[str, str]]:
    """What the standard lets pass and nothing can be checked with."""
    for place, key, value in _leads(schema, ""):
        if key == "pattern" and not compiles(value):
            yield place, f"{value!r} is no regular expression that Python knows"
        elif key != "pattern" and not _resolves(schema, value):
            yield place, f"{value!r} points at nothing inside this schema"


def _check(
    papers: Papers, place: str, schema: dict[str, Json], examples: tuple[Utterance, ...]
) -> None:
    top = f"{place}/input_schema"
    problems = list(schema_problems(schema))
    for inner, problem in problems:
        papers.faults.add(f"{top}{inner}", problem)
    if schema.get("type") != "object":
        papers.faults.add(f"{top}/type", 'must be "object": arguments have names')
    for number, name in enumerate(required_of(schema)):
        if name not in properties_of(schema):
            papers.faults.add(f"{top}/required/{number}", f"{name!r} is not among the properties")
    for name, inner in properties_of(schema).items():
        for key, problem in _property_problems(inner):
            papers.faults.add(f"{top}{pointer(('properties', name, key))}", problem)
    if not problems:
        _check_values(papers, place, schema, examples)


def _property_problems(schema: Json) -> Iterator[tuple[str, str]]:
    if not isinstance(schema, dict):
        return
    kind = schema.get("x-kind")
    if kind is not None and not is_kind(kind):
        yield "x-kind", f"{kind!r} is no kind; one of {', '.join(KINDS)} or id:THING"
    if not isinstance(schema.get("x-ask", ""), str):
        yield "x-ask", "must be a text: the question to ask when it is missing"
    choices = schema.get("enum")
    if kind == "choice" and not isinstance(choices, list):
        yield "x-kind", "a choice needs an `enum` of what can be chosen"
    yield from _word_problems(schema.get("x-words"), choices if isinstance(choices, list) else [])


def _word_problems(words: Json, choices: list[Json]) -> Iterator[tuple[str, str]]:
    if words is None:
        return
    if not isinstance(words, dict):
        yield "x-words", "must be an object: value → list of words that mean it"
        return
    for value, listed in words.items():
        if value not in choices:
            yield "x-words", f"{value!r} is not among the choices"
        if not (isinstance(listed, list) and all(isinstance(word, str) for word in listed)):
            yield "x-words", f"{value!r} needs a list of words"


def _check_values(
    papers: Papers, place: str, schema: dict[str, Json], examples: tuple[Utterance, ...]
) -> None:
    """Defaults and the arguments of examples fit the schema they stand beside."""
    whole = Draft202012Validator(schema)
    for name, inner in properties_of(schema).items():
        given = isinstance(inner, dict) and "default" in inner
        if given and not whole.evolve(schema=inner).is_valid(inner["default"]):
            at = pointer(("input_schema", "properties", name, "default"))
            papers.faults.add(f"{place}{at}", "does not fit its own schema")
    for number, example in enumerate(examples):
        for name, value in example.arguments.items():
            at = f"{place}{pointer(('examples', number, 'arguments', name))}"
            if name not in properties_of(schema):
                papers.faults.add(at, f"{name!r} is no argument of it")
            elif not whole.evolve(schema=properties_of(schema)[name]).is_valid(value):
                papers.faults.add(at, f"{value!r} does not fit the schema of {name!r}")


def _leads(schema: Json, place: str) -> Iterator[tuple[str, str, str]]:
    """Pointer, keyword and text of every reference and pattern."""
    if isinstance(schema, list):
        for number, item in enumerate(schema):
            yield from _leads(item, f"{place}/{number}")
    elif isinstance(schema, dict):
        for key, value in schema.items():
            inner = f"{place}{pointer([key])}"
            if key in ("$ref", "$dynamicRef", "pattern") and isinstance(value, str):
                yield inner, key, value
            elif key not in _VALUES:
                yield from _leads(value, inner)


def _resolves(schema: Json, reference: str) -> bool:
    """True for `#` and for a pointer that leads somewhere. Nothing is ever fetched."""
    if reference != "#" and not reference.startswith("#/"):
        return False
    node = schema
    for part in reference.split("/")[1:]:
        name = part.replace("~1", "/").replace("~0", "~")
        if not isinstance(node, dict) or name not in node:
            return False
        node = node[name]
    return True


@cache
def _metaschema() -> Draft202012Validator:
    return Draft202012Validator(Draft202012Validator.META_SCHEMA)

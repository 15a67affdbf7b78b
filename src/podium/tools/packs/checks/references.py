"""Where the references of a schema lead: to schemas inside it, in no circle, and to not too many."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from urllib.parse import unquote

from podium.core.model import Json
from podium.core.regex_cost import RegexTooCostly, pattern_cost
from podium.tools.packs.places import pointer

DRAFT = "https://json-schema.org/draft/2020-12/schema"
MAX_SIZE = 10_000
"""Schemas that one may come to when every reference is followed."""
MAX_DEPTH = 50
"""How far schemas may be nested then. Checking a value goes as deep, and Python not much deeper."""

_ONE = ("items", "additionalProperties", "not", "if", "then", "else", "contains", "propertyNames")
_UNEVALUATED = ("unevaluatedItems", "unevaluatedProperties")
_LISTS = ("allOf", "anyOf", "oneOf", "prefixItems")
_NAMED = ("properties", "patternProperties", "dependentSchemas")
_STORES = ("$defs", "definitions")
"""What lies in them is used where it is referred to."""
_ELSEWHERE = ("$dynamicRef", "$dynamicAnchor", "$recursiveRef", "$recursiveAnchor", "$anchor")
_TOP_ONLY = ("$id", "$schema")
_UNEVALUATED_TIMES = 3
"""To find what was left over, everything beside it is looked at once more, and at each level again."""


def reference_problems(schema: Json) -> Iterator[tuple[str, str]]:
    """Pointer and words of what a sound schema may say and a pack may not. Nothing is looked up."""
    found = dict(_schemas(schema, ""))
    problems = [
        problem for place, node in found.items() for problem in _problems(place, node, found)
    ]
    yield from problems or SchemaSizes(schema).problems()


def _schemas(node: Json, place: str) -> Iterator[tuple[str, Mapping[str, Json]]]:
    """Everything in a schema that is a schema itself, whatever names it stands under."""
    if not isinstance(node, dict):
        return
    yield place, node
    for key, value in node.items():
        for step, inner in _beneath(key, value):
            yield from _schemas(inner, f"{place}{pointer(step)}")


def _beneath(key: str, value: Json) -> Iterator[tuple[tuple[str | int, ...], Json]]:
    if key in _ONE or key in _UNEVALUATED:
        yield (key,), value
    elif key in _LISTS and isinstance(value, list):
        yield from (((key, number), inner) for number, inner in enumerate(value))
    elif (key in _NAMED or key in _STORES) and isinstance(value, dict):
        yield from (((key, name), inner) for name, inner in value.items())


def _problems(
    place: str, node: Mapping[str, Json], found: Mapping[str, Mapping[str, Json]]
) -> Iterator[tuple[str, str]]:
    for key in (*_ELSEWHERE, *(_TOP_ONLY if place else ())):
        if key in node:
            yield f"{place}/{key}", "is not known to packs here; use `$ref` and `$defs`"
    if not place and node.get("$schema", DRAFT) != DRAFT:
        yield "/$schema", f"must be {DRAFT}, or left out"
    if "$ref" in node and _target(node["$ref"]) not in found:
        yield (
            f"{place}/$ref",
            f"{str(node['$ref'])[:200]!r} points at nothing inside this schema that is a schema",
        )
    if "pattern" in node:
        for problem in _pattern_problems(node["pattern"]):
            yield f"{place}/pattern", problem
    for name in node.get("patternProperties") or ():
        for problem in _pattern_problems(name, quick=True):
            yield f"{place}{pointer(('patternProperties', name))}", problem


def _pattern_problems(pattern: str, quick: bool = False) -> Iterator[str]:
    try:
        cost = pattern_cost(pattern)
    except RegexTooCostly as error:
        yield f"{pattern[:100]!r} {error}"
        return
    # Names are searched with all of these patterns at once, so no length can be set for each.
    if quick and cost.longest is not None:
        yield f"{pattern[:100]!r} can be slow on long names; begin it with ^, and let it go only one way"


def _target(reference: Json) -> str | None:
    """The pointer that a reference names, as it is followed later. None: it leads elsewhere."""
    if not isinstance(reference, str) or not reference.startswith("#"):
        return None
    place = unquote(reference[1:])
    parts = [part.replace("~1", "/").replace("~0", "~") for part in place.split("/")[1:]]
    return pointer(parts) if not place or place.startswith("/") else None


class SchemaSizes:
    """What each part of a schema comes to when its references are followed."""

    def __init__(self, schema: Json) -> None:
        self._found = dict(_schemas(schema, ""))
        self._known: dict[str, tuple[int, int]] = {}
        self._open: list[str] = []

    def problems(self) -> Iterator[tuple[str, str]]:
        for place in self._found:
            try:
                self._measured(place)
            except _SchemaTooLarge as error:
                yield error.place, error.words
                return

    def of(self, place: str) -> int:
        """How many schemas there are at this pointer, in a schema without problems."""
        return self._measured(place)[0] if place in self._found else 1

    def _measured(self, place: str) -> tuple[int, int]:
        """Size and depth."""
        if place not in self._known:
            if place in self._open:
                raise _SchemaTooLarge(
                    f"{self._open[-1]}/$ref", f"goes round in a circle: #{place} again"
                )
            self._open.append(place)
            if len(self._open) > MAX_DEPTH:
                raise _SchemaTooLarge(place, f"is more than {MAX_DEPTH} deep, references followed")
            self._known[place] = self._added_up(place)
            self._open.pop()
        return self._known[place]

    def _added_up(self, place: str) -> tuple[int, int]:
        node = self._found[place]
        inner = [self._measured(each) for each in self._used_by(place, node)]
        size = 1 + sum(size for size, _ in inner)
        size *= _UNEVALUATED_TIMES if any(key in node for key in _UNEVALUATED) else 1
        depth = 1 + max((depth for _, depth in inner), default=0)
        if size > MAX_SIZE:
            raise _SchemaTooLarge(
                place, f"comes to more than {MAX_SIZE} schemas when references are followed"
            )
        if depth > MAX_DEPTH:
            raise _SchemaTooLarge(place, f"is more than {MAX_DEPTH} deep, references followed")
        return size, depth

    def _used_by(self, place: str, node: Mapping[str, Json]) -> Iterator[str]:
        for key, value in node.items():
            if key not in _STORES:
                steps = (f"{place}{pointer(step)}" for step, _ in _beneath(key, value))
                yield from (step for step in steps if step in self._found)
        if "$ref" in node:
            yield _target(node["$ref"]) or ""


class _SchemaTooLarge(Exception):
    """A schema that no value could be held against in good time."""

    def __init__(self, place: str, words: str) -> None:
        super().__init__(words)
        self.place = place
        self.words = words

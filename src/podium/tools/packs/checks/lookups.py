"""Lookups read only, name kinds of records that tools ask for, and can reach a record that is known by its id."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from podium.core.decisions import Tier
from podium.core.model import Json
from podium.core.packs import MENTION, Lookup, RecordSource
from podium.tools.packs.checks.registry_check import (
    KINDS,
    RegistryCheck,
    properties_of,
    required_of,
)
from podium.tools.packs.registry_file import pointer

MATCHED = ("name", "phone", "email", "suburb", "address", "text")
"""Kinds of fields by which people name a record."""
ID = "$id"


def check(registry_check: RegistryCheck) -> None:
    asked = set(_id_kinds(registry_check))
    declared = {lookup.kind for lookup in registry_check.registry.lookup}
    seen: set[str] = set()
    for number, lookup in enumerate(registry_check.registry.lookup):
        location = pointer(("lookup", number))
        for path, problem in _problems(registry_check, lookup, asked, declared):
            registry_check.problems.add(f"{location}{path}", problem)
        if lookup.kind in seen:
            registry_check.problems.add(f"{location}/kind", f"{lookup.kind!r} has a lookup already")
        seen.add(lookup.kind)
    for number, shape in enumerate(registry_check.registry.contexts):
        for key, kind in shape.records.items():
            if kind not in declared:
                registry_check.problems.add(
                    pointer(("contexts", number, "records", key)),
                    f"no lookup has the kind {kind!r}",
                )


def _id_kinds(registry_check: RegistryCheck) -> Iterator[str]:
    registry = registry_check.registry
    schemas = [tool.input_schema for tool in registry.tools]
    for schema in (*schemas, *(skill.input_schema for skill in registry.skills)):
        for shape in properties_of(schema).values():
            kind = str(shape.get("x-kind", "")) if isinstance(shape, Mapping) else ""
            if kind.startswith("id:"):
                yield kind.removeprefix("id:")


def _problems(
    registry_check: RegistryCheck, lookup: Lookup, asked: set[str], declared: set[str]
) -> Iterator[tuple[str, str]]:
    if lookup.kind not in asked:
        yield "/kind", f"no tool has an argument with the x-kind 'id:{lookup.kind}'"
    yield from _source_problems(registry_check, "/find", lookup.find)
    if lookup.get is not None:
        yield from _source_problems(registry_check, "/get", lookup.get)
        if ID not in lookup.get.arguments.values():
            yield "/get/arguments", f"one of them must be {ID!r}, the id of the record"
    elif MENTION in lookup.find.arguments.values():
        yield "/find", f"finds by {MENTION!r} alone; add a `get` that reads a record by its id"
    if not lookup.label:
        yield "/label", "is empty; name the fields by which people tell records apart"
    for column, kind in lookup.match.items():
        if kind not in MATCHED:
            yield pointer(("match", column)), f"{kind!r} is not one of {', '.join(MATCHED)}"
    for kind in lookup.parents:
        if kind not in declared or kind == lookup.kind:
            yield pointer(("parents", kind)), f"no other lookup has the kind {kind!r}"
    for kind in lookup.gives:
        if kind not in KINDS:
            yield pointer(("gives", kind)), f"{kind!r} is not a known kind of field"


def _source_problems(
    registry_check: RegistryCheck, path: str, source: RecordSource
) -> Iterator[tuple[str, str]]:
    tool = registry_check.tools.get(source.tool)
    if tool is None:
        yield f"{path}/tool", f"this registry has no tool {source.tool!r}"
        return
    # As for what runs unasked elsewhere: nothing to undo, nothing to prove, nobody to ask.
    if tool.undo or tool.verify or tool.tier >= Tier.T2:
        yield f"{path}/tool", f"{source.tool!r} changes something; a lookup only reads"
    if source.rows not in tool.receipt_fields:
        yield f"{path}/rows", f"{source.rows!r} is not a receipt field of {source.tool!r}"
    missing = [name for name in required_of(tool.input_schema) if name not in source.arguments]
    if missing:
        yield f"{path}/arguments", f"{source.tool!r} requires {', '.join(missing)}"
    known: Mapping[str, Json] = properties_of(tool.input_schema)
    for name in source.arguments:
        if name not in known:
            yield (
                pointer((path.strip("/"), "arguments", name)),
                f"{source.tool!r} has no such argument",
            )

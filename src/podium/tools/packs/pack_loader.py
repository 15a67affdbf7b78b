"""Loads a pack: the whole of it, or nothing with every fault named."""

from __future__ import annotations

from pathlib import Path

from podium.core.errors import BadInput, PackInvalid, PackProblem
from podium.core.model import Json
from podium.core.packs import Pack
from podium.tools.packs.checks import CHECKS, RegistryCheck
from podium.tools.packs.checks.registry_check import CheckTooLong
from podium.tools.packs.checks.schemas import schema_problems
from podium.tools.packs.files import REGISTRY_FILE, PackSnapshot, snapshot_of
from podium.tools.packs.registry_file import pointer, read_json, read_text, registry_of

_LOADED: dict[str, Pack] = {}
"""The sound packs of this process, by folder: workers ask for theirs with every run."""
MAX_VOCABULARY_ENTRIES = 100_000
"""Lines that a file of known words may have."""


def load_pack(folder: Path) -> Pack:
    """The checked pack. Raises `PackInvalid` with all its faults; none of its code was run.

    A pack whose files are as they were when this process loaded it last is not checked again.
    """
    if not (folder / REGISTRY_FILE).is_file():
        raise BadInput(f"{str(folder)!r} is not a pack: it has no {REGISTRY_FILE}")
    files = snapshot_of(folder)
    key = str(folder.resolve())
    pack = _LOADED.get(key)
    if pack is None or pack.digest != files.digest:
        pack = _LOADED[key] = _checked(files)
    return pack


def _checked(files: PackSnapshot) -> Pack:
    read = read_json(files, REGISTRY_FILE)
    registry = registry_of(read.data, read.problems)
    if registry is None:
        raise PackInvalid(read.problems.in_order())
    registry_check = RegistryCheck(registry, files, read.problems)
    beside: list[PackProblem] = []
    try:
        for check in CHECKS:
            check(registry_check)
        vocabulary = _vocabulary(registry_check, beside)
        schemas = _context_schemas(registry_check, beside)
    except CheckTooLong:
        problem = (
            "takes too long to check; make the pack smaller, or its schemas and patterns simpler"
        )
        read.problems.problems.append(PackProblem(read.problems.file, "", problem))
    if read.problems.problems or beside:
        raise PackInvalid([*read.problems.in_order(), *beside])
    return Pack(
        registry=registry,
        folder=str(files.folder.resolve()),
        digest=files.digest,
        vocabulary=vocabulary,
        context_schemas=schemas,
    )


def _vocabulary(
    registry_check: RegistryCheck, beside: list[PackProblem]
) -> dict[str, tuple[str, ...]]:
    vocabulary: dict[str, tuple[str, ...]] = {}
    for kind, name in registry_check.registry.vocabulary.items():
        location = pointer(("vocabulary", kind))
        try:
            entries = _entries(read_text(registry_check.files, registry_check.files.name_of(name)))
            if len(entries) > MAX_VOCABULARY_ENTRIES:
                registry_check.problems.add(
                    location, f"{name!r} has more than {MAX_VOCABULARY_ENTRIES} words"
                )
            vocabulary[kind] = entries
        except ValueError as error:
            registry_check.problems.add(location, str(error))
        except PackInvalid as error:
            beside.extend(error.problems)
    return vocabulary


def _entries(text: str) -> tuple[str, ...]:
    """One a line; blank lines and those that begin with `#` say nothing."""
    lines = (line.strip() for line in text.splitlines())
    return tuple(dict.fromkeys(line for line in lines if line and not line.startswith("#")))


def _context_schemas(
    registry_check: RegistryCheck, beside: list[PackProblem]
) -> dict[str, dict[str, Json]]:
    schemas: dict[str, dict[str, Json]] = {}
    for number, shape in enumerate(registry_check.registry.contexts):
        try:
            schemas[shape.name] = _schema(
                registry_check, registry_check.files.name_of(shape.schema_file)
            )
        except ValueError as error:
            registry_check.problems.add(f"/contexts/{number}/schema_file", str(error))
        except PackInvalid as error:
            beside.extend(error.problems)
    return schemas


def _schema(registry_check: RegistryCheck, name: str) -> dict[str, Json]:
    read = read_json(registry_check.files, name)
    if not isinstance(read.data, dict):
        read.problems.add("", "must be a JSON Schema object")
    else:
        for location, problem in schema_problems(read.data, registry_check.effort):
            read.problems.add(location, problem)
    if read.problems.problems:
        raise PackInvalid(read.problems.in_order())
    schema: dict[str, Json] = read.data
    return schema

"""Loads a pack: the whole of it, or nothing with every fault named."""

from __future__ import annotations

from pathlib import Path

from podium.domain.errors import BadInput, PackFault, PackInvalid
from podium.domain.model import Json
from podium.domain.packs import Pack, PackRegistry
from podium.tools.packs.checks import CHECKS, Papers
from podium.tools.packs.checks.schemas import schema_problems
from podium.tools.packs.files import pack_digest
from podium.tools.packs.reading import Faults, inside, read_json, read_text
from podium.tools.packs.shape import registry_of

REGISTRY_FILE = "tools.registry.json"
_LOADED: dict[str, Pack] = {}
"""The sound packs of this process, by folder: workers ask for theirs with every run."""
MOST_WORDS = 100_000
"""Lines that a file of known words may have."""


def load_pack(folder: Path) -> Pack:
    """The checked pack. Raises `PackInvalid` with all its faults; none of its code was run.

    A pack whose files are as they were when this process loaded it last is not checked again.
    """
    if not (folder / REGISTRY_FILE).is_file():
        raise BadInput(f"{str(folder)!r} is no pack: it has no file {REGISTRY_FILE}")
    # Before anything is read: what is edited meanwhile is then not what was digested.
    digest = pack_digest(folder)
    place = str(folder.resolve())
    known = _LOADED.get(place)
    if known is None or known.digest != digest:
        known = _LOADED[place] = _checked(folder, digest)
    return known


def _checked(folder: Path, digest: str) -> Pack:
    shown = str(folder / REGISTRY_FILE)
    read = read_json(folder / REGISTRY_FILE, shown)
    registry = registry_of(read.data, read.faults)
    if registry is None:
        raise PackInvalid(read.faults.in_order())
    papers = Papers(registry, folder, read.faults)
    for check in CHECKS:
        check(papers)
    beside: list[PackFault] = []
    vocabulary = _vocabulary(registry, folder, read.faults, beside)
    schemas = _context_schemas(registry, folder, read.faults, beside)
    if read.faults.found or beside:
        raise PackInvalid([*read.faults.in_order(), *beside])
    return Pack(
        registry=registry,
        folder=str(folder.resolve()),
        digest=digest,
        vocabulary=vocabulary,
        context_schemas=schemas,
    )


def _vocabulary(
    registry: PackRegistry, folder: Path, faults: Faults, beside: list[PackFault]
) -> dict[str, tuple[str, ...]]:
    found: dict[str, tuple[str, ...]] = {}
    for kind, name in registry.vocabulary.items():
        try:
            words = _words(read_text(inside(folder, name), str(folder / name)))
            if len(words) > MOST_WORDS:
                faults.add(f"/vocabulary/{kind}", f"{name!r} has more than {MOST_WORDS} words")
            found[kind] = words
        except ValueError as error:
            faults.add(f"/vocabulary/{kind}", str(error))
        except PackInvalid as error:
            beside.extend(error.faults)
    return found


def _words(text: str) -> tuple[str, ...]:
    """One a line; blank lines and those that begin with `#` say nothing."""
    lines = (line.strip() for line in text.splitlines())
    return tuple(dict.fromkeys(line for line in lines if line and not line.startswith("#")))


def _context_schemas(
    registry: PackRegistry, folder: Path, faults: Faults, beside: list[PackFault]
) -> dict[str, dict[str, Json]]:
    found: dict[str, dict[str, Json]] = {}
    for number, shape in enumerate(registry.contexts):
        try:
            path = inside(folder, shape.schema_file)
            found[shape.name] = _schema(path, str(folder / shape.schema_file))
        except ValueError as error:
            faults.add(f"/contexts/{number}/schema_file", str(error))
        except PackInvalid as error:
            beside.extend(error.faults)
    return found


def _schema(path: Path, shown: str) -> dict[str, Json]:
    read = read_json(path, shown)
    if not isinstance(read.data, dict):
        read.faults.add("", "must be an object: a JSON Schema")
    else:
        for place, problem in schema_problems(read.data):
            read.faults.add(place, problem)
    if read.faults.found:
        raise PackInvalid(read.faults.in_order())
    schema: dict[str, Json] = read.data
    return schema

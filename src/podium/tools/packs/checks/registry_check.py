"""Context of the checks: a registry of the right shape, its files, a collector of problems, and limits on the work."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property

from podium.core.model import Json
from podium.core.packs import PackRegistry, PackTool, Skill
from podium.tools.packs.files import PackSnapshot
from podium.tools.packs.registry_file import ProblemCollector

MAX_STEPS = 500_000_000
"""For a whole pack: a few seconds. Packs as people write them take a thousandth of it."""
STEPS_PER_SCHEMA = 2_000
"""Cost of checking one value against one schema, in steps of a search."""
STEPS_PER_PATTERN = 2_000
"""Cost of matching a tool's name with one pattern of a domain."""
STEPS_PER_CHECKED_KEY = 10_000
"""Cost of checking one value of a schema against the standard."""


class CheckTooLong(Exception):
    """Checking this pack to the end would take too long."""


class CheckEffort:
    """Work spent on a pack so far."""

    def __init__(self) -> None:
        self._steps = 0

    def spend(self, steps: int) -> None:
        """Raises `CheckTooLong`, before the work that would be too much is done."""
        self._steps += steps
        if self._steps > MAX_STEPS:
            raise CheckTooLong


def values_in(value: Json) -> int:
    """Count the values in this one, itself among them."""
    if isinstance(value, dict):
        return 1 + sum(map(values_in, value.values()))
    return 1 + sum(map(values_in, value)) if isinstance(value, list) else 1


KINDS = (
    "phone",
    "email",
    "money",
    "date",
    "datetime",
    "time",
    "name",
    "suburb",
    "address",
    "postcode",
    "text",
    "number",
    "choice",
    "flag",
)
RESOLVED = ("last_run", "last_failed_run", "message")
"""Sources of `x-resolve` for a value that the message leaves out: the record, or the whole message."""
_ID = re.compile(r"id:[a-z][a-z0-9_]*")


def is_kind(kind: object) -> bool:
    """Check a property's `x-kind`: one of `KINDS`, or `id:` and what it is the id of."""
    return isinstance(kind, str) and (kind in KINDS or is_id(kind))


def is_id(kind: object) -> bool:
    return isinstance(kind, str) and _ID.fullmatch(kind) is not None


@dataclass(frozen=True)
class RegistryCheck:
    """One registry under examination."""

    registry: PackRegistry
    files: PackSnapshot
    problems: ProblemCollector
    effort: CheckEffort = field(default_factory=CheckEffort)

    @cached_property
    def tools(self) -> dict[str, PackTool]:
        return {tool.name: tool for tool in self.registry.tools}

    def located_tools(self) -> Iterator[tuple[str, PackTool]]:
        """Every tool with its pointer."""
        for number, tool in enumerate(self.registry.tools):
            yield f"/tools/{number}", tool

    def located_skills(self) -> Iterator[tuple[str, Skill]]:
        for number, skill in enumerate(self.registry.skills):
            yield f"/skills/{number}", skill

    def must_be_tool(self, location: str, name: str) -> PackTool | None:
        """Return the tool of this name; report a problem at `location` when there is none."""
        tool = self.tools.get(name)
        if tool is None:
            self.problems.add(location, f"this registry has no tool {name!r}")
        return tool


def properties_of(schema: dict[str, Json]) -> dict[str, Json]:
    """The arguments that a schema has, also when it is not sound."""
    value = schema.get("properties")
    return value if isinstance(value, dict) else {}


def required_of(schema: dict[str, Json]) -> tuple[str, ...]:
    value = schema.get("required")
    return tuple(str(name) for name in value) if isinstance(value, list) else ()

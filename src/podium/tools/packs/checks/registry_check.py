"""Input of the checks: a registry of the right shape, its files, and a collector of problems."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property

from podium.core.model import Json
from podium.core.packs import PackRegistry, PackTool, Skill
from podium.tools.packs.effort import CheckEffort
from podium.tools.packs.files import PackSnapshot
from podium.tools.packs.reading import ProblemCollector


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
            self.problems.add(location, f"there is no tool {name!r} in this registry")
        return tool


def properties_of(schema: dict[str, Json]) -> dict[str, Json]:
    """The arguments that a schema has, also when it is not sound."""
    value = schema.get("properties")
    return value if isinstance(value, dict) else {}


def required_of(schema: dict[str, Json]) -> tuple[str, ...]:
    value = schema.get("required")
    return tuple(str(name) for name in value) if isinstance(value, list) else ()

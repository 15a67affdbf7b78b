"""Relations between tools: dependencies, undo, safer alternatives."""

from __future__ import annotations

from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from itertools import islice

from podium.core.packs import PackTool
from podium.tools.packs.checks.registry_check import RegistryCheck, properties_of, required_of
from podium.tools.packs.kinds import is_id
from podium.tools.packs.places import pointer

_MAX_CIRCLES = 20
"""Limit on reported circles: finding each takes time."""


def check(registry_check: RegistryCheck) -> None:
    for location, tool in registry_check.located_tools():
        _check_dependencies(registry_check, location, tool)
        _check_undo(registry_check, location, tool)
        if tool.safer_alternative is not None:
            registry_check.must_be_tool(
                f"{location}/safer_alternative/tool", tool.safer_alternative.tool
            )
    for number, example in enumerate(registry_check.registry.tier_examples):
        registry_check.must_be_tool(f"/tier_examples/{number}/tool", example.tool)
    for cycle in islice(_cycles(registry_check), _MAX_CIRCLES):
        number = [tool.name for tool in registry_check.registry.tools].index(cycle[0])
        problem = f"goes round in a circle: {' → '.join((*cycle, cycle[0]))}; take one of them out"
        registry_check.problems.add(f"/tools/{number}/depends_on", problem)


def _check_dependencies(registry_check: RegistryCheck, location: str, tool: PackTool) -> None:
    for number, dependency in enumerate(tool.depends_on):
        at = f"{location}/depends_on/{number}"
        before = registry_check.must_be_tool(f"{at}/tool", dependency.tool)
        for argument, field in dependency.fills.items():
            where = f"{at}{pointer(('fills', argument))}"
            if argument not in properties_of(tool.input_schema):
                registry_check.problems.add(where, f"{argument!r} is no argument of {tool.name}")
            if before is not None and field.partition(".")[0] not in before.receipt_fields:
                problem = f"{field!r} is not among the receipt_fields of {before.name}"
                registry_check.problems.add(where, problem)


def _check_undo(registry_check: RegistryCheck, location: str, tool: PackTool) -> None:
    if tool.undo is None:
        return
    reverse = registry_check.must_be_tool(f"{location}/undo", tool.undo)
    if reverse is None:
        return
    names = {*properties_of(tool.input_schema), *tool.receipt_fields}
    for name in required_of(reverse.input_schema):
        schema = properties_of(reverse.input_schema).get(name)
        if isinstance(schema, dict) and is_id(schema.get("x-kind")) and name not in names:
            problem = f"{reverse.name} needs {name!r}, which is no argument and no receipt field of {tool.name}"
            registry_check.problems.add(f"{location}/undo", problem)


def _cycles(registry_check: RegistryCheck) -> Iterator[list[str]]:
    """Circles of dependencies that have no tool in common, each from its first tool on."""
    before = {
        name: {dependency.tool for dependency in tool.depends_on}
        for name, tool in registry_check.tools.items()
    }
    while True:
        try:
            TopologicalSorter(before).prepare()
            return
        except CycleError as error:
            cycle: list[str] = error.args[1][:0:-1]
        order = {name: number for number, name in enumerate(before)}
        first = cycle.index(min(cycle, key=order.__getitem__))
        yield cycle[first:] + cycle[:first]
        before = {name: needs - set(cycle) for name, needs in before.items() if name not in cycle}

"""Tools have unique names in a domain, relations to tools that exist, and proofs of what they did; skills chain tools that exist."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from graphlib import CycleError, TopologicalSorter
from itertools import islice
from pathlib import Path

from podium.core.model import Json
from podium.core.packs import PackTool, RowCheck, Skill, SkillStep, fits, floor_tier
from podium.tools.packs.checks.registry_check import (
    STEPS_PER_PATTERN,
    RegistryCheck,
    is_id,
    is_kind,
    properties_of,
    required_of,
)
from podium.tools.packs.files import REGISTRY_FILE, is_shipped, pack_digest, shipped_packs
from podium.tools.packs.registry_file import pointer

_PATTERN = re.compile(r"[a-z0-9_.*?]+")


def check_names(registry_check: RegistryCheck) -> None:
    registry = registry_check.registry
    named = [(f"{location}/name", tool.name) for location, tool in registry_check.located_tools()]
    named += [
        (f"{location}/name", skill.name) for location, skill in registry_check.located_skills()
    ]
    _once(registry_check, "tool or skill", named)
    _once(
        registry_check,
        "domain",
        _locations("domains", "name", (row.name for row in registry.domains)),
    )
    _once(
        registry_check,
        "setting",
        _locations("settings", "name", (one.name for one in registry.settings)),
    )
    _once(
        registry_check,
        "context",
        _locations("contexts", "name", (one.name for one in registry.contexts)),
    )
    examples = (example.tool for example in registry.tier_examples)
    _once(registry_check, "tier example", _locations("tier_examples", "tool", examples))
    for kind in registry.vocabulary:
        if not is_kind(kind):
            registry_check.problems.add(
                f"/vocabulary/{kind}", f"{kind!r} is not a known kind of field"
            )
    if not registry.tools:
        registry_check.problems.add("/tools", "is empty; a pack needs at least one tool")
    _check_own_name(registry_check)
    _check_patterns(registry_check)
    _check_domains(registry_check)
    _check_floors(registry_check)


def _check_own_name(registry_check: RegistryCheck) -> None:
    """Runs find a pack by its name, and it keeps its own files under it."""
    name, folder = registry_check.registry.pack, registry_check.files.folder.resolve()
    if folder.name != name:
        problem = f"pack {name!r} is in a folder named {folder.name!r}; give both the same name"
        registry_check.problems.add("/pack", problem)
    elif not is_shipped(folder) and _is_taken(registry_check, shipped_packs() / name):
        problem = f"a pack named {name!r} ships with Podium; rename this pack and its folder"
        registry_check.problems.add("/pack", problem)


def _is_taken(registry_check: RegistryCheck, shipped: Path) -> bool:
    """Check for another pack at this path. One with the same files is not another one."""
    if not (shipped / REGISTRY_FILE).is_file():
        return False
    return pack_digest(shipped) != registry_check.files.digest


def _locations(part: str, key: str, names: Iterable[str]) -> list[tuple[str, str]]:
    return [(f"/{part}/{number}/{key}", name) for number, name in enumerate(names)]


def _once(registry_check: RegistryCheck, what: str, named: Iterable[tuple[str, str]]) -> None:
    first: dict[str, str] = {}
    for location, name in named:
        if name in first:
            registry_check.problems.add(
                location, f"{what} {name!r} already exists, at {first[name]}"
            )
        first.setdefault(name, location)


def _check_patterns(registry_check: RegistryCheck) -> None:
    for number, row in enumerate(registry_check.registry.domains):
        if not row.patterns:
            registry_check.problems.add(
                f"/domains/{number}/patterns", "is empty, so no tool can match it; add a pattern"
            )
        for index, pattern in enumerate(row.patterns):
            if not _PATTERN.fullmatch(pattern):
                problem = f"{pattern!r} is not a pattern: use names with `*` for any characters, as in quote.*"
                registry_check.problems.add(f"/domains/{number}/patterns/{index}", problem)


def _check_domains(registry_check: RegistryCheck) -> None:
    rows = {row.name for row in registry_check.registry.domains}
    named = [(location, tool.domain) for location, tool in registry_check.located_tools()]
    named += [(location, skill.domain) for location, skill in registry_check.located_skills()]
    for location, domain in named:
        if domain and domain not in rows:
            names = ", ".join(sorted(rows)) or "none"
            registry_check.problems.add(
                f"{location}/domain", f"unknown domain {domain!r}; domains: {names}"
            )


def _check_floors(registry_check: RegistryCheck) -> None:
    patterns = sum(len(row.patterns) for row in registry_check.registry.domains)
    registry_check.effort.spend(len(registry_check.registry.tools) * patterns * STEPS_PER_PATTERN)
    for location, tool in registry_check.located_tools():
        matches = fits(registry_check.registry, tool.name)
        if not matches:
            problem = f"{tool.name!r} matches no pattern of any domain; add a pattern so that its risk is known"
            registry_check.problems.add(f"{location}/name", problem)
            continue
        equal = {fit.row.name for fit in matches if fit.specificity == matches[0].specificity}
        if len(equal) > 1:
            problem = f"{tool.name!r} matches {' and '.join(sorted(equal))} equally well; make one of the patterns more specific"
            registry_check.problems.add(f"{location}/name", problem)
        floor, reason = floor_tier(registry_check.registry, tool.name)
        if tool.tier < floor:
            registry_check.problems.add(
                f"{location}/tier", f"{tool.tier} is below {floor}: {reason}"
            )


_MAX_CIRCLES = 20
"""Limit on reported circles: finding each takes time."""


def check_relations(registry_check: RegistryCheck) -> None:
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
        problem = f"is circular: {' → '.join((*cycle, cycle[0]))}; remove one of these dependencies"
        registry_check.problems.add(f"/tools/{number}/depends_on", problem)


def _check_dependencies(registry_check: RegistryCheck, location: str, tool: PackTool) -> None:
    for number, dependency in enumerate(tool.depends_on):
        at = f"{location}/depends_on/{number}"
        before = registry_check.must_be_tool(f"{at}/tool", dependency.tool)
        for argument, field in dependency.fills.items():
            where = f"{at}{pointer(('fills', argument))}"
            if argument not in properties_of(tool.input_schema):
                registry_check.problems.add(
                    where, f"{argument!r} is not an argument of {tool.name}"
                )
            if before is not None and field.partition(".")[0] not in before.receipt_fields:
                problem = f"{field!r} is not among the receipt_fields of {before.name}"
                registry_check.problems.add(where, problem)


def _check_undo(registry_check: RegistryCheck, location: str, tool: PackTool) -> None:
    if tool.undo is None:
        if tool.undo_until:
            registry_check.problems.add(
                f"{location}/undo_until", "needs an `undo`, the tool that reverses this one"
            )
        return
    reverse = registry_check.must_be_tool(f"{location}/undo", tool.undo)
    if reverse is None:
        return
    names = {*properties_of(tool.input_schema), *tool.receipt_fields}
    for name in required_of(reverse.input_schema):
        schema = properties_of(reverse.input_schema).get(name)
        if isinstance(schema, dict) and is_id(schema.get("x-kind")) and name not in names:
            problem = f"{reverse.name} needs {name!r}, which is neither an argument nor a receipt field of {tool.name}"
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


OWN_FIELDS = ("verification", "undoes")
"""Fields that Podium itself puts on every receipt of a pack's tool."""

_REFERENCE = re.compile(r"\$(?P<source>\w+)\.(?P<path>.+)")
_COLUMN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def check_proofs(registry_check: RegistryCheck) -> None:
    for location, tool in registry_check.located_tools():
        _check_fields(registry_check, location, tool)
        for number, proof in enumerate(tool.verify):
            _check_proof(registry_check, f"{location}/verify/{number}", tool, proof)
        keeps_records = isinstance(tool.handler, dict) and "records" in tool.handler
        if tool.verify and not registry_check.registry.reader and not keeps_records:
            problem = 'needs a `"reader": "module:function"` in the pack, which reads the rows'
            registry_check.problems.add(f"{location}/verify", problem)


def _check_fields(registry_check: RegistryCheck, location: str, tool: PackTool) -> None:
    if not tool.receipt_fields:
        problem = "is empty; name the fields of the result that prove what was done"
        registry_check.problems.add(f"{location}/receipt_fields", problem)
    names: set[str] = set()
    for number, name in enumerate(tool.receipt_fields):
        at = f"{location}/receipt_fields/{number}"
        if name in names:
            registry_check.problems.add(at, f"{name!r} is listed twice")
        names.add(name)
        if name in OWN_FIELDS:
            registry_check.problems.add(
                at, f"{name!r} is a field that Podium puts on every receipt; remove it"
            )


def _check_proof(
    registry_check: RegistryCheck, location: str, tool: PackTool, proof: RowCheck
) -> None:
    if not proof.where:
        registry_check.problems.add(f"{location}/where", "is empty; name the row to look up")
    if proof.absent and proof.expect:
        registry_check.problems.add(
            f"{location}/expect",
            "cannot be combined with `absent`, because an absent row has no values",
        )
    for part, columns in (("where", proof.where), ("expect", proof.expect)):
        for column, value in columns.items():
            for problem in _problems(tool, column, value):
                registry_check.problems.add(f"{location}{pointer((part, column))}", problem)
    for number, column in enumerate(proof.columns):
        if not _COLUMN.fullmatch(column):
            registry_check.problems.add(
                f"{location}/columns/{number}", f"{column!r} is not a column name"
            )
    if not _COLUMN.fullmatch(proof.table):
        registry_check.problems.add(f"{location}/table", f"{proof.table!r} is not a table name")


def _problems(tool: PackTool, column: str, value: Json) -> Iterator[str]:
    if not _COLUMN.fullmatch(column):
        yield f"{column!r} is not a column name"
    if not isinstance(value, str) or not value.startswith("$"):
        return
    match = _REFERENCE.fullmatch(value)
    source, name = (match["source"], match["path"].partition(".")[0]) if match else ("", "")
    if source == "arg" and name not in properties_of(tool.input_schema):
        yield f"{value!r}: {name!r} is not an argument of {tool.name}"
    elif source == "result" and name not in tool.receipt_fields:
        yield f"{value!r}: {name!r} is not among the receipt_fields"
    elif source not in ("arg", "result"):
        yield f"{value!r} must be `$arg.NAME` or `$result.NAME`"


_STEP_REFERENCE = re.compile(r"\$(?P<source>[A-Za-z_][A-Za-z0-9_-]*)(?:\.(?P<path>.+))?")


def check_skills(registry_check: RegistryCheck) -> None:
    for location, skill in registry_check.located_skills():
        _check_skill(registry_check, location, skill)


def _check_skill(registry_check: RegistryCheck, location: str, skill: Skill) -> None:
    contexts = {shape.name for shape in registry_check.registry.contexts}
    for number, name in enumerate(skill.needs_context):
        if name not in contexts:
            registry_check.problems.add(
                f"{location}/needs_context/{number}", f"there is no context {name!r}"
            )
    if not skill.steps:
        registry_check.problems.add(f"{location}/steps", "is empty; add at least one step")
    earlier: dict[str, PackTool | None] = {}
    for number, step in enumerate(skill.steps):
        at = f"{location}/steps/{number}"
        if step.id in earlier or step.id in ("message", "context", "each"):
            registry_check.problems.add(
                f"{at}/id", f"{step.id!r} is already used; give each step its own ID"
            )
        tool = registry_check.must_be_tool(f"{at}/tool", step.tool)
        _check_step(registry_check, at, skill, step, earlier, tool)
        earlier[step.id] = tool


def _check_step(
    registry_check: RegistryCheck,
    location: str,
    skill: Skill,
    step: SkillStep,
    earlier: dict[str, PackTool | None],
    tool: PackTool | None,
) -> None:
    if step.each and not step.each.startswith("$context."):
        registry_check.problems.add(
            f"{location}/each", "must refer to a list in the context, as `$context.PATH`"
        )
    if step.when:
        problem = _condition_problem(step.when, skill)
        if problem:
            registry_check.problems.add(f"{location}/when", problem)
    for name, value in step.arguments.items():
        at = f"{location}{pointer(('arguments', name))}"
        if tool is not None and name not in properties_of(tool.input_schema):
            registry_check.problems.add(at, f"{name!r} is not an argument of {tool.name}")
        for text in _texts(value):
            problem = _reference_problem(text, skill, step, earlier)
            if problem:
                registry_check.problems.add(at, problem)


def _condition_problem(text: str, skill: Skill) -> str:
    match = _STEP_REFERENCE.fullmatch(text)
    if match is None or match["source"] not in ("message", "context") or not match["path"]:
        return "must be `$message.NAME` or `$context.PATH`"
    return _message_problem(text, match["path"], skill) if match["source"] == "message" else ""


def _message_problem(text: str, path: str, skill: Skill) -> str:
    first = path.partition(".")[0]
    is_property = first in properties_of(skill.input_schema)
    return (
        "" if is_property else f"{text!r}: {first!r} is not a property of the skill's input_schema"
    )


def _reference_problem(
    text: str, skill: Skill, step: SkillStep, earlier: dict[str, PackTool | None]
) -> str:
    match = _STEP_REFERENCE.fullmatch(text)
    if match is None:
        return ""
    source, path = match["source"], match["path"] or ""
    first = path.partition(".")[0]
    if source == "message":
        return _message_problem(text, path, skill)
    if source == "context":
        return "" if path else f"{text!r} must name a part of the context"
    if source == "each":
        return "" if step.each else f"{text!r} is only for a step that has `each`"
    if source not in earlier:
        return f"{text!r}: no earlier step has the ID {source!r}"
    tool = earlier[source]
    if tool is not None and first not in tool.receipt_fields:
        return f"{text!r}: {first!r} is not among the receipt_fields of {tool.name}"
    return ""


def _texts(value: Json) -> list[str]:
    if isinstance(value, str):
        return [value]
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [text for item in inner for text in _texts(item)]

"""Skills chain tools that are there, by references that lead somewhere."""

from __future__ import annotations

import re

from podium.core.model import Json
from podium.core.packs import PackTool, Skill, SkillStep
from podium.tools.packs.checks.registry_check import RegistryCheck, properties_of
from podium.tools.packs.registry_file import pointer

_REFERENCE = re.compile(r"\$(?P<source>[A-Za-z_][A-Za-z0-9_-]*)(?:\.(?P<path>.+))?")


def check(registry_check: RegistryCheck) -> None:
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
    match = _REFERENCE.fullmatch(text)
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
    match = _REFERENCE.fullmatch(text)
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

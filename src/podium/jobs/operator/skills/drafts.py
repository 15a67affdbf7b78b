"""Drafts of calls from what was requested, a skill's steps included, in the order their tools demand."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from podium.core.errors import PlanRejected
from podium.core.model import Json
from podium.core.packs import Pack, PackTool, Skill, SkillStep
from podium.core.plan_approval import UngroundedArgument
from podium.jobs.operator.models import Message, PlannedDependency, ToolIntent

_PATH = re.compile(r"\$([A-Za-z_][A-Za-z0-9_]*)(?:\.([A-Za-z0-9_.]+))?")
_NOTHING = object()


@dataclass(frozen=True)
class Draft:
    """A call before it has its place. References name drafts by their keys."""

    key: str
    tool: PackTool
    arguments: dict[str, Json]
    after: tuple[str, ...] = field(default=())
    """Keys of drafts that must come before, whatever tools declare."""
    ungrounded: tuple[UngroundedArgument, ...] = ()


def drafts_of(intents: Sequence[ToolIntent], pack: Pack, message: Message) -> list[Draft]:
    """All drafts, in the order in which things were said. Raises `PlanRejected`."""
    result: list[Draft] = []
    for number, intent in enumerate(intents):
        tool, skill = pack.tool(intent.tool), pack.skill(intent.tool)
        if tool is not None:
            arguments = dict(intent.arguments)
            result.append(Draft(f"w{number}", tool, arguments, ungrounded=intent.ungrounded))
        elif skill is not None:
            drafts = _Unrolling(pack, message, intent.arguments, f"w{number}").drafts(skill)
            result += [_with_ungrounded(draft, intent) for draft in drafts]
        else:
            raise PlanRejected(f"{intent.tool!r} is not in the registry of pack {pack.name!r}")
    return result


def _with_ungrounded(draft: Draft, intent: ToolIntent) -> Draft:
    """A call of a skill is marked whole where anything of the skill is, and where a marked value went."""
    ungrounded = []
    for argument in intent.ungrounded:
        took = [
            name
            for name, value in draft.arguments.items()
            if argument.field and value == argument.value
        ]
        ungrounded += [argument.model_copy(update={"field": name}) for name in took]
    whole = [
        UngroundedArgument(
            value=draft.tool.name, reason=f"part of {intent.tool}, and {argument.line}"
        )
        for argument in intent.ungrounded
    ]
    return replace(draft, ungrounded=tuple(ungrounded or whole))


class _Unrolling:
    """One skill on its way to drafts."""

    def __init__(
        self, pack: Pack, message: Message, arguments: Mapping[str, Json], key: str
    ) -> None:
        self._pack = pack
        self._sources: dict[str, Json] = {"message": dict(arguments), "context": message.context}
        self._key = key
        self._keys: dict[str, list[str]] = {}
        self._repeated: set[str] = set()

    def drafts(self, skill: Skill) -> list[Draft]:
        result: list[Draft] = []
        for step in skill.steps:
            tool = self._pack.tool(step.tool)
            if tool is None:
                raise PlanRejected(
                    f"skill {skill.name!r} uses {step.tool!r}, which is not registered"
                )
            before = (result[-1].key,) if result else ()
            made = [self._draft(step, tool, element, before) for element in self._elements(step)]
            self._keys[step.id] = [draft.key for draft in made]
            if step.each:
                self._repeated.add(step.id)
            result += made
        return result

    def _elements(self, step: SkillStep) -> list[tuple[int, Json]]:
        """List the elements that the step is planned for: none, one, or each of a list."""
        if step.when and self._value(step.when, None) is _NOTHING:
            return []
        if not step.each:
            return [(0, None)]
        elements = self._value(step.each, None)
        if elements is _NOTHING:
            return []
        if not isinstance(elements, list):
            raise PlanRejected(
                f"{step.each!r} is no list, so step {step.id!r} cannot go through it"
            )
        return list(enumerate(elements))

    def _draft(
        self, step: SkillStep, tool: PackTool, indexed: tuple[int, Json], before: tuple[str, ...]
    ) -> Draft:
        number, element = indexed
        arguments = {}
        for name, template in step.arguments.items():
            value = self._value(template, element)
            if value is not _NOTHING:
                arguments[name] = value
        return Draft(f"{self._key}.{step.id}.{number}", tool, arguments, before)

    def _value(self, template: Json, element: Json) -> Json:
        """The template filled in; what nobody gave is left out."""
        if isinstance(template, dict):
            inner = {name: self._value(item, element) for name, item in template.items()}
            return {name: value for name, value in inner.items() if value is not _NOTHING}
        if isinstance(template, list):
            values = [self._value(item, element) for item in template]
            return [value for value in values if value is not _NOTHING]
        match = _PATH.fullmatch(template) if isinstance(template, str) else None
        return template if match is None else self._looked_up(match[1], match[2] or "", element)

    def _looked_up(self, source: str, path: str, element: Json) -> Json:
        if source in self._keys:
            references = [[key, path] for key in self._keys[source]]
            if source in self._repeated:
                return {"$from": references} if references else []
            return {"$from": references[0]}
        start = element if source == "each" else self._sources.get(source, _NOTHING)
        return _walk(start, path)


def _walk(value: Json, path: str) -> Json:
    for name in filter(None, path.split(".")):
        if not isinstance(value, dict) or name not in value:
            return _NOTHING
        value = value[name]
    return value


def ordered(drafts: Sequence[Draft]) -> list[Draft]:
    """The same drafts, predecessors first. Raises `PlanRejected` for a circle, naming it."""
    waiting, placed = list(drafts), list[Draft]()
    while waiting:
        done = {draft.key for draft in placed}
        ready = next((draft for draft in waiting if _before(draft, drafts) <= done), None)
        if ready is None:
            circle = " → ".join(dict.fromkeys(draft.tool.name for draft in waiting))
            raise PlanRejected(f"these tools wait for each other: {circle}")
        waiting.remove(ready)
        placed.append(ready)
    return placed


def dependencies(drafts: Sequence[Draft]) -> tuple[PlannedDependency, ...]:
    """List the tools that had to come before others, and why."""
    names = {draft.tool.name for draft in drafts}
    reasons = {
        (draft.tool.name, dependency.tool): dependency.reason
        for draft in drafts
        for dependency in draft.tool.depends_on
        if dependency.tool in names and dependency.tool != draft.tool.name
    }
    return tuple(
        PlannedDependency(tool=tool, depends_on=before, reason=reason)
        for (tool, before), reason in reasons.items()
    )


def joined(drafts: Sequence[Draft]) -> list[Draft]:
    """Drafts whose missing arguments are taken from the results of those before them."""
    return [_joined(draft, drafts[:position], drafts) for position, draft in enumerate(drafts)]


def _joined(draft: Draft, earlier: Sequence[Draft], drafts: Sequence[Draft]) -> Draft:
    arguments = dict(draft.arguments)
    for dependency in draft.tool.depends_on:
        sources = [candidate for candidate in earlier if candidate.tool.name == dependency.tool]
        if not sources:
            continue
        source = _partner(draft, sources, drafts)
        for argument, source_field in dependency.fills.items():
            if argument not in arguments:
                reference: Json = {"$from": [source.key, source_field]}
                arguments[argument] = reference
    return replace(draft, arguments=arguments)


def _partner(draft: Draft, sources: Sequence[Draft], drafts: Sequence[Draft]) -> Draft:
    """The first with the first, the second with the second; else the nearest."""
    alike = [other for other in drafts if other.tool.name == draft.tool.name]
    if len(alike) == len(sources):
        return sources[alike.index(draft)]
    return sources[-1]


def _before(draft: Draft, drafts: Sequence[Draft]) -> set[str]:
    predecessors = {dependency.tool for dependency in draft.tool.depends_on}
    declared = {
        other.key for other in drafts if other.tool.name in predecessors and other.key != draft.key
    }
    return declared | set(draft.after)

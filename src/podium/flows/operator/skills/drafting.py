"""Wishes become drafts of calls; a skill becomes those of all its steps."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from podium.domain.errors import PlanRejected
from podium.domain.model import Json
from podium.domain.operating import Message, Ungrounded, Wish
from podium.domain.packs import Pack, PackTool, Skill, SkillStep

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
    ungrounded: tuple[Ungrounded, ...] = ()


def drafts_of(wishes: Sequence[Wish], pack: Pack, message: Message) -> list[Draft]:
    """All drafts, in the order in which things were said. Raises `PlanRejected`."""
    found: list[Draft] = []
    for number, wish in enumerate(wishes):
        tool, skill = pack.tool(wish.tool), pack.skill(wish.tool)
        if tool is not None:
            arguments = dict(wish.arguments)
            found.append(Draft(f"w{number}", tool, arguments, ungrounded=wish.ungrounded))
        elif skill is not None:
            drafts = _Unrolling(pack, message, wish.arguments, f"w{number}").drafts(skill)
            found += [_with_marks(draft, wish) for draft in drafts]
        else:
            raise PlanRejected(f"{wish.tool!r} is not in the registry of pack {pack.name!r}")
    return found


def _with_marks(draft: Draft, wish: Wish) -> Draft:
    """A call of a skill is marked whole where anything of the skill is, and where a marked value went."""
    marks = []
    for each in wish.ungrounded:
        took = [
            name for name, value in draft.arguments.items() if each.field and value == each.value
        ]
        marks += [each.model_copy(update={"field": name}) for name in took]
    whole = [
        Ungrounded(value=draft.tool.name, reason=f"part of {wish.tool}, and {each.line}")
        for each in wish.ungrounded
    ]
    return replace(draft, ungrounded=tuple(marks or whole))


class _Unrolling:
    """One skill on its way to drafts."""

    def __init__(self, pack: Pack, message: Message, given: Mapping[str, Json], key: str) -> None:
        self._pack = pack
        self._sources: dict[str, Json] = {"message": dict(given), "context": message.context}
        self._key = key
        self._keys: dict[str, list[str]] = {}
        self._repeated: set[str] = set()

    def drafts(self, skill: Skill) -> list[Draft]:
        found: list[Draft] = []
        for step in skill.steps:
            tool = self._pack.tool(step.tool)
            if tool is None:
                raise PlanRejected(
                    f"skill {skill.name!r} uses {step.tool!r}, which is not registered"
                )
            before = (found[-1].key,) if found else ()
            made = [self._draft(step, tool, each, before) for each in self._elements(step)]
            self._keys[step.id] = [draft.key for draft in made]
            if step.each:
                self._repeated.add(step.id)
            found += made
        return found

    def _elements(self, step: SkillStep) -> list[tuple[int, Json]]:
        """What the step is planned for: nothing, once, or each element of a list."""
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
        self, step: SkillStep, tool: PackTool, each: tuple[int, Json], before: tuple[str, ...]
    ) -> Draft:
        number, element = each
        arguments = {}
        for name, template in step.arguments.items():
            value = self._value(template, element)
            if value is not _NOTHING:
                arguments[name] = value
        return Draft(f"{self._key}.{step.id}.{number}", tool, arguments, before)

    def _value(self, template: Json, element: Json) -> Json:
        """The template filled in; what nobody gave is left out."""
        if isinstance(template, dict):
            inner = {name: self._value(each, element) for name, each in template.items()}
            return {name: value for name, value in inner.items() if value is not _NOTHING}
        if isinstance(template, list):
            values = [self._value(each, element) for each in template]
            return [value for value in values if value is not _NOTHING]
        match = _PATH.fullmatch(template) if isinstance(template, str) else None
        return template if match is None else self._looked_up(match[1], match[2] or "", element)

    def _looked_up(self, source: str, path: str, element: Json) -> Json:
        if source in self._keys:
            places = [[key, path] for key in self._keys[source]]
            if source in self._repeated:
                return {"$from": places} if places else []
            return {"$from": places[0]}
        start = element if source == "each" else self._sources.get(source, _NOTHING)
        return _walk(start, path)


def _walk(value: Json, path: str) -> Json:
    for name in filter(None, path.split(".")):
        if not isinstance(value, dict) or name not in value:
            return _NOTHING
        value = value[name]
    return value

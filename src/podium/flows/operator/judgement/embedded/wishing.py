"""From understood clauses to wishes: skills for combinations, one wish for each id, `it` filled in."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from podium.domain.model import Json
from podium.domain.operating import Message, Wish
from podium.domain.packs import Pack, Skill
from podium.flows.operator.judgement.embedded.extractor import Extractor
from podium.flows.operator.judgement.embedded.index import Entry, Index
from podium.flows.operator.judgement.embedded.understanding import Reader, Understood

_CARRIED = ("phone", "email", "address")
"""Kinds of values that a later clause may mean by `him` or `there`, besides ids."""


@dataclass(frozen=True)
class Wished:
    """A tool or skill, and the part of the message that asks for it."""

    entry: Entry
    start: int
    end: int


@dataclass(frozen=True)
class Wisher:
    """Makes the wishes of one message."""

    pack: Pack
    index: Index
    reader: Reader
    extract: Extractor
    message: Message

    def wishes_of(
        self, understood: Sequence[Understood], banned: frozenset[str]
    ) -> tuple[Wish, ...]:
        parts = [
            Wished(each.entry, each.clause.start, each.clause.end)
            for each in understood
            if each.entry
        ]
        parts = self._with_skills(parts, understood, banned)
        found: list[Wish] = []
        for part in parts:
            for arguments in self._arguments(part):
                wish = Wish(tool=part.entry.name, arguments=self._filled(part, arguments, found))
                if not any(_says_less(wish, other) for other in found):
                    found = [other for other in found if not _says_less(other, wish)] + [wish]
        return tuple(found)

    def _with_skills(
        self, parts: list[Wished], understood: Sequence[Understood], banned: frozenset[str]
    ) -> list[Wished]:
        """The parts, with each run of them that a skill stands for as one."""
        for skill in self.pack.registry.skills:
            tools = tuple(dict.fromkeys(step.tool for step in skill.steps))
            if len(tools) < 2 or banned.intersection(tools) or not self._has_context(skill):
                continue
            for place in range(len(parts) - len(tools) + 1):
                run = parts[place : place + len(tools)]
                if tuple(part.entry.name for part in run) == tools:
                    whole = Wished(self.index.by_name[skill.name], run[0].start, run[-1].end)
                    parts = [*parts[:place], whole, *parts[place + len(tools) :]]
                    break
        return self._as_one_skill(parts, understood, banned)

    def _as_one_skill(
        self, parts: list[Wished], understood: Sequence[Understood], banned: frozenset[str]
    ) -> list[Wished]:
        """One skill for all parts, where the message as a whole says it and every part is in it."""
        if len(parts) < 2 or banned:
            return parts
        whole = self.reader.together([each.clause for each in understood])
        subject = whole.entry.subject if whole.entry and whole.sure else None
        if not isinstance(subject, Skill) or not self._has_context(subject):
            return parts
        within = {subject.name, *(step.tool for step in subject.steps)}
        if whole.entry and all(part.entry.name in within for part in parts):
            return [Wished(whole.entry, whole.clause.start, whole.clause.end)]
        return parts

    def _has_context(self, skill: Skill) -> bool:
        return all(name in self.message.context for name in skill.needs_context)

    def _arguments(self, part: Wished) -> Iterator[dict[str, Json]]:
        """What the part says for its tool: once, or once for each id that it names."""
        text = self.reader.text[part.start : part.end]
        arguments = self.extract.arguments(text, part.entry.subject, self.message)
        name, values = self._several(part)
        if len(values) < 2:
            yield arguments
        for value in values if len(values) > 1 else ():
            yield {**arguments, name: value}

    def _several(self, part: Wished) -> tuple[str, list[Json]]:
        named = [
            each for each in part.entry.required if part.entry.kinds.get(each, "").startswith("id:")
        ]
        if len(named) != 1:
            return "", []
        kind = part.entry.kinds[named[0]]
        inside = [each for each in self.reader.entities if part.start <= each.start < part.end]
        if not any(each.kind == kind for each in inside):
            return "", []
        # `quotes Q-1 and Q-2`: the noun stands at the first one only.
        return named[0], list(
            dict.fromkeys(each.value for each in inside if each.kind in (kind, "id"))
        )

    def _filled(
        self, part: Wished, arguments: dict[str, Json], before: Sequence[Wish]
    ) -> dict[str, Json]:
        """The arguments, and what an earlier wish said of the same kind where a needed one is missing."""
        given = dict(arguments)
        entry = part.entry
        for name in entry.required:
            kind = entry.kinds.get(name, "")
            if name in given or not self._may_carry(kind, part):
                continue
            for wish in reversed(before):
                other = self.index.by_name[wish.tool]
                same = [
                    wish.arguments[each] for each in wish.arguments if other.kinds.get(each) == kind
                ]
                if same:
                    given[name] = same[0]
                    break
        return given

    def _may_carry(self, kind: str, part: Wished) -> bool:
        """Whether a value of an earlier part can be meant. Who names somebody does not mean the one before."""
        if kind.startswith("id:"):
            return True
        inside = (each for each in self.reader.entities if part.start <= each.start < part.end)
        return kind in _CARRIED and not any(each.kind == "name" for each in inside)


def _says_less(wish: Wish, other: Wish) -> bool:
    """Whether everything in a wish is in the other one too."""
    return wish.tool == other.tool and wish.arguments.items() <= other.arguments.items()

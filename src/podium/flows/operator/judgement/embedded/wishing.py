"""From understood clauses to wishes: skills for combinations, one wish for each id, `it` filled in."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from podium.domain.model import Json
from podium.domain.operating import Message, Wish
from podium.domain.packs import Pack, Skill
from podium.flows.operator.judgement.embedded.extractor import Extractor
from podium.flows.operator.judgement.embedded.index import Entry, Index
from podium.flows.operator.judgement.embedded.understanding import Reader, Understood
from podium.flows.operator.judgement.fields.entity import Entity

_LISTING = re.compile(r"[\s,;&+/#]*(?:(?:and|also|plus|then)\b)?[\s,;&+/#]*", re.IGNORECASE)
"""What stands between the ids of one list."""
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
        name, ids = self._several(part)
        if len(ids) < 2:
            yield arguments
            return
        for entity, own in zip(ids, self._own_values(part, ids, name), strict=True):
            yield {**arguments, **own, name: entity.value}

    def _own_values(self, part: Wished, ids: Sequence[Entity], name: str) -> list[dict[str, Json]]:
        """What belongs to each id: `lead 1 to Dave and lead 2 to Mike`, `$5 on invoice 1 and $9 on invoice 2`."""
        ends = [entity.end for entity in ids]
        starts = [entity.start for entity in ids]
        behind = self._read_each(part, zip(starts, [*starts[1:], part.end], strict=True), name)
        before = self._read_each(part, zip([part.start, *ends[:-1]], ends, strict=True), name)
        for told in (behind, before):
            if told[0] and all(each.keys() == told[0].keys() for each in told):
                return told
        return [{} for _ in ids]

    def _read_each(
        self, part: Wished, spans: Iterable[tuple[int, int]], name: str
    ) -> list[dict[str, Json]]:
        found = []
        for start, end in spans:
            text = self.reader.text[start:end]
            read = self.extract.arguments(text, part.entry.subject, self.message)
            given = self.message.context
            found.append({key: read[key] for key in read if key != name and key not in given})
        return found

    def _several(self, part: Wished) -> tuple[str, list[Entity]]:
        named = [
            each for each in part.entry.required if part.entry.kinds.get(each, "").startswith("id:")
        ]
        if len(named) != 1:
            return "", []
        kind = part.entry.kinds[named[0]]
        inside = [each for each in self.reader.entities if part.start <= each.start < part.end]
        if not any(each.kind == kind for each in inside):
            return "", []
        found: list[Entity] = []
        for each in inside:
            if each.kind == kind or (each.kind == "id" and found and self._listed(found[-1], each)):
                found.append(each)
        return named[0], list({each.value: each for each in reversed(found)}.values())[::-1]

    def _listed(self, before: Entity, after: Entity) -> bool:
        """`quotes Q-1 and Q-2`: the noun stands at the first one only."""
        return _LISTING.fullmatch(self.reader.text, before.end, after.start) is not None

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

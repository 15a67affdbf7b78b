"""A message beside what was made of it: which of its words became values, and which were left to ask with."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import NamedTuple

from podium.domain.gating import Tier
from podium.domain.model import Json
from podium.domain.operating import Wish
from podium.domain.packs import Pack, PackTool, Skill
from podium.flows.operator.judgement.caution.roots import WORD, roots_of
from podium.flows.operator.judgement.fields.entity import Entity
from podium.flows.operator.judgement.tiers import highest, terms_of, tools_of

_QUOTED = re.compile(r"\"[^\"]{1,4000}\"|(?<!\w)'[^']{1,4000}'(?!\w)|«[^»]{1,4000}»")
_REPORTED = re.compile(
    r"\b(?:(?:her|his|their|the|customer'?s?|client'?s?) (?:message|words|reply|answer|request|e-?mail|text|voicemail)(?: (?:was|is|says|said|reads))?"
    r"|(?:customer|client|he|she|they)(?: \w+)? (?:said|says|wrote|writes)|subject|body|notes?|message|comments?)\s{0,2}:",
    re.IGNORECASE,
)
_OPENED = re.compile(r" {0,3}([\"'])")
_SPACES = re.compile(r"\s+")
_EDGES = " \t\n.,;:!?\"'()[]"
_FREE = frozenset({"text", "address", ""})
"""Kinds of values that may hold anything."""
_LONGEST_SPACED = 2_000
"""Characters of a text that is looked for whatever its spaces are like."""


class Span(NamedTuple):
    start: int
    end: int

    def holds(self, start: int, end: int) -> bool:
        return self.start <= start and end <= self.end


class Given(NamedTuple):
    """An argument of a wish, or a part of one."""

    name: str
    kind: str
    """Its `x-kind`; empty inside of lists and objects."""
    value: Json


@dataclass(frozen=True)
class Said:
    text: str
    wishes: Sequence[Wish]
    pack: Pack
    finds: Sequence[Entity]
    now: datetime

    @cached_property
    def lower(self) -> str:
        return self.text.lower()

    @cached_property
    def tier(self) -> Tier:
        """The highest of all wishes, by registry and tables."""
        return max(self.tier_of(wish) for wish in self.wishes)

    def tier_of(self, wish: Wish) -> Tier:
        return max((self.tier_of_tool(tool) for tool in tools_of(wish, self.pack)), default=Tier.T4)

    def tier_of_tool(self, tool: PackTool) -> Tier:
        return highest(terms_of(tool, {}, self.pack))

    @property
    def changes(self) -> bool:
        return self.tier > Tier.T0

    def entry(self, wish: Wish) -> PackTool | Skill | None:
        return self.pack.tool(wish.tool) or self.pack.skill(wish.tool)

    def given(self, wish: Wish) -> list[Given]:
        return self._given[id(wish)]

    @cached_property
    def _given(self) -> dict[int, list[Given]]:
        return {id(wish): list(self._arguments(wish)) for wish in self.wishes}

    def _arguments(self, wish: Wish) -> Iterator[Given]:
        entry = self.entry(wish)
        properties = entry.input_schema.get("properties", {}) if entry else {}
        for name, whole in wish.arguments.items():
            for kind, value in _parts(str(properties.get(name, {}).get("x-kind", "")), whole):
                yield Given(name, kind, value)

    @cached_property
    def all_given(self) -> list[Given]:
        return [each for wish in self.wishes for each in self.given(wish)]

    def kinds_of(self, wish: Wish) -> frozenset[str]:
        """The kinds of values that its tool takes."""
        entry = self.entry(wish)
        properties = entry.input_schema.get("properties", {}) if entry else {}
        return frozenset(str(each.get("x-kind", "")) for each in properties.values())

    @cached_property
    def texts(self) -> list[Span]:
        """Where the values stand that are free text."""
        return [span for wish in self.wishes for span in self.texts_of(wish)]

    def texts_of(self, wish: Wish) -> list[Span]:
        free = (each.value for each in self.given(wish) if each.kind in _FREE)
        found = (self.place_of(value) for value in free if isinstance(value, str))
        return [span for span in found if span is not None]

    def place_of(self, value: str) -> Span | None:
        """Where the text stands as a whole, whatever the spaces in it are like."""
        wanted = value.strip(_EDGES).lower()
        start = self.lower.find(wanted) if wanted else -1
        if start >= 0:
            return Span(start, start + len(wanted))
        if not wanted or len(wanted) > _LONGEST_SPACED:
            return None
        pattern = r"\s+".join(re.escape(word) for word in _SPACES.split(wanted))
        found = re.search(pattern, self.lower)
        return Span(*found.span()) if found else None

    @cached_property
    def quotes(self) -> list[Span]:
        """What stands in quotation marks, or behind words that announce somebody else's."""
        found = [Span(*found.span()) for found in _QUOTED.finditer(self.text)]
        end = 0
        for told in _REPORTED.finditer(self.text):
            if told.start() >= end:
                end = self._end_of(told.end())
                found.append(Span(told.end(), end))
        return found

    def _end_of(self, start: int) -> int:
        """Where the line ends, or a quotation that begins there."""
        opened = _OPENED.match(self.text, start)
        closed = self.text.find(opened[1], opened.end()) if opened else -1
        if closed >= 0:
            return closed + 1
        line = self.text.find("\n", start)
        return line if line >= 0 else len(self.text)

    @cached_property
    def spoken(self) -> str:
        """The text in lower case with blanks for free texts and quotations: what somebody says to the operator."""
        signs = list(self.lower)
        for span in (*self.texts, *self.quotes):
            signs[span.start : span.end] = " " * (min(span.end, len(signs)) - span.start)
        return "".join(signs)

    @cached_property
    def spoken_roots(self) -> frozenset[str]:
        return roots_of(self.spoken)

    @cached_property
    def spoken_words(self) -> frozenset[str]:
        return frozenset(WORD.findall(self.spoken))

    def words_of(self, find: Entity) -> str:
        return self.text[find.start : find.end]


def _parts(kind: str, value: Json) -> Iterator[tuple[str, Json]]:
    if isinstance(value, dict):
        for inner in value.values():
            yield from _parts("", inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _parts("" if isinstance(inner, dict | list) else kind, inner)
    else:
        yield kind, value

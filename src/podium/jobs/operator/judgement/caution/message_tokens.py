"""Tokens of a message beside what was read from it: which became values, and which are left to ask with."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property, lru_cache
from typing import NamedTuple

from podium.core.decisions import Tier
from podium.core.model import Json
from podium.core.packs import Pack, PackTool, Skill
from podium.jobs.operator.judgement.fields.tokenized_text import Entity
from podium.jobs.operator.judgement.tiers import highest, tool_arithmetic, tools_of
from podium.jobs.operator.models import ToolIntent

TOKEN = re.compile(r"(?<![\w.])[^\W\d_]+(?:'[^\W\d_]+)*(?!\w|-\d|\.\w)")
"""A word; the letters of an id such as `INV-9` and the parts of a tool's name are none."""
_IRREGULAR = {
    "sent": "send", "paid": "pay", "payment": "pay", "made": "make", "gave": "give", "given": "give", "took": "take",
    "taken": "take", "wrote": "write", "written": "write", "put": "put", "rang": "ring", "mail": "email",
    "e-mail": "email",
}  # fmt: skip
IRREGULAR_PAST = frozenset(
    {"sent", "paid", "made", "gave", "given", "took", "taken", "wrote", "written"}
)
_SHORTEST = 3
"""Letters that must be left of a word."""
_LONG_ENOUGH = 4
"""Shorter words are too much like each other to allow for a slip."""
_STOPWORDS = (
    "a an the this that these those there here of to in on at by for from with into onto as per via re about i me my we us our"
    " you your he him his she her it its they them their is are was were be been am do does did has have had will would shall"
    " should can could may might must and or but so then than also too just now please out up off back down over away not no"
    " got get all one go because if when so s t ll ve d m"
)
STOPWORDS = frozenset(_STOPWORDS.split())


@lru_cache(maxsize=8192)
def root(token: str) -> str:
    """The word in lower case without its endings. Only equality means anything."""
    token = token.lower()
    token = _IRREGULAR.get(token, token)
    if token.endswith("s") and not token.endswith(("ss", "us", "is")) and len(token) > _SHORTEST:
        token = token[:-1]
    for ending in ("ing", "ed"):
        if token.endswith(ending) and len(token) - len(ending) >= _SHORTEST:
            token = token.removesuffix(ending)
            doubled = token[-1] == token[-2] and token[-1] not in "aeiosz"
            token = token[:-1] if doubled else token
            break
    if token.endswith("e") and len(token) > _LONG_ENOUGH:
        token = token[:-1]
    return token[:-2] + "iz" if token.endswith("is") and len(token) > _LONG_ENOUGH else token


@lru_cache(maxsize=8192)
def roots_of(text: str) -> frozenset[str]:
    """The roots of all words that say something."""
    return frozenset(root(token) for token in TOKEN.findall(text.lower()) if token not in STOPWORDS)


@lru_cache(maxsize=8192)
def tokens_in(text: str) -> frozenset[str]:
    """All words of a text in lower case; ids and numbers are none."""
    return frozenset(TOKEN.findall(text))


def names_one(roots: Collection[str], vocabulary: Collection[str]) -> bool:
    """Return whether one of the roots is known, or nearly: `viod` for `void`."""
    if any(token in vocabulary for token in roots):
        return True
    return any(_nearly(token, other) for token in roots for other in vocabulary)


def _nearly(token: str, other: str) -> bool:
    """Return whether two letters stand the other way round or, in a longer word, one is missing, too many or wrong."""
    if min(len(token), len(other)) < _LONG_ENOUGH or abs(len(token) - len(other)) > 1:
        return False
    if len(token) < len(other):
        token, other = other, token
    same = next(
        (position for position, sign in enumerate(other) if token[position] != sign), len(other)
    )
    rest, left = token[same:], other[same:]
    if rest[1::-1] == left[:2] and rest[2:] == left[2:]:
        return True
    if len(other) <= _LONG_ENOUGH:
        return False
    return rest[1:] == left if len(token) > len(other) else rest[1:] == left[1:]


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
_MAX_SPACED = 2_000
"""Characters of a text that is looked for whatever its spaces are like."""


class TokenSpan(NamedTuple):
    start: int
    end: int

    def holds(self, start: int, end: int) -> bool:
        return self.start <= start and end <= self.end


class Argument(NamedTuple):
    """An argument of an intent, or a part of one."""

    name: str
    kind: str
    """Its `x-kind`; empty inside of lists and objects."""
    value: Json


@dataclass(frozen=True)
class ParsedMessage:
    text: str
    intents: Sequence[ToolIntent]
    pack: Pack
    finds: Sequence[Entity]
    now: datetime

    @cached_property
    def lower(self) -> str:
        return self.text.lower()

    @cached_property
    def tier(self) -> Tier:
        """The highest of all intents, by registry and tables."""
        return max(self.tier_of(intent) for intent in self.intents)

    def tier_of(self, intent: ToolIntent) -> Tier:
        return max(
            (self.tier_of_tool(tool) for tool in tools_of(intent, self.pack)), default=Tier.T4
        )

    def tier_of_tool(self, tool: PackTool) -> Tier:
        return highest(tool_arithmetic(tool, {}, self.pack))

    @property
    def changes(self) -> bool:
        return self.tier > Tier.T0

    def entry(self, intent: ToolIntent) -> PackTool | Skill | None:
        return self.pack.tool(intent.tool) or self.pack.skill(intent.tool)

    def arguments_of(self, intent: ToolIntent) -> list[Argument]:
        return self._arguments_by_intent[id(intent)]

    @cached_property
    def _arguments_by_intent(self) -> dict[int, list[Argument]]:
        return {id(intent): list(self._arguments(intent)) for intent in self.intents}

    def _arguments(self, intent: ToolIntent) -> Iterator[Argument]:
        entry = self.entry(intent)
        properties = entry.input_schema.get("properties", {}) if entry else {}
        for name, whole in intent.arguments.items():
            for kind, value in _parts(str(properties.get(name, {}).get("x-kind", "")), whole):
                yield Argument(name, kind, value)

    @cached_property
    def all_arguments(self) -> list[Argument]:
        return [argument for intent in self.intents for argument in self.arguments_of(intent)]

    def kinds_of(self, intent: ToolIntent) -> frozenset[str]:
        """The kinds of values that its tool takes."""
        entry = self.entry(intent)
        properties = entry.input_schema.get("properties", {}) if entry else {}
        return frozenset(str(schema.get("x-kind", "")) for schema in properties.values())

    @cached_property
    def texts(self) -> list[TokenSpan]:
        """Spans of the values that are free text."""
        return [span for intent in self.intents for span in self.texts_of(intent)]

    def texts_of(self, intent: ToolIntent) -> list[TokenSpan]:
        free = (argument.value for argument in self.arguments_of(intent) if argument.kind in _FREE)
        spans = (self.span_of(value) for value in free if isinstance(value, str))
        return [span for span in spans if span is not None]

    def span_of(self, value: str) -> TokenSpan | None:
        """Find the span of the whole text, whatever the spaces in it are like."""
        needle = value.strip(_EDGES).lower()
        start = self.lower.find(needle) if needle else -1
        if start >= 0:
            return TokenSpan(start, start + len(needle))
        if not needle or len(needle) > _MAX_SPACED:
            return None
        pattern = r"\s+".join(re.escape(part) for part in _SPACES.split(needle))
        match = re.search(pattern, self.lower)
        return TokenSpan(*match.span()) if match else None

    @cached_property
    def quotes(self) -> list[TokenSpan]:
        """Spans in quotation marks, or after words that announce somebody else's."""
        spans = [TokenSpan(*match.span()) for match in _QUOTED.finditer(self.text)]
        end = 0
        for match in _REPORTED.finditer(self.text):
            if match.start() >= end:
                end = self._end_of(match.end())
                spans.append(TokenSpan(match.end(), end))
        return spans

    def _end_of(self, start: int) -> int:
        """Find the end of the line, or of a quotation that begins there."""
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
    def spoken_tokens(self) -> frozenset[str]:
        return frozenset(TOKEN.findall(self.spoken))

    def text_of(self, find: Entity) -> str:
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

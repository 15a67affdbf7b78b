"""What a tool wants to know: its arguments, and the words it is asked for with."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from podium.domain.gating import Tier
from podium.domain.model import Json
from podium.domain.packs import Pack, PackTool, Skill
from podium.domain.schemas import validator_for
from podium.flows.operator.judgement.fields.lexicon import kind_of, properties_of, words_of
from podium.flows.operator.judgement.fields.plain_words import FUNCTION_WORDS

_RANGE_NAMES = frozenset({"from", "to", "since", "until", "before", "after", "start", "end"})


@dataclass(frozen=True)
class Wanted:
    """One argument."""

    name: str
    kind: str
    shape: Mapping[str, Json]
    required: bool
    root: Mapping[str, Json]
    many: bool = False
    past: bool = False
    """Whether a day without a year is the last such day."""

    @cached_property
    def _validator(self) -> Any:
        definitions = {key: self.root[key] for key in ("$defs", "definitions") if key in self.root}
        return validator_for({**self.shape, **definitions})

    def accepts(self, value: Json) -> bool:
        return bool(self._validator.is_valid(value))

    @cached_property
    def words(self) -> frozenset[str]:
        return frozenset(words_of(self.name))


class Order:
    """A tool or skill as the reader of fields sees it."""

    def __init__(self, tool: PackTool | Skill, pack: Pack) -> None:
        self.name = tool.name
        self.reads_only = isinstance(tool, PackTool) and tool.tier is Tier.T0
        self.wanted = tuple(self._wanted(tool))
        self.own = frozenset(_own_words(tool, pack)) - FUNCTION_WORDS
        self.choices = frozenset(
            word
            for each in self.wanted
            for said in _said_for(each.shape)
            for word in [said.lower()]
        )
        """All that says a choice."""
        self.kinds = frozenset(each.kind[3:] for each in self.wanted if each.kind.startswith("id:"))

    def _wanted(self, tool: PackTool | Skill) -> Iterator[Wanted]:
        required = tool.input_schema.get("required", ())
        for name, shape in properties_of(tool).items():
            many = shape.get("type") == "array"
            kind = kind_of(name, shape)
            past = name.split("_")[0].endswith("ed") or (self.reads_only and name in _RANGE_NAMES)
            yield Wanted(name, kind, shape, name in required, tool.input_schema, many, past)


def _said_for(shape: Mapping[str, Json]) -> Iterator[str]:
    yield from (str(value) for value in shape.get("enum", ()))
    words = shape.get("x-words")
    for said in words.values() if isinstance(words, dict) else ():
        yield from map(str, said)


def _own_words(tool: PackTool | Skill, pack: Pack) -> Iterator[str]:
    """Words of the order itself: `create`, `task`, `remind`."""
    domain = tool.domain or tool.name.split(".")[0]
    for text in (tool.name.replace(".", " "), *tool.synonyms):
        yield from words_of(text)
    for row in pack.registry.domains:
        if row.name == domain or row.name in words_of(tool.name.replace(".", " ")):
            for word in (row.name, *row.words):
                yield from words_of(word)
                yield f"{word}s"
    yield from ("make", "put", "add", "create", "set", "new", "record", "log", "do")

"""Lexicon of a pack: its vocabularies, names of its things, and the arguments its tools ask for."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Any

from podium.core.decisions import Tier
from podium.core.json_schema import validator_for
from podium.core.model import Json
from podium.core.packs import Pack, PackTool, Skill
from podium.jobs.operator.judgement.fields.tokenized_text import STOPWORDS, Token, plain_key

_TOKEN = re.compile(r"[^\W_]+(?:'[^\W_]+)*")
_SHORT_FORMS = {"mt": "mount", "nth": "north", "sth": "south", "saint": "st"}
_SHORTEST_WITH_TYPO = 5


def folded_tokens(text: str) -> list[str]:
    """The text's words in lower case, without accents; `lead_id` has two."""
    return [plain_key(token) for token in _TOKEN.findall(text.replace("_", " "))]


def one_typo_apart(left: str, right: str) -> bool:
    """Return whether one letter more, less or other, or two neighbours swapped, makes one of the other."""
    if abs(len(left) - len(right)) > 1:
        return False
    if len(left) > len(right):
        left, right = right, left
    at = next((i for i, (a, b) in enumerate(zip(left, right, strict=False)) if a != b), len(left))
    if len(left) < len(right):
        return left[at:] == right[at + 1 :]
    swapped = left[at + 2 :] == right[at + 2 :] and left[at : at + 2] == right[at : at + 2][::-1]
    return left[at + 1 :] == right[at + 1 :] or swapped


class Phrases:
    """Known phrases, found word by word, the longest first; also with one typo."""

    def __init__(self, phrases: Iterable[str]) -> None:
        self._by_first: dict[str, list[tuple[tuple[str, ...], str]]] = {}
        self._nearly: dict[str, set[str]] = {}
        self._phrases: dict[str, str] = {}
        self.longest = 1
        """Words of the longest phrase."""
        self._longest_text = 0
        for phrase in phrases:
            self._learn(phrase)
        for entries in self._by_first.values():
            entries.sort(key=lambda entry: -len(entry[0]))

    def _learn(self, phrase: str) -> None:
        tokens = tuple(_full(token) for token in folded_tokens(phrase))
        joined = " ".join(tokens)
        if not tokens or joined in self._phrases:
            return
        self._phrases[joined] = phrase
        self._by_first.setdefault(tokens[0], []).append((tokens, phrase))
        self.longest = max(self.longest, len(tokens))
        self._longest_text = max(self._longest_text, len(joined))

    def at(self, tokens: tuple[Token, ...], index: int) -> tuple[str, int] | None:
        """The phrase that begins with this word, and how many words it has."""
        first = tokens[index].lower
        for phrase_tokens, phrase in self._by_first.get(
            _full(first if first.isascii() else plain_key(first)), ()
        ):
            following = tokens[index : index + len(phrase_tokens)]
            if len(following) == len(phrase_tokens) and all(
                _full(plain_key(token.text)) == other
                for token, other in zip(following, phrase_tokens, strict=True)
            ):
                return phrase, len(phrase_tokens)
        return None

    def nearly(self, text: str) -> str | None:
        """The one phrase that is a typo away. None: there is none, or there are several."""
        if len(text) > self._longest_text + 4:
            return None
        typed = " ".join(_full(token) for token in folded_tokens(text))
        if not _SHORTEST_WITH_TYPO <= len(typed) <= self._longest_text + 1:
            return None
        if not self._nearly:
            self._index_typos()
        close = {
            phrase
            for shorter in _shorter_by_one(typed)
            for phrase in self._nearly.get(shorter, ())
            if phrase[0] == typed[0] and one_typo_apart(typed, phrase)
        }
        return self._phrases[close.pop()] if len(close) == 1 else None

    def _index_typos(self) -> None:
        for phrase in self._phrases:
            if len(phrase) >= _SHORTEST_WITH_TYPO:
                for shorter in _shorter_by_one(phrase):
                    self._nearly.setdefault(shorter, set()).add(phrase)


def _shorter_by_one(text: str) -> Iterator[str]:
    yield text
    for at in range(len(text)):
        yield text[:at] + text[at + 1 :]


def _full(token: str) -> str:
    return _SHORT_FORMS.get(token, token)


@dataclass(frozen=True)
class Lexicon:
    """Meaning of words in one pack."""

    suburbs: Phrases
    things: Phrases
    """Names of the things that have ids."""
    kinds_by_name: Mapping[str, str] = field(default_factory=dict)
    """Name of a thing → its kind, such as `enquiry` → `lead`."""
    kinds: frozenset[str] = frozenset()
    """Kinds of things that have ids."""
    pack_tokens: frozenset[str] = frozenset()
    """Words of tools, domains, arguments and choices: nobody's name."""
    arguments: frozenset[str] = frozenset()
    """Words of the arguments' names."""
    area: str = ""
    """Area code of local phone numbers, where the pack names one (vocabulary `area_code`)."""


@lru_cache(maxsize=4)
def pack_lexicon(pack: Pack) -> Lexicon:
    """The lexicon of a pack, built once for all who read by it."""
    return lexicon_of(pack.vocabulary, pack)


def lexicon_of(vocabulary: Mapping[str, tuple[str, ...]], pack: Pack | None = None) -> Lexicon:
    areas = vocabulary.get("area_code", ())
    kinds = frozenset(_id_kinds(pack)) if pack else frozenset()
    kinds_by_name = _kinds_by_name(pack, kinds) if pack else {}
    return Lexicon(
        suburbs=Phrases(vocabulary.get("suburb", ())),
        things=Phrases(kinds_by_name),
        kinds_by_name=kinds_by_name,
        kinds=kinds,
        pack_tokens=frozenset(_pack_tokens(pack)) if pack else frozenset(),
        arguments=frozenset(_argument_tokens(pack)) if pack else frozenset(),
        area=areas[0] if len(areas) == 1 else "",
    )


def _tools(pack: Pack) -> Iterator[PackTool | Skill]:
    yield from pack.registry.tools
    yield from pack.registry.skills


def properties_of(tool: PackTool | Skill) -> dict[str, dict[str, Json]]:
    properties = tool.input_schema.get("properties", {})
    return {name: shape for name, shape in properties.items() if isinstance(shape, dict)}


def kind_of(name: str, shape: Mapping[str, Json]) -> str:
    """Determine the kind of value to look for: `x-kind`, or what the schema tells. Empty: nothing."""
    kind = shape.get("x-kind")
    if isinstance(kind, str) and kind:
        return kind
    if "enum" in shape:
        return "choice"
    if name.endswith("_id") and len(name) > 3:
        return f"id:{name[:-3]}"
    by_format = {"date": "date", "date-time": "datetime", "time": "time", "email": "email"}
    by_type = {"boolean": "flag", "number": "number", "integer": "number"}
    return by_format.get(str(shape.get("format")), "") or by_type.get(str(shape.get("type")), "")


def _id_kinds(pack: Pack) -> Iterator[str]:
    for tool in _tools(pack):
        for name, shape in properties_of(tool).items():
            kind = kind_of(name, shape)
            if kind.startswith("id:"):
                yield kind[3:]


def _kinds_by_name(pack: Pack, kinds: frozenset[str]) -> dict[str, str]:
    kinds_by_name = {}
    for kind in kinds:
        for name in (kind, f"{kind}s", f"{kind}_id", f"{kind}id"):
            kinds_by_name[plain_key(name)] = kind
    # `crew` is what jobs are called by some, but where an argument is called so a crew is meant.
    arguments = set(_argument_tokens(pack))
    for row in pack.registry.domains:
        own = [plain_key(name) for name in (row.name, *row.words)]
        kind = _kind_of_domain(row.name, own, kinds)
        for name in own if kind else ():
            if name not in arguments:
                kinds_by_name.setdefault(name, kind)
                kinds_by_name.setdefault(f"{name}s", kind)
    return kinds_by_name


def _kind_of_domain(name: str, own: list[str], kinds: frozenset[str]) -> str:
    named = [kind for kind in sorted(kinds) if kind in own or f"{kind}s" in own]
    return name if name in kinds else named[0] if len(named) == 1 else ""


def _argument_tokens(pack: Pack) -> Iterator[str]:
    for tool in _tools(pack):
        for name in properties_of(tool):
            yield from folded_tokens(name)


def _pack_tokens(pack: Pack) -> Iterator[str]:
    for row in pack.registry.domains:
        for name in (row.name, *row.words):
            yield from folded_tokens(name)
    for tool in _tools(pack):
        yield from folded_tokens(tool.name.replace(".", " "))
        for synonym in tool.synonyms:
            yield from folded_tokens(synonym)
        for shape in properties_of(tool).values():
            yield from _choice_tokens(shape)
    yield from _argument_tokens(pack)


def _choice_tokens(shape: Mapping[str, Json]) -> Iterator[str]:
    for value in shape.get("enum", ()):
        yield from folded_tokens(str(value))


_RANGE_NAMES = frozenset({"from", "to", "since", "until", "before", "after", "start", "end"})


@dataclass(frozen=True)
class Parameter:
    """One argument."""

    name: str
    kind: str
    shape: Mapping[str, Json]
    required: bool
    root: Mapping[str, Json]
    many: bool = False
    past: bool = False
    """True if a day without a year is the last such day."""

    @cached_property
    def _validator(self) -> Any:
        definitions = {key: self.root[key] for key in ("$defs", "definitions") if key in self.root}
        return validator_for({**self.shape, **definitions})

    def accepts(self, value: Json) -> bool:
        return bool(self._validator.is_valid(value))

    @cached_property
    def name_tokens(self) -> frozenset[str]:
        return frozenset(folded_tokens(self.name))


class Order:
    """A tool or skill as the reader of fields sees it."""

    def __init__(self, tool: PackTool | Skill, pack: Pack) -> None:
        self.name = tool.name
        self.reads_only = isinstance(tool, PackTool) and tool.tier is Tier.T0
        self.parameters = tuple(self._parameters(tool))
        self.own = frozenset(_own_tokens(tool, pack)) - STOPWORDS
        self.choices = frozenset(
            lowered
            for parameter in self.parameters
            for phrase in _choice_phrases(parameter.shape)
            for lowered in [phrase.lower()]
        )
        """All that says a choice."""
        self.kinds = frozenset(
            parameter.kind[3:] for parameter in self.parameters if parameter.kind.startswith("id:")
        )

    def _parameters(self, tool: PackTool | Skill) -> Iterator[Parameter]:
        required = tool.input_schema.get("required", ())
        for name, shape in properties_of(tool).items():
            many = shape.get("type") == "array"
            kind = kind_of(name, shape)
            past = name.split("_")[0].endswith("ed") or (self.reads_only and name in _RANGE_NAMES)
            yield Parameter(name, kind, shape, name in required, tool.input_schema, many, past)


def _choice_phrases(shape: Mapping[str, Json]) -> Iterator[str]:
    yield from (str(value) for value in shape.get("enum", ()))
    synonyms = shape.get("x-words")
    for phrases in synonyms.values() if isinstance(synonyms, dict) else ():
        yield from map(str, phrases)


def _own_tokens(tool: PackTool | Skill, pack: Pack) -> Iterator[str]:
    """Words of the order itself: `create`, `task`, `remind`."""
    domain = tool.domain or tool.name.split(".")[0]
    for text in (tool.name.replace(".", " "), *tool.synonyms):
        yield from folded_tokens(text)
    for row in pack.registry.domains:
        if row.name == domain or row.name in folded_tokens(tool.name.replace(".", " ")):
            for name in (row.name, *row.words):
                yield from folded_tokens(name)
                yield f"{name}s"
    yield from ("make", "put", "add", "create", "set", "new", "record", "log", "do")

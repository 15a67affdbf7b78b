"""The registry, turned round: from words to the tools and skills they may mean."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from podium.domain.gating import Tier
from podium.domain.model import Json
from podium.domain.packs import DomainRow, PackRegistry, PackTool, Skill, Utterance
from podium.domain.packs_table import most_specific
from podium.flows.operator.judgement.embedded.lexicon import (
    ACTION_WORDS,
    INTRODUCES,
    PARTICLES,
    READ,
    kinds_of,
)
from podium.flows.operator.judgement.embedded.moods import MOOD_WORDS
from podium.flows.operator.judgement.embedded.spelling import Speller
from podium.flows.operator.judgement.embedded.words import (
    FUNCTION_WORDS,
    plain_words,
    stem,
    stems_of,
)

IN_NAME, IN_SYNONYM, IN_EXAMPLE = 1.0, 0.95, 0.75
IN_DOMAIN, IN_CHOICE, IN_DESCRIPTION, IN_ARGUMENT = 0.55, 0.5, 0.4, 0.35
"""How surely a word points to a tool, by where its registry entry has it."""
SHARED_HEAD = 3
"""A first part of names that tools of so many domains have (`os.`) names no thing."""
_VALUES = ("text", "name", "address", "suburb")


@dataclass(frozen=True, slots=True)
class Phrase:
    """A way to say it: the stems and the kinds of act in it."""

    stems: frozenset[str]
    acts: frozenset[str]


@dataclass(slots=True)
class Entry:
    """A tool or skill as the scoring sees it."""

    subject: PackTool | Skill
    domain: str
    reads: bool
    acts: frozenset[str]
    verbs: frozenset[str]
    other_verbs: frozenset[str]
    """Verbs with which its synonyms begin."""
    objects: frozenset[str]
    strengths: dict[str, float]
    phrases: tuple[Phrase, ...]
    kinds: dict[str, str]
    """Property → kind of value."""
    required: tuple[str, ...]
    domain_stems: frozenset[str]
    """What people call the things of its domain."""
    choices: dict[str, frozenset[str]]
    """Property → the words that choose one of its values."""
    number: int = 0

    @property
    def name(self) -> str:
        return self.subject.name

    @property
    def takes_words(self) -> bool:
        """Whether words that say nothing of the act may be a value of it."""
        return any(kind in _VALUES for kind in self.kinds.values())

    @property
    def wants_words(self) -> bool:
        return any(self.kinds.get(name) in _VALUES for name in self.required)

    @property
    def wants_text(self) -> bool:
        return any(self.kinds.get(name) == "text" for name in self.required)


@dataclass(slots=True)
class Index:
    entries: list[Entry]
    postings: dict[str, list[tuple[int, float]]]
    rarity: dict[str, float]
    """Stem → how much it tells, 0 to 1."""
    openers: frozenset[str]
    """Words, as written, with which a way of saying it begins."""
    objects: frozenset[str]
    choices: frozenset[str]
    """Words that choose a value, and so may stand before a thing: `draft quotes`."""
    speller: Speller
    heads: frozenset[str]
    by_name: dict[str, Entry] = field(default_factory=dict)

    def knows(self, word_stem: str) -> bool:
        return word_stem in self.rarity


def build(registry: PackRegistry) -> Index:
    shared = _shared_heads(registry)
    subjects = _subjects(registry)
    entries = [_entry(subject, registry, shared) for subject in subjects]
    postings: dict[str, list[tuple[int, float]]] = {}
    telling: Counter[str] = Counter()
    for number, entry in enumerate(entries):
        entry.number = number
        for word, strength in entry.strengths.items():
            postings.setdefault(word, []).append((number, strength))
            telling[word] += 1 if strength > IN_ARGUMENT else 0
    most = math.log(1 + len(entries))
    rarity = {
        word: max(0.15, math.log(1 + len(entries) / max(1, telling[word])) / most)
        for word in postings
    }
    raw = _written_words(registry)
    objects = frozenset().union(*(entry.objects for entry in entries))
    return Index(
        entries=entries,
        postings=postings,
        rarity=rarity,
        openers=frozenset(_openers(registry)),
        objects=objects,
        choices=frozenset(_choice_words(registry)),
        speller=Speller(
            {*raw, *ACTION_WORDS, *FUNCTION_WORDS, *MOOD_WORDS, *INTRODUCES},
            (word for word in raw if stem(word) in objects),
        ),
        heads=frozenset(subject.name.split(".")[0] for subject in subjects),
        by_name={entry.name: entry for entry in entries},
    )


def _subjects(registry: PackRegistry) -> tuple[PackTool | Skill, ...]:
    return (*registry.tools, *registry.skills)


def _entry(subject: PackTool | Skill, registry: PackRegistry, shared: frozenset[str]) -> Entry:
    row = domain_row(registry, subject)
    head, *rest = subject.name.split(".")
    last = [stem(word) for word in rest[-1].split("_") if word not in FUNCTION_WORDS]
    verbs, things = _split_name(last)
    things = [word for word in things if word not in PARTICLES]
    things += [
        stem(part) for word in (*rest[:-1], head) for part in word.split("_") if word not in shared
    ]
    properties: dict[str, dict[str, Json]] = subject.input_schema.get("properties", {})
    acts = frozenset().union(*(kinds_of(verb) for verb in verbs))
    reads = isinstance(subject, PackTool) and _reads(subject.tier, acts)
    return Entry(
        subject=subject,
        domain=row.name if row else subject.domain,
        reads=reads,
        acts=frozenset({READ}) if reads else acts - {READ},
        verbs=frozenset(verbs),
        other_verbs=frozenset(_first_words(subject.synonyms)).difference(things),
        objects=frozenset(things),
        strengths=_strengths(subject, row, [*verbs, *things], properties),
        phrases=tuple(_phrases(subject, [*verbs, *things], set() if reads else set(things))),
        kinds={name: str(each.get("x-kind", "")) for name, each in properties.items()},
        domain_stems=frozenset(
            word for each in (row.words if row else ()) for word in stems_of(each)
        ),
        required=tuple(subject.input_schema.get("required", ())),
        choices={
            name: frozenset(_choice_stems(each))
            for name, each in properties.items()
            if "enum" in each
        },
    )


def _reads(tier: Tier, acts: frozenset[str]) -> bool:
    """Whether a tool changes nothing: its tier says so, or its verb where the tier is low."""
    return tier == Tier.T0 or (tier == Tier.T1 and acts == {READ})


def _first_words(phrases: Iterable[str]) -> Iterator[str]:
    """The verbs with which phrases begin."""
    for phrase in phrases:
        yield from (word for word in stems_of(phrase)[:1] if kinds_of(word))


def _split_name(last: list[str]) -> tuple[list[str], list[str]]:
    """The verb of a name's last part, and the things. `health_check`: check, health."""
    for place, word in enumerate(last):
        if kinds_of(word):
            return [word], last[:place] + last[place + 1 :]
    return last[:1], last[1:]


def _strengths(
    subject: PackTool | Skill,
    row: DomainRow | None,
    name: list[str],
    properties: dict[str, dict[str, Json]],
) -> dict[str, float]:
    sources: list[tuple[float, Iterable[str]]] = [
        (IN_ARGUMENT, (word for each in properties for word in stems_of(each.replace("_", " ")))),
        (IN_DESCRIPTION, stems_of(subject.description)),
        (IN_CHOICE, (word for each in properties.values() for word in _choice_stems(each))),
        (IN_DOMAIN, (word for each in (row.words if row else ()) for word in stems_of(each))),
        (IN_EXAMPLE, (word for each in subject.examples for word in example_stems(each))),
        (IN_SYNONYM, (word for each in subject.synonyms for word in stems_of(each))),
        (IN_NAME, name),
    ]
    return {word: strength for strength, words in sources for word in words}


def _choice_words(registry: PackRegistry) -> Iterator[str]:
    """The single words, as written, that choose a value."""
    for subject in _subjects(registry):
        for schema in subject.input_schema.get("properties", {}).values():
            yield from (str(value).casefold() for value in schema.get("enum", ()))
            for words in schema.get("x-words", {}).values():
                yield from (str(each).casefold() for each in words)


def _choice_stems(schema: dict[str, Json]) -> Iterator[str]:
    for value in schema.get("enum", ()):
        yield from stems_of(str(value).replace("_", " "))
    for words in schema.get("x-words", {}).values():
        for each in words:
            yield from stems_of(str(each))


def example_stems(example: Utterance) -> list[str]:
    """The stems of an example without those of its values: they are what changes."""
    values = {word for value in example.arguments.values() for word in stems_of(str(value))}
    return [word for word in stems_of(example.say) if word not in values and word.isalpha()]


def _phrases(subject: PackTool | Skill, name: list[str], things: set[str]) -> Iterator[Phrase]:
    """Every way to say it. What only names `things` says nothing of what is done to them."""
    ways = [name, *(stems_of(each) for each in subject.synonyms)]
    ways += [example_stems(each) for each in subject.examples]
    for way in {tuple(way): None for way in ways if set(way) - things}:
        acts = next((kinds_of(word) for word in way if kinds_of(word)), frozenset())
        yield Phrase(frozenset(way), acts)


def _openers(registry: PackRegistry) -> Iterator[str]:
    yield from ACTION_WORDS
    for subject in _subjects(registry):
        yield subject.name.split(".")[-1].split("_")[0]
        for way in (*subject.synonyms, *(each.say for each in subject.examples)):
            yield from (word for word in plain_words(way)[:1] if word not in FUNCTION_WORDS)


def _written_words(registry: PackRegistry) -> set[str]:
    texts = [word for row in registry.domains for word in row.words]
    for subject in _subjects(registry):
        texts += [subject.name.replace(".", " ").replace("_", " "), *subject.synonyms]
        texts += [each.say for each in subject.examples]
    return {word for text in texts for word in plain_words(text) if word.isalpha()}


def _shared_heads(registry: PackRegistry) -> frozenset[str]:
    domains: dict[str, set[str]] = {}
    for tool in registry.tools:
        row = domain_row(registry, tool)
        domains.setdefault(tool.name.split(".")[0], set()).add(row.name if row else tool.domain)
    return frozenset(head for head, names in domains.items() if len(names) >= SHARED_HEAD)


def domain_row(registry: PackRegistry, subject: PackTool | Skill) -> DomainRow | None:
    """The row a tool belongs to: the one it names, else the one whose pattern fits most specifically."""
    named = (row for row in registry.domains if row.name == subject.domain)
    return next(named, None) or most_specific(registry, subject.name)

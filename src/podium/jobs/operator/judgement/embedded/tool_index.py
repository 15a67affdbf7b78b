"""Inverted registry: from tokens to the tools and skills they may mean."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache

from podium.core.decisions import Tier
from podium.core.model import Json
from podium.core.packs import (
    DomainRow,
    Pack,
    PackRegistry,
    PackTool,
    Skill,
    Utterance,
    most_specific,
)
from podium.jobs.operator.judgement.embedded.moods import EXPLAINS, MOOD_CUES
from podium.jobs.operator.judgement.embedded.tokens import (
    ACTION_VERBS,
    DENIED,
    INTRODUCES,
    PARTICLES,
    READ,
    STOPWORDS,
    Speller,
    kinds_of,
    plain_tokens,
    stem,
    stems_of,
)

IN_NAME, IN_SYNONYM, IN_EXAMPLE = 1.0, 0.95, 0.75
IN_DOMAIN, IN_CHOICE, IN_DESCRIPTION, IN_ARGUMENT = 0.55, 0.5, 0.4, 0.35
"""Strength with which a word points to a tool, by its position in the registry entry."""
SHARED_HEAD = 3
"""A first part of names that tools of so many domains have (`os.`) names no thing."""
_VALUES = ("text", "name", "address", "suburb")


@dataclass(frozen=True, slots=True)
class Phrase:
    """A way to say it: the stems and the kinds of act in it."""

    stems: frozenset[str]
    acts: frozenset[str]


@dataclass(slots=True)
class IndexEntry:
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
    """Names of the things of its domain."""
    choices: dict[str, frozenset[str]]
    """Property → the words that choose one of its values."""
    resolved: frozenset[str] = frozenset()
    """Properties that Podium fills in where nobody says them."""
    explains: frozenset[str] = frozenset()
    """Words such as `why` with which a way of asking for it begins."""
    number: int = 0

    @property
    def name(self) -> str:
        return self.subject.name

    @property
    def takes_free_text(self) -> bool:
        """True if words that say nothing of the act may be a value of it."""
        return any(kind in _VALUES for kind in self.kinds.values())

    def takes(self, kinds: Iterable[str]) -> bool:
        """Return whether a value of one of these kinds can be an argument."""
        own = set(self.kinds.values())
        own |= {"period", "datetime"} if "date" in own else set()
        own |= {"id"} if any(kind.startswith("id:") for kind in own) else set()
        return not own.isdisjoint(kinds)

    @property
    def requires_free_text(self) -> bool:
        return any(self.kinds.get(name) in _VALUES for name in self.required)

    @property
    def wants_text(self) -> bool:
        return any(self.kinds.get(name) == "text" for name in self.required)


@dataclass(slots=True)
class Index:
    entries: list[IndexEntry]
    postings: dict[str, list[tuple[int, float]]]
    rarity: dict[str, float]
    """Stem → how much it tells, 0 to 1."""
    openers: frozenset[str]
    """Words, as written, with which a way of saying it begins."""
    objects: frozenset[str]
    domain_stems: frozenset[str]
    """Stems of what people call the things of the domains."""
    choices: frozenset[str]
    """Words that choose a value, and so may stand before a thing: `draft quotes`."""
    speller: Speller
    heads: frozenset[str]
    numbered: frozenset[str]
    """Stems of the things that have ids."""
    by_name: dict[str, IndexEntry] = field(default_factory=dict)

    def knows(self, token_stem: str) -> bool:
        return token_stem in self.rarity


@lru_cache(maxsize=4)
def index_of(pack: Pack) -> Index:
    """The index of a pack, built once: a message is read by the classifier and by the ground check."""
    return build(pack.registry)


def build(registry: PackRegistry) -> Index:
    shared = _shared_heads(registry)
    subjects = _subjects(registry)
    entries = [_entry(subject, registry, shared) for subject in subjects]
    postings: dict[str, list[tuple[int, float]]] = {}
    entry_counts: Counter[str] = Counter()
    for number, entry in enumerate(entries):
        entry.number = number
        for token, strength in entry.strengths.items():
            postings.setdefault(token, []).append((number, strength))
            entry_counts[token] += 1 if strength > IN_ARGUMENT else 0
    most = math.log(1 + len(entries))
    rarity = {
        token: max(0.15, math.log(1 + len(entries) / max(1, entry_counts[token])) / most)
        for token in postings
    }
    raw = {token for token in _vocabulary(registry) if stem(token) in postings}
    objects = frozenset().union(*(entry.objects for entry in entries))
    return Index(
        entries=entries,
        postings=postings,
        rarity=rarity,
        openers=frozenset(_openers(registry)),
        objects=objects,
        domain_stems=frozenset().union(*(entry.domain_stems for entry in entries)),
        choices=frozenset(_choice_tokens(registry)),
        speller=Speller(
            {*raw, *ACTION_VERBS, *STOPWORDS, *MOOD_CUES, *INTRODUCES},
            {*ACTION_VERBS, *(token for token in raw if stem(token) in objects)},
            {
                *(token for token in raw if stem(token) in objects),
                *(token for row in registry.domains for token in row.words if token.isalpha()),
            },
        ),
        numbered=frozenset(
            stem(kind.removeprefix("id:"))
            for entry in entries
            for kind in entry.kinds.values()
            if kind.startswith("id:")
        ),
        heads=frozenset(subject.name.split(".")[0] for subject in subjects),
        by_name={entry.name: entry for entry in entries},
    )


def _subjects(registry: PackRegistry) -> tuple[PackTool | Skill, ...]:
    return (*registry.tools, *registry.skills)


def _entry(subject: PackTool | Skill, registry: PackRegistry, shared: frozenset[str]) -> IndexEntry:
    row = domain_row(registry, subject)
    verbs, things = _name_stems(subject.name, shared)
    properties: dict[str, dict[str, Json]] = subject.input_schema.get("properties", {})
    acts = frozenset().union(*(kinds_of(verb) for verb in verbs))
    reads = isinstance(subject, PackTool) and _reads(subject.tier, acts)
    synonyms = [stems_of(synonym) for synonym in subject.synonyms]
    examples = [example_stems(example) for example in subject.examples]
    ways = [[*verbs, *things], *synonyms, *examples]
    domain = stems_of(" ".join(row.words)) if row else []
    choices = {
        name: frozenset(_choice_stems(schema))
        for name, schema in properties.items()
        if "enum" in schema
    }
    return IndexEntry(
        subject=subject,
        domain=row.name if row else subject.domain,
        reads=reads,
        acts=frozenset({READ}) if reads else acts - {READ},
        verbs=frozenset(verbs),
        other_verbs=frozenset(
            token for way in synonyms for token in way[:1] if kinds_of(token)
        ).difference(things),
        objects=frozenset(things),
        strengths=_strengths(
            {
                IN_ARGUMENT: [stems_of(" ".join(properties).replace("_", " "))],
                IN_DESCRIPTION: [stems_of(subject.description)],
                IN_CHOICE: choices.values(),
                IN_DOMAIN: [domain],
                IN_EXAMPLE: examples,
                IN_SYNONYM: synonyms,
                IN_NAME: ways[:1],
            }
        ),
        phrases=tuple(_phrases(ways, set() if reads else set(things))),
        kinds={name: str(schema.get("x-kind", "")) for name, schema in properties.items()},
        domain_stems=frozenset(domain),
        required=tuple(subject.input_schema.get("required", ())),
        choices=choices,
        resolved=frozenset(name for name, schema in properties.items() if "x-resolve" in schema),
        explains=EXPLAINS.intersection(_first_tokens(subject)) if reads else frozenset(),
    )


def _first_tokens(subject: PackTool | Skill) -> Iterator[str]:
    """The words with which the registry's own ways of asking for it begin."""
    for way in (*subject.synonyms, *(example.say for example in subject.examples)):
        yield from plain_tokens(way)[:1]


def _name_stems(name: str, shared: frozenset[str]) -> tuple[list[str], list[str]]:
    """The verbs and the things of a tool's name."""
    head, *rest = name.split(".")
    last = [stem(token) for token in rest[-1].split("_") if token not in STOPWORDS]
    verbs, things = _split_name(last)
    things = [token for token in things if token not in PARTICLES]
    before = (token for token in (*rest[:-1], head) if token not in shared)
    return verbs, things + [stem(part) for token in before for part in token.split("_")]


def _reads(tier: Tier, acts: frozenset[str]) -> bool:
    """Return whether a tool changes nothing: its tier says so, or its verb where the tier is low."""
    return tier == Tier.T0 or (tier == Tier.T1 and acts == {READ})


def _split_name(last: list[str]) -> tuple[list[str], list[str]]:
    """The verb of a name's last part, and the things. `health_check`: check, health."""
    for position, token in enumerate(last):
        if kinds_of(token):
            return [token], last[:position] + last[position + 1 :]
    return last[:1], last[1:]


def _strengths(sources: Mapping[float, Iterable[Iterable[str]]]) -> dict[str, float]:
    """Each stem with the strength of the last source that has it, which is the greatest."""
    return {token: strength for strength, ways in sources.items() for way in ways for token in way}


def _choice_tokens(registry: PackRegistry) -> Iterator[str]:
    """The single words, as written, that choose a value."""
    for subject in _subjects(registry):
        for schema in subject.input_schema.get("properties", {}).values():
            yield from (str(value).casefold() for value in schema.get("enum", ()))
            for synonyms in schema.get("x-words", {}).values():
                yield from (str(synonym).casefold() for synonym in synonyms)


def _choice_stems(schema: dict[str, Json]) -> Iterator[str]:
    for value in schema.get("enum", ()):
        yield from stems_of(str(value).replace("_", " "))
    for synonyms in schema.get("x-words", {}).values():
        for synonym in synonyms:
            yield from stems_of(str(synonym))


def example_stems(example: Utterance) -> list[str]:
    """The stems of an example without those of its values: they are what changes."""
    values = set(stems_of(" ".join(map(str, example.arguments.values())))) - {DENIED}
    return [
        token
        for token in stems_of(example.say)
        if token not in values and (token.isalpha() or token == DENIED)
    ]


def _phrases(ways: Iterable[Iterable[str]], things: set[str]) -> Iterator[Phrase]:
    """Every way to say it. What only names `things` says nothing of what is done to them."""
    for way in dict.fromkeys(tuple(way) for way in ways):
        stems = frozenset(way)
        if stems - things:
            acts = next((kinds for token in way if (kinds := kinds_of(token))), frozenset())
            yield Phrase(stems, acts)


def _openers(registry: PackRegistry) -> Iterator[str]:
    yield from ACTION_VERBS
    for subject in _subjects(registry):
        yield subject.name.split(".")[-1].split("_")[0]
        yield from (token for token in _first_tokens(subject) if token not in STOPWORDS)


def _vocabulary(registry: PackRegistry) -> set[str]:
    texts = [token for row in registry.domains for token in row.words]
    for subject in _subjects(registry):
        texts += [subject.name.replace(".", " ").replace("_", " "), *subject.synonyms]
        texts += [example.say for example in subject.examples]
    return {token for text in texts for token in plain_tokens(text) if token.isalpha()}


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

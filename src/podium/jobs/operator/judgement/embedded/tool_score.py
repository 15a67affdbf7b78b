"""Score of each tool for a clause, the calibrated confidence of a reading, and the shortlist of tools for a model."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from podium.core.packs import PackRegistry, Skill
from podium.jobs.operator.judgement.embedded.query import Query, marked, query_of
from podium.jobs.operator.judgement.embedded.tokens import (
    DENIED,
    EVERYDAY,
    agreement,
    clean,
    kinds_of,
    stem,
    tokenize,
)
from podium.jobs.operator.judgement.embedded.tool_index import (
    IN_DOMAIN,
    IN_SYNONYM,
    Index,
    IndexEntry,
    Phrase,
    build,
)

COVERAGE, PHRASE, VERB, THING, VALUES = 0.225, 0.225, 0.175, 0.15, 0.225
"""Shares of a score. They add up to 1; tuned on the utterances in `podium.jobs.operator.bench`."""
SAME_KIND_OF_ACT = 0.75
"""Score of a verb that is of the tool's kind, but not in the tool's entry."""
SYNONYM_VERB = 0.9
"""Score of a verb of the tool's kind that begins one of its synonyms."""
CONTRARY = 0.6
"""Factor of the likeness of two sentences of which one denies the other."""
OWN_WORDS, SAME_WORDS = 0.9, 0.5
"""So like a phrase of the registry that its verb is the right one, whatever it usually means; and its worth then."""
AGAINST_IT = -0.3
"""Score of a verb of the tool, in a clause that asks for another kind of act."""
STRANGE, STRANGE_IN_VALUE, MAX_STRANGE = 0.6, 0.15, 2.4
"""Weight of a word that no entry has; less where it may be part of a value; and the most for all of them."""
MORE_THAN_ASKED = 0.04
"""A skill does several things: of a skill and one of its tools that fit equally well, the tool is meant."""
ONLY_LOOKS = 0.03
"""Bonus of a tool that changes nothing, where the clause has no act: of two tools that fit equally well, it is meant."""
ONE_FOR_SEVERAL = 0.6
SHORT_LIST = 30


@dataclass(frozen=True, slots=True)
class Fit:
    """A tool and how well it fits."""

    entry: IndexEntry
    score: float
    covered: float
    verb: float
    thing: float
    values: float
    phrase: float
    same: bool = False
    """True if the clause has the very words of a phrase of the registry."""
    denies: bool = False
    """True if that phrase denies something: `isn't needed any more`."""
    contrary: bool = False
    """True if the nearest phrase denies what the clause says, or the clause what it says."""
    by_everyday: bool = False
    """True if that phrase is but one word of every day."""


def fits_of(query: Query, index: Index) -> list[Fit]:
    """The tools that fit best, the best first; of equal ones the registry's order."""
    scores: dict[int, float] = {}
    for token, weight in query.weights.items():
        worth = weight * index.rarity.get(token, 0.0)
        for number, strength in index.postings.get(token, ()):
            scores[number] = scores.get(number, 0.0) + worth * strength
    rough = sorted(
        scores, key=lambda number: (-_rough(query, index.entries[number], scores[number]), number)
    )
    fits = [_fit(query, index, index.entries[number]) for number in rough[:SHORT_LIST]]
    return sorted(fits, key=lambda fit: (-fit.score, fit.entry.number))


def _rough(query: Query, entry: IndexEntry, score: float) -> float:
    return score + 0.5 * agreement(query.acts, entry.acts)


def _fit(query: Query, index: Index, entry: IndexEntry) -> Fit:
    covered = _covered(query, index, entry)
    phrase, best = _nearest(query, index, entry)
    same = phrase >= OWN_WORDS and best is not None and len(best.stems) > 1
    verb = max(_verb(query, entry), SAME_WORDS if same and not query.to_see else -1.0)
    thing = _thing(query, entry)
    values = _values(query, entry)
    score = COVERAGE * covered + PHRASE * phrase + VERB * verb + THING * thing + VALUES * values
    score -= MORE_THAN_ASKED if isinstance(entry.subject, Skill) else 0.0
    score += ONLY_LOOKS if entry.reads and not query.acts and _points(query) else 0.0
    contrary = best is not None and (DENIED in best.stems) != (DENIED in query.weights)
    denies = same and best is not None and DENIED in best.stems
    everyday = best is not None and phrase >= OWN_WORDS and _is_everyday(best, entry)
    return Fit(entry, score, covered, verb, thing, values, phrase, same, denies, contrary, everyday)


def _is_everyday(phrase: Phrase, entry: IndexEntry) -> bool:
    """`Is it working`, of which one word is left that anybody uses for anything."""
    own = entry.objects | entry.verbs | entry.domain_stems
    asks = any(kinds_of(token) for token in phrase.stems)
    return len(phrase.stems) == 1 and not asks and phrase.stems <= EVERYDAY - own


def _points(query: Query) -> bool:
    """Return whether it speaks of something that is there: of several things, or of one by its id or name."""
    return query.several or bool(query.reach) or any(kind.startswith("id") for kind in query.kinds)


def _nearest(query: Query, index: Index, entry: IndexEntry) -> tuple[float, Phrase | None]:
    """The phrase that is most like the clause, and how much it is."""
    worths: dict[str, float] = {}
    own = 0.0
    for token, weight in query.weights.items():
        worths[token] = weight * (index.rarity.get(token) or _strangeness(weight, entry))
        own += worths[token]
    alike, best = 0.0, None
    for phrase in entry.phrases:
        likeness = _alike(query, index, phrase, worths, own)
        if likeness > alike:
            alike, best = likeness, phrase
    contrary = best is not None and (DENIED in best.stems) != (DENIED in query.weights)
    return alike * CONTRARY if contrary else alike, best


def _covered(query: Query, index: Index, entry: IndexEntry) -> float:
    """The share of what was said that the tool's entry accounts for."""
    recognized = explained = strange = 0.0
    kindred = agreement(query.acts, entry.acts) > 0
    for token, weight in query.weights.items():
        rarity = index.rarity.get(token)
        if rarity is None:
            strange += weight * _strangeness(weight, entry)
            continue
        strength = entry.strengths.get(token, 0.0)
        if kindred and kinds_of(token) & entry.acts:
            strength = max(strength, SAME_KIND_OF_ACT)
        recognized += weight * rarity
        explained += weight * rarity * strength
    total = recognized + min(strange, MAX_STRANGE)
    return explained / total if total else 0.0


def _strangeness(weight: float, entry: IndexEntry) -> float:
    """Weigh an unknown word: little where a value is expected, or may follow a preposition."""
    fitting = entry.requires_free_text or (weight < 1 and entry.takes_free_text)
    return STRANGE_IN_VALUE if fitting else STRANGE


def _verb(query: Query, entry: IndexEntry) -> float:
    agreed = agreement(query.acts, entry.acts)
    if any(verb in query.weights for verb in entry.verbs):
        return 1.0 if agreed >= 0 else AGAINST_IT
    if agreed > 0:
        called = any(verb in query.verbs for verb in entry.other_verbs)
        return SYNONYM_VERB if called else SAME_KIND_OF_ACT
    if any(verb in query.weights for verb in entry.other_verbs):
        return SAME_KIND_OF_ACT if agreed > -1 else AGAINST_IT
    return SAME_KIND_OF_ACT * agreed


def _thing(query: Query, entry: IndexEntry) -> float:
    if not query.things:
        return 0.4
    total = sum(weight for _, weight in query.things)
    return sum(weight * _named(thing, entry) for thing, weight in query.things) / total


def _named(thing: str, entry: IndexEntry) -> float:
    if thing in entry.objects or thing in entry.verbs:
        return 1.0
    strength = entry.strengths.get(thing, 0.0)
    return 0.85 if strength >= IN_SYNONYM else 0.5 if strength >= IN_DOMAIN else 0.0


def _values(query: Query, entry: IndexEntry) -> float:
    """Return whether the values in the clause are those the tool takes, and those it needs are there."""
    taken = set(entry.kinds.values())
    taken |= {"period", "datetime"} if "date" in taken else set()
    taken |= {"id"} if any(kind.startswith("id:") for kind in taken) else set()
    reached = taken & query.reach
    kinds = {kind for kind in query.kinds if kind in taken or kind not in query.also}
    count = len(kinds) + (1 if query.reach else 0)
    used = sum(1 for kind in kinds if kind in taken) + (1 if reached else 0)
    fitting = used / count if count else 0.5
    needed = [name for name in entry.required if entry.kinds.get(name) not in ("text", "")]
    missing = [
        name
        for name in needed
        if name not in query.context_names and not _is_filled(name, query, entry)
    ]
    filled = not entry.resolved.isdisjoint(missing)
    there = 1 - len(missing) / len(needed) if needed and not filled else 0.7
    # Who speaks of several things has no single one in mind.
    reached_ids = query.reach - query.kinds
    one = query.several and any(
        entry.kinds[name].startswith("id:")
        and (
            name in missing
            or (entry.kinds[name] in reached_ids and _makes(entry.kinds[name], entry))
        )
        for name in needed
    )
    # An id of what a tool makes or lists speaks of one that is there already.
    other = any(
        kind.startswith("id:") and kind not in taken and _makes(kind, entry) for kind in query.kinds
    )
    return 0.5 * fitting + 0.5 * there - (ONE_FOR_SEVERAL if one or other else 0.0)


def _makes(kind: str, entry: IndexEntry) -> bool:
    return stem(kind.removeprefix("id:")) in entry.objects


def _is_filled(name: str, query: Query, entry: IndexEntry) -> bool:
    if name in entry.choices:
        return any(token in query.weights for token in entry.choices[name])
    kind = entry.kinds[name]
    if kind in query.reach:
        return True
    return kind in query.kinds or (kind.startswith("id:") and "id" in query.kinds)


def _alike(
    query: Query, index: Index, phrase: Phrase, worths: dict[str, float], own: float
) -> float:
    """The weight of what clause and phrase share, against that of both. `own` is the sum of the clause's `worths`."""
    shared = other = 0.0
    for token, worth in worths.items():
        if token in phrase.stems:
            shared += worth
    for token in phrase.stems:
        other += index.rarity.get(token, STRANGE)
    if query.acts & phrase.acts and not any(
        kinds_of(token) for token in phrase.stems & query.weights.keys()
    ):
        shared += 0.3
    own = min(own, other + MAX_STRANGE)
    return 2 * shared / (own + other) if own + other else 0.0


SURE_ENOUGH = 0.55
"""Below this the answer is a question."""
FAINTEST = 0.25
"""Below this not even a question would help."""

BASE, BY_SCORE, BY_MARGIN, BY_COVERED, BY_VALUES, BY_PHRASE, BY_THING = (
    -4.1,
    2.1,
    1.7,
    2.1,
    1.6,
    1.5,
    0.7,
)
UNASKED = -1.6
"""A tool that changes something, although no verb of the clause asks for it."""
OPEN = 0.45
"""As sure as one can be of words that leave open what is to be done, such as `deal with`, or to what."""
ASKABLE = 0.3
"""As sure as one is at least that a thing which was named is meant, so that a question is worth while."""
"""The figures are those of a logistic regression over the registry's own examples, each read without itself, and the
utterances in `podium.jobs.operator.bench` that are for tuning.
"""
LEAST_COVERED = 0.2
"""The share of the words that a tool must account for, however well the rest fits."""
WIDEST_MARGIN = 0.2
"""A greater distance to the second tool says no more."""


def confidence_of(fits: Sequence[Fit], is_open: bool = False) -> float:
    """0 to 1, for the first of the fits. `is_open`: the clause does not say what to do, or to what."""
    if not fits:
        return 0.0
    best = fits[0]
    margin = min(best.score - fits[1].score, WIDEST_MARGIN) if len(fits) > 1 else WIDEST_MARGIN
    logit = BASE + BY_SCORE * best.score + BY_MARGIN * margin + BY_COVERED * best.covered
    logit += BY_VALUES * best.values + BY_PHRASE * best.phrase + BY_THING * best.thing
    unasked = best.verb <= 0 and best.phrase < OWN_WORDS and not best.entry.reads
    logit += UNASKED if unasked else 0.0
    sure = 1 / (1 + math.exp(-logit))
    contrary = best.contrary and best.verb <= 0 and not best.entry.reads
    return min(sure, OPEN) if is_open or contrary or best.covered < LEAST_COVERED else sure


class Shortlist:
    """Ranks tools and skills by the index of the embedded classifier, made when it is first needed."""

    def __init__(self, registry: PackRegistry) -> None:
        self._registry = registry

    @cached_property
    def _index(self) -> Index:
        return build(self._registry)

    def __call__(self, text: str) -> list[str]:
        """Every name, those that fit best first; of equal ones the registry's order."""
        index, cleaned = self._index, clean(text)
        query = query_of(marked(cleaned, tokenize(cleaned), (), index), index)
        worth = [0.0] * len(index.entries)
        for token, weight in query.weights.items():
            for number, strength in index.postings.get(token, ()):
                worth[number] += weight * strength * index.rarity.get(token, 0.0)
        ranked = sorted(index.entries, key=lambda entry: (-worth[entry.number], entry.number))
        return [entry.name for entry in ranked]

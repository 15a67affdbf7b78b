"""Meaning of each clause by itself and after the clause before it, and what it leaves open."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise, zip_longest

from podium.jobs.operator.judgement.embedded.clauses import AND, COMMA, REASONS, SENTENCE, Clause
from podium.jobs.operator.judgement.embedded.moods import EXPLAINS, OPENINGS, Mood, mood_of
from podium.jobs.operator.judgement.embedded.query import LIGHT, QUOTED, Query, query_of
from podium.jobs.operator.judgement.embedded.tokens import (
    LISTING,
    MAKING,
    PARTICLES,
    READ,
    STOPWORDS,
    VAGUE,
    VAGUE_PAIRS,
    TaggedToken,
    agreement,
    kinds_of,
    stem,
    token_set,
)
from podium.jobs.operator.judgement.embedded.tool_index import IN_NAME, Index, IndexEntry
from podium.jobs.operator.judgement.embedded.tool_score import (
    ASKABLE,
    FAINTEST,
    OPEN,
    SURE_ENOUGH,
    SYNONYM_VERB,
    Fit,
    confidence_of,
    fits_of,
)
from podium.jobs.operator.judgement.fields.extractor import RECORD
from podium.jobs.operator.judgement.fields.tokenized_text import Entity

PERHAPS_SOMETHING_ELSE, SOMETHING_ELSE = 0.75, 0.3
"""Factors of the confidence when the verb fits and its object is a word that no entry has."""
TIE = 0.015
"""Scores so near to each other, where no thing is named, leave open which is meant."""
_TELLERS = token_set("i im ive we were weve he hes she shes they theyre theyve")
"""First words of a statement about somebody, unless a verb asks for something."""
_DOING = (["do"], ["run"], ["action"], ["process"])
"""Verbs that ask for more than a look, and do not say for what."""
MUCH_STRONGER = 0.3
"""So much more surely a word must point to one tool than to the next to say which is meant."""
NEARLY_ALL, CLEAR = 0.9, 0.08
"""The share of the words that a tool knows, and its distance to the next one, that say enough without a verb."""
MOSTLY_COVERED = 0.7
"""The share of a remark's words that a tool which only reads must know for it to be meant."""
LIKE_A_PHRASE, WHOLE_PHRASE = 0.75, 0.95
"""So like a phrase of the registry that the words are its own, and that nothing is left open."""


def sureness_of(clause: Clause, query: Query, fits: Sequence[Fit]) -> float:
    """The confidence in the first of the fits, with what the words leave open."""
    is_open = _is_open(clause, query, fits)
    sure = confidence_of(fits, is_open)
    if query.strange and fits and not clause.mood.question:
        sure *= _unknown_object_factor(query, fits[0])
    return max(sure, ASKABLE) if is_open and query.things else sure


def _unknown_object_factor(query: Query, best: Fit) -> float:
    """Compute the factor for an object that no entry knows."""
    if query.things:
        return 1.0 if best.entry.requires_free_text else PERHAPS_SOMETHING_ELSE
    if best.values >= 1 and any(name in query.context_names for name in best.entry.required):
        return 1.0
    return 1.0 if best.entry.requires_free_text and best.phrase > LIKE_A_PHRASE else SOMETHING_ELSE


def _is_open(clause: Clause, query: Query, fits: Sequence[Fit]) -> bool:
    """Return whether the words leave open what is to be done, or name nothing to do it to."""
    if not fits:
        return True
    best = fits[0]
    if _leaves_open(clause, query, best):
        return True
    if best.entry.reads and any(_does_more(token, best.entry) for token in query.verbs):
        return True
    if _unasked(clause, query, best) and not _only_its_own(query, fits):
        return True
    named = (
        query.things
        or query.kinds
        or query.reach
        or any(name in query.context_names for name in best.entry.required)
    )
    values = query.kinds - {"number"}
    called = best.same or best.verb >= SYNONYM_VERB
    if values and not query.things and not called and not best.entry.takes(values):
        return True
    if not query.things and len(fits) > 1 and best.score - fits[1].score < TIE:
        return True
    if _makes_something(query, best):
        return True
    bare = not named and all(kinds_of(token) for token in query.weights)
    return bare and not (best.same and best.phrase > WHOLE_PHRASE)


def _makes_something(query: Query, best: Fit) -> bool:
    """`Add me to the roster`: a verb that makes anything, of a thing that nobody knows."""
    if query.things or best.same or best.phrase > LIKE_A_PHRASE or best.values >= 1:
        return False
    return bool(query.verbs) and query.verbs <= LIGHT | MAKING and not best.entry.reads


def _only_its_own(query: Query, fits: Sequence[Fit]) -> bool:
    """Return whether a word that the next tool has not says which is meant: `scope INS-31`."""
    best, others = fits[0], fits[1:2]
    margin = best.score - others[0].score if others else CLEAR
    strengths = others[0].entry.strengths if others else {}
    own = any(
        best.entry.strengths.get(token, 0.0) >= strengths.get(token, 0.0) + MUCH_STRONGER
        for token in query.weights
        if token not in PARTICLES
    )
    return own and best.covered >= NEARLY_ALL and margin >= CLEAR


def _leaves_open(clause: Clause, query: Query, best: Fit) -> bool:
    """Return whether the words are such as say nothing of what is to be done: `deal with`, `do`, `the quote`."""
    if best.same:
        return False
    texts = [text for text in clause.texts if text not in OPENINGS]
    if any(text in VAGUE for text in texts) or not VAGUE_PAIRS.isdisjoint(pairwise(texts)):
        return True
    if best.by_everyday and not clause.mood.question and not clause.tail:
        return True
    if not best.entry.reads or clause.mood.question:
        return False
    chosen = any(not stems.isdisjoint(query.weights) for stems in best.entry.choices.values())
    lists = not best.entry.verbs.isdisjoint(LISTING) and not best.entry.requires_free_text
    one_of_many = lists and not query.several and not chosen and not query.acts
    narrates = bool(texts) and texts[0] in _TELLERS and not query.acts
    return texts[:1] in _DOING or one_of_many or narrates


def _unasked(clause: Clause, query: Query, best: Fit) -> bool:
    """Return whether no word asks for the act: a remark on a thing is no request, unless it is all said in the registry's words.

    Values that only one tool could want ask for it too: `lead Sarah 0400 123 456 Clayton`.
    """
    if best.verb > 0 or best.same or clause.mood.question or best.phrase > WHOLE_PHRASE:
        return False
    if best.entry.reads:
        return best.covered < MOSTLY_COVERED
    taken = {kind for kind in best.entry.kinds.values() if not kind.startswith("id")}
    chosen = any(not stems.isdisjoint(query.weights) for stems in best.entry.choices.values())
    return best.values < 1 or not (chosen or taken & query.kinds)


def _does_more(token: str, entry: IndexEntry) -> bool:
    """Return whether a word asks for a change of which a tool that only reads knows nothing."""
    kinds = kinds_of(token)
    return bool(kinds) and READ not in kinds and token not in entry.strengths


DOTTED = re.compile(r"(?<![\w.@/\\-])[a-z][a-z0-9_]*(?:\.[a-z][a-z0-9_]*)+(?![\w@/\\-])")
"""Text that is written like the name of a tool."""
_POINTS_BACK = frozenset({"it", "that", "this", "one"})
_FROM_BEFORE = 0.5
"""Weight of the thing of the previous clause where a clause speaks of `it`."""
_SPELLED = 0.8
"""Weight of a thing that only the letters of an id stand for."""
BY_NAME = 0.99


@dataclass(frozen=True, slots=True)
class ClauseMeaning:
    """A clause with the tools that fit it."""

    clause: Clause
    fits: Sequence[Fit]
    confidence: float
    mood: Mood
    query: Query
    by_name: bool = False

    @property
    def entry(self) -> IndexEntry | None:
        return self.fits[0].entry if self.fits else None

    @property
    def sure(self) -> bool:
        return self.confidence >= SURE_ENOUGH

    @property
    def forbidden(self) -> str:
        """Reason not to use the tool; empty when it may be used."""
        if self.entry is None or self.denies:
            return ""
        if not self.entry.reads and self._denied:
            return "the message says not to do it, or that it is not so"
        mood = self.mood
        if mood.how_to and not self.entry.explains.isdisjoint(self.clause.texts[:1]):
            mood = replace(mood, how_to=False)
        return mood.forbids(self.entry.reads)

    @property
    def denies(self) -> bool:
        """True if the registry's own words for the act deny something, so that a `not` is no ban of it.

        Where the clause has a verb that asks for the act, the `not` may well be meant for that.
        """
        mood, entry = self.mood, self.entry
        if entry is None or mood.how_to or mood.question or mood.supposed or mood.reported:
            return False
        asked = (
            agreement(self.query.acts, entry.acts) > 0 or entry.verbs & self.query.weights.keys()
        )
        return self.fits[0].denies and not asked and not self._denied

    @property
    def banned(self) -> bool:
        return self.mood.banned and not self.denies

    def names_a_thing(self, index: Index) -> bool:
        """Return whether the clause has a thing of its own, and not only `it`."""
        return any(token.stem in index.objects and not token.kind for token in self.clause.tokens)

    @property
    def _denied(self) -> bool:
        """True if the act itself is what is denied: `don't void`, `isn't finished`."""
        entry = self.entry
        stems = [stem(token) for token in self.mood.denied]
        return entry is not None and any(
            token in entry.verbs or kinds_of(token) & entry.acts for token in stems
        )


@dataclass(frozen=True)
class Reader:
    """Reads the clauses of one message."""

    text: str
    entities: Sequence[Entity]
    index: Index
    context_names: frozenset[str]
    """Names in the context."""

    def all_of(self, clauses: Sequence[Clause]) -> list[ClauseMeaning]:
        """One for each clause that is a request; what is none is added to its neighbour."""
        meanings: list[ClauseMeaning] = []
        waiting: list[Clause] = []
        for clause in clauses:
            meaning = self.one(clause, meanings[-1] if meanings else None)
            if self._is_independent(meaning, meanings):
                if meanings and _undoes(meaning, meanings[-1]):
                    waiting.append(meanings.pop().clause)
                for other in waiting:
                    meaning = self.one(
                        meaning.clause.with_more(other), meanings[-1] if meanings else None
                    )
                waiting = []
                meanings.append(meaning)
            elif meanings:
                merged = self.one(
                    meanings[-1].clause.with_more(clause),
                    meanings[-2] if len(meanings) > 1 else None,
                )
                extended = replace(meanings[-1], clause=merged.clause, query=merged.query)
                meanings[-1] = merged if merged.confidence > meanings[-1].confidence else extended
            else:
                waiting.append(clause)
        return meanings or ([self.together(waiting)] if waiting else [])

    def one(self, clause: Clause, before: ClauseMeaning | None = None) -> ClauseMeaning:
        mood = clause.mood
        query = self._query(clause, before)
        if mood.question:
            query = replace(query, acts=frozenset({READ}), asked=True)
        if named := [Fit(entry, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0) for entry in self._named(clause)]:
            sure = BY_NAME if len(named) == 1 else OPEN
            return ClauseMeaning(clause, named, sure, mood, query, by_name=True)
        fits = fits_of(query, self.index)
        if asks_why := EXPLAINS.intersection(clause.texts[:1]):
            fits = [fit for fit in fits if fit.entry.explains & asks_why] or fits
        return ClauseMeaning(clause, fits, sureness_of(clause, query, fits), mood, query)

    def _is_independent(self, meaning: ClauseMeaning, previous: Sequence[ClauseMeaning]) -> bool:
        """Return whether a clause is a request of its own, or a ban, and no remark on another."""
        if not meaning.query.weights and not meaning.mood.banned:
            return False
        if meaning.clause.texts[0] in REASONS:
            return False
        if meaning.clause.joined == COMMA and previous and self._adds(meaning):
            return False
        if previous and meaning.entry and meaning.entry.reads and not _asks(meaning):
            return False
        if meaning.sure or meaning.mood.banned:
            return True
        if not meaning.clause.opens or (meaning.clause.joined == COMMA and previous):
            return False
        if meaning.clause.joined == AND and len(meaning.query.weights) < 2:
            return False
        return meaning.clause.joined != SENTENCE or meaning.confidence >= FAINTEST or not previous

    def _adds(self, meaning: ClauseMeaning) -> bool:
        """Return whether a clause behind a comma only says more of the one before: `make it Wednesday`."""
        light = not meaning.names_a_thing(self.index) and meaning.query.verbs <= LIGHT
        return not meaning.query.acts or (light and bool(meaning.query.kinds))

    def together(self, clauses: Sequence[Clause]) -> ClauseMeaning:
        """Several clauses, read as if they were one."""
        tokens = tuple(token for clause in clauses for token in clause.tokens)
        asked = any(clause.asked for clause in clauses)
        whole = replace(clauses[0], tokens=tokens, end=clauses[-1].end, asked=asked)
        mood = mood_of(whole.texts, asked, self.index.openers)
        whole = replace(whole, mood=mood.within([mood, *(clause.mood for clause in clauses)]))
        return self.one(whole)

    def _named(self, clause: Clause) -> list[IndexEntry]:
        """The tools whose names the clause has, outside of what is quoted and of texts that are values."""
        spoken = {token.start for token in clause.tokens if token.kind not in ("text", QUOTED)}
        matches = DOTTED.finditer(self.text, clause.start, clause.end)
        names = dict.fromkeys(match.group() for match in matches if match.start() in spoken)
        return [self.index.by_name[name] for name in names if name in self.index.by_name]

    def _points_back(self, tokens: Sequence[TaggedToken]) -> bool:
        """Return whether a word stands for the thing of the clause before; that of `this job` does not."""
        for token, after in zip_longest(tokens, tokens[1:]):
            alone = after is None or after.kind or after.stem not in self.index.objects
            if token.text in _POINTS_BACK and not token.kind and alone:
                return True
        return False

    def _with_spelled(self, query: Query, entities: Sequence[Entity]) -> Query:
        """The query, with the thing that the letters of an id stand for where nobody names one."""
        if query.things:
            return query
        for entity in entities:
            meant = _spelled(entity, self.index.numbered)
            whole = str(entity.value).casefold().startswith(tuple(meant)) if meant else False
            if len(meant) == 1 and (whole or query.weights):
                return replace(
                    query,
                    things=[(meant[0], _SPELLED)],
                    weights={**query.weights, meant[0]: _SPELLED},
                )
        return query

    def _query(self, clause: Clause, before: ClauseMeaning | None) -> Query:
        inside = [entity for entity in self.entities if clause.start <= entity.start < clause.end]
        records = [entity for entity in inside if entity.kind == RECORD]
        kinds = {_kind(entity, clause) for entity in inside if entity.kind != RECORD}
        query = query_of(clause.tokens, self.index, kinds, self.context_names, clause.implied)
        if records:
            also = {
                entity.kind for entity in inside for record in records
                if entity is not record and entity.touches(record.start, record.end)
            }  # fmt: skip
            query = replace(
                query,
                reach=frozenset(kind for record in records for kind in record.value),
                also=frozenset(also),
            )
        query = query if clause.tail else self._with_spelled(query, inside)
        if before is None or before.entry is None or not query.weights:
            return query
        points_back = self._points_back(clause.tokens)
        if not points_back and (query.things or query.kinds or query.reach or query.strange):
            return query
        meant = {
            thing for thing in before.entry.objects if before.entry.strengths[thing] >= IN_NAME
        }
        carried = dict.fromkeys(sorted(meant - query.weights.keys()), _FROM_BEFORE)
        return replace(
            query,
            things=[*query.things, *carried.items()],
            weights={**query.weights, **carried},
            kinds=query.kinds | before.query.kinds,
        )


def _undoes(meaning: ClauseMeaning, before: ClauseMeaning) -> bool:
    """Return whether a command undoes what was said before it, which then was no request: `it was cancelled, reinstate it`."""
    spoken = (token for token in before.clause.tokens if token.text not in STOPWORDS)
    first = next(spoken, None)
    asked = first is not None and kinds_of(first.stem) and not first.text.endswith("ed")
    if not meaning.clause.opens or asked or meaning.clause.joined == SENTENCE:
        return False
    if meaning.entry is None or before.entry is None or not meaning.sure:
        return False
    # A stage may be noted of what is then put away.
    noted = "update" in before.entry.acts
    return not noted and agreement(meaning.entry.acts, before.entry.acts) == -1


def _asks(meaning: ClauseMeaning) -> bool:
    """Return whether a clause asks to see something; a remark has verbs of seeing too: `found us on the web`."""
    return (
        meaning.clause.opens
        or meaning.mood.question
        or bool(meaning.clause.implied)
        or meaning.by_name
    )


def _kind(entity: Entity, clause: Clause) -> str:
    """The entity's kind; of an id whose thing neither the clause nor the id itself names, only that it is one."""
    if not entity.kind.startswith("id:"):
        return entity.kind
    thing = entity.kind.removeprefix("id:")
    named = any(token.stem == stem(thing) for token in clause.tokens)
    return entity.kind if named or stem(thing) in _spelled(entity, {stem(thing)}) else "id"


def _spelled(entity: Entity, things: Collection[str]) -> list[str]:
    """The things that the letters of an id may stand for: `Q-12` for a quote, `TK-3` for a task."""
    match = re.match(r"[a-z]*", str(entity.value).casefold())
    if not entity.kind.startswith("id") or match is None or not match.group():
        return []
    prefix = match.group()
    begun = [
        thing for thing in things if thing.startswith(stem(prefix)) or prefix.startswith(thing)
    ]
    return begun or [thing for thing in things if len(prefix) > 1 and _in_order(prefix, thing)]


def _in_order(prefix: str, name: str) -> bool:
    left = iter(name[1:])
    return name[0] == prefix[0] and all(character in left for character in prefix[1:])

"""What each clause means by itself, and in the light of the clause before it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest

from podium.flows.operator.judgement.embedded.clauses import AND, COMMA, SENTENCE, Clause
from podium.flows.operator.judgement.embedded.confidence import (
    ASKABLE,
    FAINTEST,
    OPEN,
    SURE_ENOUGH,
    confidence_of,
)
from podium.flows.operator.judgement.embedded.extractor import Entity
from podium.flows.operator.judgement.embedded.index import IN_NAME, Entry, Index
from podium.flows.operator.judgement.embedded.lexicon import READ, VAGUE, kinds_of
from podium.flows.operator.judgement.embedded.marking import QUOTED
from podium.flows.operator.judgement.embedded.moods import Mood, mood_of
from podium.flows.operator.judgement.embedded.query import Query, query_of
from podium.flows.operator.judgement.embedded.scoring import Fit, fits_of
from podium.flows.operator.judgement.embedded.words import Word, stem

DOTTED = re.compile(r"(?<![\w.@/\\-])[a-z][a-z0-9_]*(?:\.[a-z][a-z0-9_]*)+(?![\w@/\\-])")
"""What is written like the name of a tool."""
_POINTS_BACK = frozenset({"it", "that", "this", "one"})
_FROM_BEFORE = 0.5
"""How much the thing of the clause before counts where a clause speaks of `it`."""
BY_NAME = 0.99
PERHAPS_SOMETHING_ELSE, SOMETHING_ELSE = 0.75, 0.4
"""What is left of the confidence when the verb fits and its object is a word that no entry has."""
LIKE_A_PHRASE, WHOLE_PHRASE = 0.75, 0.95
"""So like a phrase of the registry that the words are its own, and that nothing is left open."""


@dataclass(frozen=True, slots=True)
class Understood:
    """A clause with the tools that fit it."""

    clause: Clause
    fits: Sequence[Fit]
    confidence: float
    mood: Mood
    query: Query
    by_name: bool = False

    @property
    def entry(self) -> Entry | None:
        return self.fits[0].entry if self.fits else None

    @property
    def sure(self) -> bool:
        return self.confidence >= SURE_ENOUGH

    @property
    def forbidden(self) -> str:
        """Why the tool is not to be used; empty when it may be."""
        if self.entry is None:
            return ""
        if not self.entry.reads and any(self._does(word) for word in self.mood.denied):
            return "the message says that it is not so"
        return self.mood.forbids(self.entry.reads)

    def names_a_thing(self, index: Index) -> bool:
        """Whether the clause has a thing of its own, and not only `it`."""
        return any(word.stem in index.objects and not word.kind for word in self.clause.words)

    def _does(self, word: str) -> bool:
        entry = self.entry
        return entry is not None and (
            stem(word) in entry.verbs or bool(kinds_of(stem(word)) & entry.acts)
        )


@dataclass(frozen=True)
class Reader:
    """Reads the clauses of one message."""

    text: str
    entities: Sequence[Entity]
    index: Index
    given: frozenset[str]
    """Names in the context."""

    def all_of(self, clauses: Sequence[Clause]) -> list[Understood]:
        """One for each clause that is a wish; what is none is added to its neighbour."""
        found: list[Understood] = []
        waiting: list[Clause] = []
        for clause in clauses:
            each = self.one(clause, found[-1] if found else None)
            if self._stands_alone(each, found):
                for other in waiting:
                    each = self.one(each.clause.with_more(other), found[-1] if found else None)
                waiting = []
                found.append(each)
            elif found:
                merged = self.one(
                    found[-1].clause.with_more(clause), found[-2] if len(found) > 1 else None
                )
                found[-1] = replace(found[-1], clause=merged.clause, query=merged.query)
            else:
                waiting.append(clause)
        return found or ([self.together(waiting)] if waiting else [])

    def one(self, clause: Clause, before: Understood | None = None) -> Understood:
        mood = clause.mood
        query = self._query(clause, before)
        if mood.question:
            query = replace(query, acts=frozenset({READ}))
        if named := [Fit(entry, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0) for entry in self._named(clause)]:
            sure = BY_NAME if len(named) == 1 else OPEN
            return Understood(clause, named, sure, mood, query, by_name=True)
        fits = fits_of(query, self.index)
        return Understood(clause, fits, _confidence(clause, query, fits), mood, query)

    def _stands_alone(self, each: Understood, found: Sequence[Understood]) -> bool:
        """Whether a clause is a wish of its own, or a ban, and no remark on another."""
        if not each.query.weights and not each.mood.banned:
            return False
        if each.clause.joined == COMMA and found and not each.query.acts:
            return False
        if found and each.entry and each.entry.reads and not _asks(each):
            return False
        if each.sure or each.mood.banned:
            return True
        if not each.clause.opens or (each.clause.joined == COMMA and found):
            return False
        if each.clause.joined == AND and len(each.query.weights) < 2:
            return False
        return each.clause.joined != SENTENCE or each.confidence >= FAINTEST or not found

    def together(self, clauses: Sequence[Clause]) -> Understood:
        """Several clauses, read as if they were one."""
        words = tuple(word for clause in clauses for word in clause.words)
        asked = any(clause.asked for clause in clauses)
        whole = replace(clauses[0], words=words, end=clauses[-1].end, asked=asked)
        mood = mood_of(whole.texts, asked, self.index.openers)
        whole = replace(whole, mood=mood.within([mood, *(clause.mood for clause in clauses)]))
        return self.one(whole)

    def _named(self, clause: Clause) -> list[Entry]:
        """The tools whose names the clause has, outside of what is quoted and of texts that are values."""
        spoken = {word.start for word in clause.words if word.kind not in ("text", QUOTED)}
        found = DOTTED.finditer(self.text, clause.start, clause.end)
        names = dict.fromkeys(each.group() for each in found if each.start() in spoken)
        return [self.index.by_name[name] for name in names if name in self.index.by_name]

    def _points_back(self, words: Sequence[Word]) -> bool:
        """Whether a word stands for the thing of the clause before; that of `this job` does not."""
        for word, after in zip_longest(words, words[1:]):
            alone = after is None or after.kind or after.stem not in self.index.objects
            if word.text in _POINTS_BACK and not word.kind and alone:
                return True
        return False

    def _query(self, clause: Clause, before: Understood | None) -> Query:
        inside = (each for each in self.entities if clause.start <= each.start < clause.end)
        kinds = {_kind(each, clause) for each in inside}
        query = query_of(clause.words, self.index, kinds, self.given, clause.implied)
        if before is None or before.entry is None or not query.weights:
            return query
        points_back = self._points_back(clause.words)
        if not points_back and (query.things or query.kinds or query.strange):
            return query
        meant = {each for each in before.entry.objects if before.entry.strengths[each] >= IN_NAME}
        carried = dict.fromkeys(sorted(meant - query.weights.keys()), _FROM_BEFORE)
        return replace(
            query,
            things=[*query.things, *carried.items()],
            weights={**query.weights, **carried},
            kinds=query.kinds | before.query.kinds,
        )


def _asks(each: Understood) -> bool:
    """Whether a clause asks to see something; a remark has verbs of seeing too: `found us on the web`."""
    return each.clause.opens or each.mood.question or bool(each.clause.implied) or each.by_name


def _kind(entity: Entity, clause: Clause) -> str:
    """The entity's kind; of an id whose thing neither the clause nor the id itself names, only that it is one."""
    if not entity.kind.startswith("id:"):
        return entity.kind
    thing = entity.kind.removeprefix("id:")
    letters = re.match(r"[a-z]*", str(entity.value).casefold())
    named = any(word.stem == stem(thing) for word in clause.words)
    spelled = letters is not None and letters.group() and thing.startswith(letters.group())
    return entity.kind if named or spelled else "id"


def _confidence(clause: Clause, query: Query, fits: Sequence[Fit]) -> float:
    is_open = _is_open(clause, query, fits)
    sure = confidence_of(fits, is_open)
    if query.strange and fits and not clause.mood.question:
        sure *= _known_share(query, fits[0])
    return max(sure, ASKABLE) if is_open and query.things else sure


def _known_share(query: Query, best: Fit) -> float:
    """How much of the confidence an object leaves that no entry knows."""
    if query.things:
        return 1.0 if best.entry.wants_words else PERHAPS_SOMETHING_ELSE
    return 1.0 if best.entry.wants_words and best.phrase > LIKE_A_PHRASE else SOMETHING_ELSE


def _is_open(clause: Clause, query: Query, fits: Sequence[Fit]) -> bool:
    """Whether the words leave open what is to be done, or name nothing to do it to."""
    if any(text in VAGUE for text in clause.texts) or not fits:
        return True
    best = fits[0]
    if best.entry.reads and any(_does_more(word, best.entry) for word in query.verbs):
        return True
    told = query.things or query.kinds or any(name in query.given for name in best.entry.required)
    bare = not told and all(kinds_of(word) for word in query.weights)
    return bare and best.phrase <= WHOLE_PHRASE


def _does_more(word: str, entry: Entry) -> bool:
    """Whether a word asks for a change of which a tool that only reads knows nothing."""
    kinds = kinds_of(word)
    return bool(kinds) and READ not in kinds and word not in entry.strengths

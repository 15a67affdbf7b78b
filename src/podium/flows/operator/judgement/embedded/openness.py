"""Whether the words of a clause leave open what is to be done, to what, or that anything is asked for at all."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from podium.flows.operator.judgement.embedded.clauses import Clause
from podium.flows.operator.judgement.embedded.confidence import ASKABLE, confidence_of
from podium.flows.operator.judgement.embedded.index import Entry
from podium.flows.operator.judgement.embedded.lexicon import (
    LISTING,
    MAKING,
    PARTICLES,
    READ,
    VAGUE,
    VAGUE_PAIRS,
    kinds_of,
)
from podium.flows.operator.judgement.embedded.moods import OPENINGS
from podium.flows.operator.judgement.embedded.query import LIGHT, Query
from podium.flows.operator.judgement.embedded.scoring import ITS_OWN_WORD, Fit
from podium.flows.operator.judgement.embedded.words import word_set

PERHAPS_SOMETHING_ELSE, SOMETHING_ELSE = 0.75, 0.3
"""What is left of the confidence when the verb fits and its object is a word that no entry has."""
TIE = 0.015
"""Scores so near to each other, where no thing is named, leave open which is meant."""
_TELLERS = word_set("i im ive we were weve he hes she shes they theyre theyve")
"""Who begins with these tells of somebody, unless a verb asks for something."""
_DOING = (["do"], ["run"], ["action"], ["process"])
"""Verbs that ask for more than a look, and do not say for what."""
MUCH_STRONGER = 0.3
"""So much more surely a word must point to one tool than to the next to say which is meant."""
NEARLY_ALL, CLEAR = 0.9, 0.08
"""The share of the words that a tool knows, and its distance to the next one, that say enough without a verb."""
MOSTLY_SAID = 0.7
"""The share of a remark's words that a tool which only reads must know for it to be meant."""
LIKE_A_PHRASE, WHOLE_PHRASE = 0.75, 0.95
"""So like a phrase of the registry that the words are its own, and that nothing is left open."""


def sureness_of(clause: Clause, query: Query, fits: Sequence[Fit]) -> float:
    """The confidence in the first of the fits, with what the words leave open."""
    is_open = _is_open(clause, query, fits)
    sure = confidence_of(fits, is_open)
    if query.strange and fits and not clause.mood.question:
        sure *= _known_share(query, fits[0])
    return max(sure, ASKABLE) if is_open and query.things else sure


def _known_share(query: Query, best: Fit) -> float:
    """How much of the confidence an object leaves that no entry knows."""
    if query.things:
        return 1.0 if best.entry.wants_words else PERHAPS_SOMETHING_ELSE
    if best.values >= 1 and any(name in query.given for name in best.entry.required):
        return 1.0
    return 1.0 if best.entry.wants_words and best.phrase > LIKE_A_PHRASE else SOMETHING_ELSE


def _is_open(clause: Clause, query: Query, fits: Sequence[Fit]) -> bool:
    """Whether the words leave open what is to be done, or name nothing to do it to."""
    if not fits:
        return True
    best = fits[0]
    if _leaves_open(clause, query, best):
        return True
    if best.entry.reads and any(_does_more(word, best.entry) for word in query.verbs):
        return True
    if _unasked(clause, query, best) and not _only_its_own(query, fits):
        return True
    told = query.things or query.kinds or any(name in query.given for name in best.entry.required)
    values = query.kinds - {"number"}
    called = best.same or best.verb >= ITS_OWN_WORD
    if values and not query.things and not called and not best.entry.takes(values):
        return True
    if not query.things and len(fits) > 1 and best.score - fits[1].score < TIE:
        return True
    if _makes_something(query, best):
        return True
    bare = not told and all(kinds_of(word) for word in query.weights)
    return bare and not (best.same and best.phrase > WHOLE_PHRASE)


def _makes_something(query: Query, best: Fit) -> bool:
    """`Add me to the roster`: a verb that makes anything, of a thing that nobody knows."""
    if query.things or best.same or best.phrase > LIKE_A_PHRASE or best.values >= 1:
        return False
    return bool(query.verbs) and query.verbs <= LIGHT | MAKING and not best.entry.reads


def _only_its_own(query: Query, fits: Sequence[Fit]) -> bool:
    """Whether a word that the next tool has not says which is meant: `scope INS-31`."""
    best, others = fits[0], fits[1:2]
    margin = best.score - others[0].score if others else CLEAR
    known = others[0].entry.strengths if others else {}
    own = any(
        best.entry.strengths.get(word, 0.0) >= known.get(word, 0.0) + MUCH_STRONGER
        for word in query.weights
        if word not in PARTICLES
    )
    return own and best.covered >= NEARLY_ALL and margin >= CLEAR


def _leaves_open(clause: Clause, query: Query, best: Fit) -> bool:
    """Whether the words are such as say nothing of what is to be done: `deal with`, `do`, `the quote`."""
    if best.same:
        return False
    texts = [text for text in clause.texts if text not in OPENINGS]
    if any(text in VAGUE for text in texts) or not VAGUE_PAIRS.isdisjoint(pairwise(texts)):
        return True
    if best.by_everyday and not clause.mood.question and not clause.tail:
        return True
    if not best.entry.reads or clause.mood.question:
        return False
    told = any(not words.isdisjoint(query.weights) for words in best.entry.choices.values())
    lists = not best.entry.verbs.isdisjoint(LISTING) and not best.entry.wants_words
    one_of_many = lists and not query.several and not told and not query.acts
    told_of = bool(texts) and texts[0] in _TELLERS and not query.acts
    return texts[:1] in _DOING or one_of_many or told_of


def _unasked(clause: Clause, query: Query, best: Fit) -> bool:
    """Whether no word asks for the act: a remark on a thing is no wish, unless it is all said in the registry's words.

    Values that only one tool could want ask for it too: `lead Sarah 0400 123 456 Clayton`.
    """
    if best.verb > 0 or best.same or clause.mood.question or best.phrase > WHOLE_PHRASE:
        return False
    if best.entry.reads:
        return best.covered < MOSTLY_SAID
    taken = {kind for kind in best.entry.kinds.values() if not kind.startswith("id")}
    chosen = any(not words.isdisjoint(query.weights) for words in best.entry.choices.values())
    return best.values < 1 or not (chosen or taken & query.kinds)


def _does_more(word: str, entry: Entry) -> bool:
    """Whether a word asks for a change of which a tool that only reads knows nothing."""
    kinds = kinds_of(word)
    return bool(kinds) and READ not in kinds and word not in entry.strengths

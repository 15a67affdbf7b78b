"""Where a clause stops saying what to do and starts to be a value: a task to …, a note: …."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

from podium.flows.operator.judgement.embedded.clauses import AND, COMMA, Clause, with_moods
from podium.flows.operator.judgement.embedded.index import Index
from podium.flows.operator.judgement.embedded.lexicon import INTRODUCES, kinds_of
from podium.flows.operator.judgement.embedded.query import query_of
from podium.flows.operator.judgement.embedded.scoring import OWN_WORDS, Fit, fits_of
from podium.flows.operator.judgement.embedded.words import FUNCTION_WORDS, Word

_SAYS = frozenset({"that", "saying", "because"})
_SURE_HEAD = 0.45
"""What the words before a text must score for it to be taken as a value."""
_MOST_TRIED = 3
MAKES = frozenset({"create", "send"})
"""What a thing with a colon behind it stands for."""


def with_tails(clauses: Sequence[Clause], text: str, index: Index) -> list[Clause]:
    """The clauses, in which text that is a value no longer counts as words."""
    found: list[Clause] = []
    for clause in clauses:
        if found and found[-1].tail and clause.joined in (AND, COMMA):
            found[-1] = found[-1].with_more(clause)
        else:
            found.append(_with_tail(clause, text, index))
    return with_moods(found, index)


def _with_tail(clause: Clause, text: str, index: Index) -> Clause:
    tried = 0
    for place, word in enumerate(clause.words[1:], 1):
        gap = text[clause.words[place - 1].end : word.start].strip()
        colon = gap.startswith(":") or (gap == "-" and _only_things(clause.words[:place], index))
        if word.text == "that" and kinds_of(clause.words[place - 1].stem):
            continue
        if not colon and (
            word.kind or word.text not in INTRODUCES or not _goes_on(clause.words, place)
        ):
            continue
        tried += 1
        if tried > _MOST_TRIED:
            break
        changed = _at(clause, place, colon, index)
        if changed is not None:
            return changed
    return clause


def _at(clause: Clause, place: int, colon: bool, index: Index) -> Clause | None:
    """The clause with its tail beginning there; None when there is none."""
    head = clause.words[:place]
    implied = MAKES if colon and not _refers(head) else clause.implied
    kinds = {word.kind for word in head if word.kind}
    best = next(iter(fits_of(query_of(head, index, kinds, implied=implied), index)), None)
    if best is None or not _fits_well(best):
        return None
    if not best.entry.wants_text:
        return replace(clause, implied=implied) if colon else None
    begin = place if colon else place + 1
    tail = (replace(each, kind=each.kind or "text") for each in clause.words[begin:])
    return replace(clause, words=(*clause.words[:begin], *tail), tail=True, implied=implied)


def _only_things(head: Sequence[Word], index: Index) -> bool:
    """Whether nothing but a thing stands there: `memo - bins go out`."""
    return all(not word.kind and word.stem in index.objects | index.domain_words for word in head)


def _refers(head: Sequence[Word]) -> bool:
    """Whether the head speaks of a thing that is already there: `quote Q-12: …`."""
    first = next((place for place, word in enumerate(head) if word.text not in FUNCTION_WORDS), 0)
    return any(
        after.kind == f"id:{word.stem}" or after.kind == f"id:{word.text}"
        for word, after in pairwise(head[first : first + 2])
    )


def _goes_on(words: Sequence[Word], place: int) -> bool:
    """Whether plain words follow, and not a value or, as in `add it to quote Q-12`, a thing with its id."""
    after = [word.kind for word in words[place + 1 : place + 3]]
    if not after or after[0]:
        return words[place].text in _SAYS and bool(after)
    return words[place].text != "to" or not after[-1].startswith("id")


def _fits_well(fit: Fit) -> bool:
    asks = fit.verb > 0 or fit.phrase >= OWN_WORDS
    return fit.score >= _SURE_HEAD and asks and fit.thing > 0

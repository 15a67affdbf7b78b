"""Which words of a message are values, which are quoted, and which were mistyped."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from podium.flows.operator.judgement.embedded.common import EVERYDAY
from podium.flows.operator.judgement.embedded.index import Index
from podium.flows.operator.judgement.embedded.lexicon import kinds_of
from podium.flows.operator.judgement.embedded.words import FUNCTION_WORDS, Word, stem
from podium.flows.operator.judgement.fields.entity import Entity

QUOTED = "quoted"
MOST_CORRECTED = 60
"""Words of one message that are looked up by likeness; a longer text is not made of typing errors."""
_QUOTES = re.compile(r""""[^"]*"|(?<!\w)'[^'\n]{2,}'(?!\w)""")
_LOOSE = frozenset({"name", "suburb", "address", "text", "number", "id"})
"""Kinds that a word may be taken for although it is one the registry knows."""


def marked(
    text: str, words: Sequence[Word], entities: Sequence[Entity], index: Index
) -> list[Word]:
    """The words, each with what it is part of, and typing errors mended."""
    kinds = _kinds_at(text, entities)
    shouted = not any(word.text.isalpha() and not word.capital for word in words)
    left = MOST_CORRECTED
    found: list[Word] = []
    for place, word in enumerate(words):
        kind = _kind(word, kinds.get(word.start, ""), place, index, shouted)
        if not kind and left and _mistyped(word, place == 0 or shouted, index):
            left -= 1
            mended, errors = index.speller.correct(word.text)
            mended = mended if errors else index.speller.written_out(word.text)
            word = replace(word, text=mended, stem=stem(mended))
        found.append(replace(word, kind=kind) if kind else word)
    return found


def _kinds_at(text: str, entities: Sequence[Entity]) -> dict[int, str]:
    spans = [(entity.start, entity.end, entity.kind) for entity in entities]
    quotes = list(_QUOTES.finditer(text))
    if not (len(quotes) == 1 and quotes[0].group() == text.strip()):
        spans += [(each.start(), each.end(), QUOTED) for each in quotes]
    return dict(_places(spans))


def _places(spans: Sequence[tuple[int, int, str]]) -> Iterator[tuple[int, str]]:
    for start, end, kind in spans:
        for place in range(start, end):
            yield place, kind


def _kind(word: Word, kind: str, place: int, index: Index, shouted: bool) -> str:
    digits = any(letter.isdigit() for letter in word.text)
    if not kind or kind == QUOTED:
        return kind or ("number" if digits else "")
    if digits or not (kind in _LOOSE or kind.startswith("id:")):
        return kind
    if _strange(word, index):
        return "" if word.text in FUNCTION_WORDS else kind
    named = word.capital and place > 0 and not shouted and kind in ("name", "suburb", "address")
    return kind if named and word.stem not in index.objects else ""


def _mistyped(word: Word, capitals_say_nothing: bool, index: Index) -> bool:
    """Whether it may be a word of the registry with errors in it, and no name and no everyday word."""
    if word.capital and not capitals_say_nothing:
        return False
    return word.stem not in EVERYDAY and _strange(word, index)


def _strange(word: Word, index: Index) -> bool:
    """Whether neither the registry nor the language of acts knows the word."""
    known = index.knows(word.stem) or bool(kinds_of(word.stem))
    return not known and word.text not in FUNCTION_WORDS

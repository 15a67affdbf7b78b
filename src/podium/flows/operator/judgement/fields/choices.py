"""Choices and flags: which of an argument's known values the words name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from podium.domain.model import Json
from podium.flows.operator.judgement.fields.lexicon import Lexicon, Phrases, words_of
from podium.flows.operator.judgement.fields.passage import Passage
from podium.flows.operator.judgement.fields.plain_words import (
    NEVER_NAMES,
    VERBS,
    words_in,
)

_POINTING = words_in("to as into is are by via status stage method channel through")
_QUANTIFIERS = words_in("all any both every other")
_ARTICLES = words_in("the a an any those these")
_NEGATIONS = words_in("no not without don't never isn't")


@dataclass(frozen=True, slots=True)
class Said:
    """A value of a choice as it was said, from word to word."""

    value: Json
    words: str
    index: int
    exact: bool
    count: int = 1


def choice(
    passage: Passage, name: str, shape: Mapping[str, Json], lexicon: Lexicon, masked: bytearray
) -> Said | None:
    """The value that is meant; of several the one that is pointed at, then the one that is no small word."""
    said = list(_said(passage, shape, lexicon, masked))
    exact = [each for each in said if each.exact] or said
    if not exact:
        return None
    return max(exact, key=lambda each: (_weight(passage, name, each), -each.index))


def named_choices(passage: Passage, shape: Mapping[str, Json], lexicon: Lexicon) -> list[Json]:
    """Every value of the choice that the words name and do not deny."""
    return [each.value for each in _said(passage, shape, lexicon, bytearray())]


def _weight(passage: Passage, name: str, said: Said) -> tuple[bool, bool, bool]:
    before = passage.words[said.index - 1].lower if said.index else ""
    after = said.index + said.count
    beside = before in words_of(name) or (
        after < len(passage.words) and passage.words[after].lower in words_of(name)
    )
    opens = said.index == 0 and passage.words[0].lower in VERBS
    return (
        not opens and said.words not in _QUANTIFIERS,
        before in _POINTING or beside,
        said.count > 1,
    )


def _said(
    passage: Passage, shape: Mapping[str, Json], lexicon: Lexicon, masked: bytearray
) -> Iterator[Said]:
    phrases, values = _phrases(shape)
    for index, word in enumerate(passage.words):
        denied = _denied(passage, index)
        if denied or masked.find(1, word.start, word.end) >= 0:
            continue
        found = phrases.at(passage.words, index)
        if found:
            yield Said(values[found[0]], found[0], index, exact=True, count=found[1])
        elif word.lower not in NEVER_NAMES and word.lower not in lexicon.pack_words:
            near = phrases.nearly(word.lower) or phrases.nearly(word.lower.removesuffix("s"))
            if near:
                yield Said(values[near], near, index, exact=False)


def _denied(passage: Passage, index: int) -> bool:
    """`not contacted`, `not the draft ones`."""
    before = [word.lower for word in passage.words[max(0, index - 2) : index]]
    if before[1:] and before[1] in _ARTICLES:
        before.pop()
    return bool(before) and before[-1] in _NEGATIONS


def _phrases(shape: Mapping[str, Json]) -> tuple[Phrases, dict[str, Json]]:
    known: dict[str, Json] = {}
    others = shape.get("x-words")
    for value in shape.get("enum", ()):
        said = others.get(str(value), ()) if isinstance(others, dict) else ()
        for phrase in (str(value), str(value).replace("_", " "), f"{value}s", *said):
            known.setdefault(str(phrase).lower(), value)
    return Phrases(known), known


def flag(passage: Passage, name: str) -> bool | None:
    """True where the argument's name is said, False where it is denied, else None."""
    wanted = words_of(name)
    words = [word.lower for word in passage.words]
    for at in range(len(words) - len(wanted) + 1):
        if wanted and words[at : at + len(wanted)] == wanted:
            return not _NEGATIONS.intersection(words[max(0, at - 2) : at])
    return None

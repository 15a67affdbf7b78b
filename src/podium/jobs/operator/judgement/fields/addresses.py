"""Suburbs, street addresses and postcodes."""

from __future__ import annotations

import re
from collections.abc import Iterator

from podium.jobs.operator.judgement.fields.pack_lexicon import Lexicon
from podium.jobs.operator.judgement.fields.tokenized_text import (
    NEVER_NAMES,
    Entity,
    Passage,
    tidy,
    words_in,
)

_TYPES = (
    "street|st|str|road|rd|avenue|ave|av|drive|drv|dr|court|crt|ct|place|pl|lane|ln|close|cl|crescent|cres|cr|parade|pde|"
    "terrace|tce|way|highway|hwy|boulevard|boulevarde|blvd|bvd|circuit|cct|grove|gr|gve|esplanade|esp|rise|square|sq|walk|mews|"
    "gardens|gdns|loop|parkway|pkwy|track|trail|row|quay|freeway|alley|arcade|glade|glen|green|ridge|vale|view|heights|hts|outlook"
)
# Types that are plain words too: only a capital tells `Ocean View` from `a view`.
_WORDLIKE = words_in(
    "place close way rise square walk loop track trail row glade glen green ridge vale view heights outlook court drive"
)
_NOT_IN_STREETS = words_in(
    "in the of to for on at and or is are by with from a an my our we i it not off per"
)
_UNIT = r"(?:(?:unit|flat|apt|apartment|suite|ste|shop|level|lvl|factory|villa|u) ?\d{1,5}[a-z]?(?: ?[,/] ?| ))?"
_NUMBER = r"(?:lot \d{1,5}[a-z]?(?:,? \d{1,5}[a-z]?)?|\d{1,5}[a-z]?(?: ?[/\-] ?\d{1,5}[a-z]?)?)"
_STREET = rf"(?:the (?:esplanade|boulevard|avenue|crescent|parade|grange|strand)|broadway|(?:[^\W\d_][\w'.\-]{{0,30}} ){{1,4}}?(?:{_TYPES})(?:\.(?! )| (?:north|south|east|west|[nsew])\b)?)"
_ADDRESS = re.compile(rf"(?<![\w$#.\-/]){_UNIT}{_NUMBER},? {_STREET}(?![\w'])")
_BOX = re.compile(r"\bp\.?o\.? ?box \d{1,6}\b")
_BARE = re.compile(
    r"(?:\bat|\baddress(?: is)?:?|\bsite:?) (\d{1,5}[A-Za-z]?(?:/\d{1,5}[A-Za-z]?)? [A-Z][\w'\-]{2,30}(?: [A-Z][\w'\-]{2,30})?)(?![\w'])"
)
_STATE = r"(?:vic(?:toria)?|nsw|qld|queensland|sa|wa|tas(?:mania)?|nt|act)"
_POSTCODE = re.compile(rf"(?:\bpost ?code(?: is)?:? |\b{_STATE},? )(\d{{4}})(?![\w\-/.:]*\d)")
_FOUR = re.compile(r",? ?(?:" + _STATE + r",? )?(\d{4})(?![\w\-/:]|[.,]\d)")
_MAX_GUESSES = 50
"""A message names few places; guessing takes time."""
_CUES = words_in("in at near from around suburb of to")
_PLACE_CUES = words_in("in near around suburb")


def addresses(passage: Passage) -> Iterator[Entity]:
    """Number and street, as written. Suburb and postcode after it are finds of their own."""
    for pattern in (_ADDRESS, _BOX):
        for found in pattern.finditer(passage.lower):
            if _is_street(passage, *found.span()):
                yield _entity(
                    "address",
                    tidy(passage.text[found.start() : found.end()]),
                    passage,
                    *found.span(),
                    80,
                )
    for found in _BARE.finditer(passage.smooth):
        if found[1].split()[1].lower() not in NEVER_NAMES:
            yield _entity(
                "address",
                tidy(passage.text[found.start(1) : found.end(1)]),
                passage,
                *found.span(1),
                58,
            )


def _is_street(passage: Passage, start: int, end: int) -> bool:
    *words, last = passage.smooth[start:end].split()
    if last.lower() in _WORDLIKE and not words[-1][:1].isupper():
        return False
    return (
        not _NOT_IN_STREETS.intersection(word.lower() for word in words[:-1] if word)
        or words[-1].lower() == "the"
    )


def postcodes(passage: Passage, suburbs: list[Entity]) -> Iterator[Entity]:
    """Four digits that a word, a state or a suburb before them makes a postcode."""
    for found in _POSTCODE.finditer(passage.lower):
        yield _entity("postcode", found[1], passage, *found.span(1), 71)
    for suburb in suburbs:
        after = _FOUR.match(passage.lower, suburb.end)
        if after:
            yield _entity("postcode", after[1], passage, *after.span(1), 71)


def suburbs(passage: Passage, lexicon: Lexicon) -> Iterator[Entity]:
    """Places of the vocabulary, one typo forgiven after `in` and the like; else what is capitalised after `in`."""
    index, guesses = 0, 0
    while index < len(passage.words):
        found = lexicon.places.at(passage.words, index)
        if found and _unbroken(passage, index, found[1]):
            yield _known(passage, lexicon, index, *found)
            index += found[1]
            continue
        if guesses < _MAX_GUESSES and _may_be_place(passage, index):
            guesses += 1
            yield from _guessed(passage, lexicon, index)
        index += 1


def _unbroken(passage: Passage, index: int, count: int) -> bool:
    return all(passage.joined(at) for at in range(index + 1, index + count))


def _known(passage: Passage, lexicon: Lexicon, index: int, place: str, count: int) -> Entity:
    start, end = passage.words[index].start, passage.words[index + count - 1].end
    certainty = 68 if _cued(passage, index, _PLACE_CUES) else 64
    if certainty == 64 and _beside_name(passage, lexicon, index, count):
        certainty = 38
    return _entity("suburb", place, passage, start, end, certainty)


def _beside_name(passage: Passage, lexicon: Lexicon, index: int, count: int) -> bool:
    """Whether it is part of a name, such as `Clayton Smith` or `Mr Preston`."""
    after = index + count
    if passage.shouted or after >= len(passage.words) or not passage.joined(after):
        return False
    word = passage.words[after]
    known = (
        word.lower in NEVER_NAMES
        or word.lower in lexicon.pack_words
        or lexicon.places.at(passage.words, after)
    )
    return word.capital and word.text.isalpha() and not word.text.isupper() and not known


def _may_be_place(passage: Passage, index: int) -> bool:
    word = passage.words[index]
    if not word.text.isalpha() or word.lower in NEVER_NAMES:
        return False
    return _cued(passage, index, _CUES) or _after_comma_or_digit(passage, index)


def _guessed(passage: Passage, lexicon: Lexicon, index: int) -> Iterator[Entity]:
    typo = _mistyped(passage, lexicon, index)
    if typo:
        yield typo
    elif _cued(passage, index, frozenset({"in"})) and passage.joined(index):
        yield from _capitalised(passage, lexicon, index)


def _mistyped(passage: Passage, lexicon: Lexicon, index: int) -> Entity | None:
    for count in range(min(lexicon.places.longest, 4), 0, -1):
        said = passage.words[index : index + count]
        if len(said) < count or not _unbroken(passage, index, count):
            continue
        if count == 1 and (said[0].lower in lexicon.pack_words or not said[0].text.isalpha()):
            continue
        place = lexicon.places.nearly(passage.smooth[said[0].start : said[-1].end])
        if place:
            return _entity("suburb", place, passage, said[0].start, said[-1].end, 62)
    return None


def _capitalised(passage: Passage, lexicon: Lexicon, index: int) -> Iterator[Entity]:
    last = index
    while last < len(passage.words) and last < index + 3 and _placelike(passage, lexicon, last):
        last += 1
        if last < len(passage.words) and not passage.joined(last):
            break
    if last > index and not passage.shouted:
        start, end = passage.words[index].start, passage.words[last - 1].end
        yield _entity("suburb", tidy(passage.text[start:end]), passage, start, end, 61)


def _placelike(passage: Passage, lexicon: Lexicon, index: int) -> bool:
    word = passage.words[index]
    known = word.lower in NEVER_NAMES or word.lower in lexicon.pack_words
    return (
        word.capital
        and len(word.text) > 2
        and word.text.replace("'", "").replace("-", "").isalpha()
        and not known
    )


def _cued(passage: Passage, index: int, cues: frozenset[str]) -> bool:
    return (
        index > 0
        and passage.words[index - 1].lower in cues
        and passage.gap(index).strip(" :") == ""
    )


def _after_comma_or_digit(passage: Passage, index: int) -> bool:
    if index == 0:
        return False
    return passage.gap(index).strip() == "," or passage.words[index - 1].text[-1:].isdigit()


def _entity(kind: str, value: str, passage: Passage, start: int, end: int, sure: int) -> Entity:
    return Entity(kind, value, passage.text[start:end], start, end, sure)

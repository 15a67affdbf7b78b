"""Suburbs, street addresses and postcodes."""

from __future__ import annotations

import re
from collections.abc import Iterator

from podium.jobs.operator.judgement.fields.pack_lexicon import Lexicon
from podium.jobs.operator.judgement.fields.tokenized_text import (
    NEVER_NAMES,
    Entity,
    TokenizedText,
    tidy,
    token_set,
)

_TYPES = (
    "street|st|str|road|rd|avenue|ave|av|drive|drv|dr|court|crt|ct|place|pl|lane|ln|close|cl|crescent|cres|cr|parade|pde|"
    "terrace|tce|way|highway|hwy|boulevard|boulevarde|blvd|bvd|circuit|cct|grove|gr|gve|esplanade|esp|rise|square|sq|walk|mews|"
    "gardens|gdns|loop|parkway|pkwy|track|trail|row|quay|freeway|alley|arcade|glade|glen|green|ridge|vale|view|heights|hts|outlook"
)
# Types that are plain words too: only a capital tells `Ocean View` from `a view`.
_WORDLIKE = token_set(
    "place close way rise square walk loop track trail row glade glen green ridge vale view heights outlook court drive"
)
_NOT_IN_STREETS = token_set(
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
_CUES = token_set("in at near from around suburb of to")
_SUBURB_CUES = token_set("in near around suburb")


def addresses(tokenized: TokenizedText) -> Iterator[Entity]:
    """Number and street, as written. Suburb and postcode after it are finds of their own."""
    for pattern in (_ADDRESS, _BOX):
        for match in pattern.finditer(tokenized.lower):
            if _is_street(tokenized, *match.span()):
                yield _entity(
                    "address",
                    tidy(tokenized.text[match.start() : match.end()]),
                    tokenized,
                    *match.span(),
                    80,
                )
    for match in _BARE.finditer(tokenized.smooth):
        if match[1].split()[1].lower() not in NEVER_NAMES:
            yield _entity(
                "address",
                tidy(tokenized.text[match.start(1) : match.end(1)]),
                tokenized,
                *match.span(1),
                58,
            )


def _is_street(tokenized: TokenizedText, start: int, end: int) -> bool:
    *parts, last = tokenized.smooth[start:end].split()
    if last.lower() in _WORDLIKE and not parts[-1][:1].isupper():
        return False
    return (
        not _NOT_IN_STREETS.intersection(part.lower() for part in parts[:-1] if part)
        or parts[-1].lower() == "the"
    )


def postcodes(tokenized: TokenizedText, suburbs: list[Entity]) -> Iterator[Entity]:
    """Four digits that a word, a state or a suburb before them makes a postcode."""
    for match in _POSTCODE.finditer(tokenized.lower):
        yield _entity("postcode", match[1], tokenized, *match.span(1), 71)
    for suburb in suburbs:
        after = _FOUR.match(tokenized.lower, suburb.end)
        if after:
            yield _entity("postcode", after[1], tokenized, *after.span(1), 71)


def suburbs(tokenized: TokenizedText, lexicon: Lexicon) -> Iterator[Entity]:
    """Places of the vocabulary, one typo forgiven after `in` and the like; else what is capitalised after `in`."""
    index, guesses = 0, 0
    while index < len(tokenized.tokens):
        match = lexicon.suburbs.at(tokenized.tokens, index)
        if match and _unbroken(tokenized, index, match[1]):
            yield _listed_suburb(tokenized, lexicon, index, *match)
            index += match[1]
            continue
        if guesses < _MAX_GUESSES and _may_be_suburb(tokenized, index):
            guesses += 1
            yield from _guessed(tokenized, lexicon, index)
        index += 1


def _unbroken(tokenized: TokenizedText, index: int, count: int) -> bool:
    return all(tokenized.joined(at) for at in range(index + 1, index + count))


def _listed_suburb(
    tokenized: TokenizedText, lexicon: Lexicon, index: int, suburb: str, count: int
) -> Entity:
    start, end = tokenized.tokens[index].start, tokenized.tokens[index + count - 1].end
    certainty = 68 if _cued(tokenized, index, _SUBURB_CUES) else 64
    if certainty == 64 and _beside_name(tokenized, lexicon, index, count):
        certainty = 38
    return _entity("suburb", suburb, tokenized, start, end, certainty)


def _beside_name(tokenized: TokenizedText, lexicon: Lexicon, index: int, count: int) -> bool:
    """Return whether it is part of a name, such as `Clayton Smith` or `Mr Preston`."""
    after = index + count
    if tokenized.shouted or after >= len(tokenized.tokens) or not tokenized.joined(after):
        return False
    token = tokenized.tokens[after]
    recognized = (
        token.lower in NEVER_NAMES
        or token.lower in lexicon.pack_tokens
        or lexicon.suburbs.at(tokenized.tokens, after)
    )
    return token.capital and token.text.isalpha() and not token.text.isupper() and not recognized


def _may_be_suburb(tokenized: TokenizedText, index: int) -> bool:
    token = tokenized.tokens[index]
    if not token.text.isalpha() or token.lower in NEVER_NAMES:
        return False
    return _cued(tokenized, index, _CUES) or _after_comma_or_digit(tokenized, index)


def _guessed(tokenized: TokenizedText, lexicon: Lexicon, index: int) -> Iterator[Entity]:
    typo = _mistyped(tokenized, lexicon, index)
    if typo:
        yield typo
    elif _cued(tokenized, index, frozenset({"in"})) and tokenized.joined(index):
        yield from _capitalised(tokenized, lexicon, index)


def _mistyped(tokenized: TokenizedText, lexicon: Lexicon, index: int) -> Entity | None:
    for count in range(min(lexicon.suburbs.longest, 4), 0, -1):
        tokens = tokenized.tokens[index : index + count]
        if len(tokens) < count or not _unbroken(tokenized, index, count):
            continue
        if count == 1 and (tokens[0].lower in lexicon.pack_tokens or not tokens[0].text.isalpha()):
            continue
        suburb = lexicon.suburbs.nearly(tokenized.smooth[tokens[0].start : tokens[-1].end])
        if suburb:
            return _entity("suburb", suburb, tokenized, tokens[0].start, tokens[-1].end, 62)
    return None


def _capitalised(tokenized: TokenizedText, lexicon: Lexicon, index: int) -> Iterator[Entity]:
    last = index
    while (
        last < len(tokenized.tokens) and last < index + 3 and _placelike(tokenized, lexicon, last)
    ):
        last += 1
        if last < len(tokenized.tokens) and not tokenized.joined(last):
            break
    if last > index and not tokenized.shouted:
        start, end = tokenized.tokens[index].start, tokenized.tokens[last - 1].end
        yield _entity("suburb", tidy(tokenized.text[start:end]), tokenized, start, end, 61)


def _placelike(tokenized: TokenizedText, lexicon: Lexicon, index: int) -> bool:
    token = tokenized.tokens[index]
    recognized = token.lower in NEVER_NAMES or token.lower in lexicon.pack_tokens
    return (
        token.capital
        and len(token.text) > 2
        and token.text.replace("'", "").replace("-", "").isalpha()
        and not recognized
    )


def _cued(tokenized: TokenizedText, index: int, cues: frozenset[str]) -> bool:
    return (
        index > 0
        and tokenized.tokens[index - 1].lower in cues
        and tokenized.gap(index).strip(" :") == ""
    )


def _after_comma_or_digit(tokenized: TokenizedText, index: int) -> bool:
    if index == 0:
        return False
    return tokenized.gap(index).strip() == "," or tokenized.tokens[index - 1].text[-1:].isdigit()


def _entity(
    kind: str, value: str, tokenized: TokenizedText, start: int, end: int, sure: int
) -> Entity:
    return Entity(kind, value, tokenized.text[start:end], start, end, sure)

"""Numbers in digits and in words, and sums of money."""

from __future__ import annotations

import re
from collections.abc import Iterator

from podium.flows.operator.judgement.fields.entity import Entity
from podium.flows.operator.judgement.fields.passage import Passage

_UNITS = "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen"
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety"
COUNTED = {word: value for value, word in enumerate(_UNITS.split())} | {
    word: 20 + 10 * step for step, word in enumerate(_TENS.split())
}
_SCALES = {"hundred": 100, "thousand": 1_000, "grand": 1_000, "million": 1_000_000}
_SUFFIXES = {"k": 1_000, "m": 1_000_000, "mil": 1_000_000, "mill": 1_000_000} | _SCALES

_SPOKEN = "|".join(sorted([*COUNTED, *_SCALES], key=len, reverse=True))
_IN_WORDS = re.compile(
    rf"(?<![\w\-])(?:an? (?=hundred|thousand|million|grand))?(?:{_SPOKEN})(?:[ \-](?:and )?(?:{_SPOKEN}))*(?![\w\-])"
)
_DOLLAR_WORD = re.compile(
    r" ?(?:dollars?|bucks|aud|aussie dollars)(?: (?:and )?(\d\d?) cents)?(?!\w)"
)
_GRAND = re.compile(r"grand$")

_FIGURE = r"\d[\d,]{0,15}(?:\.\d{1,4})?"
_SIZE = r"(?: ?(?P<size>k|m|mill?|million|thousand|hundred|grand)(?!\w))?"
_SIGNED = re.compile(
    rf"(?<![\w$.])(?P<minus>-(?=[a$]))?(?:(?:au?d?|usd?|nzd?)? ?\$|aud ?\$?) ?(?P<figure>{_FIGURE}){_SIZE}(?: ?aud?)?(?![\d,]*\d)",
    re.IGNORECASE,
)
_NAMED = re.compile(
    rf"(?<![\w$.,\-])(?P<figure>{_FIGURE}){_SIZE} ?(?:dollars?|bucks|aud)(?: (?:and )?(?P<cents>\d\d?) cents)?(?!\w)"
)
_SHORT = re.compile(r"(?<![\w$.,\-])(?P<figure>\d{1,4}(?:\.\d{1,3})?)(?: ?(?P<size>k|grand))(?!\w)")
_PLAIN = re.compile(
    r"(?<![\w$#.,])(?P<figure>-?\d[\d,]{0,15}(?:\.\d{1,6})?)(?:x|m2|sqm|mm|cm|m|km|hrs?|h|kg|lm|%)?(?![\w.]*\w)(?! (?:hundred|thousand|million|grand)\b)"
)
_GROUPED = re.compile(r"\d{1,3}(?:,\d{3})+|\d+")


def sums_of_money(passage: Passage) -> Iterator[Entity]:
    """Amounts as dollars: `$1,250.50`, `1250 dollars`, `1.2k`, `two thousand dollars`."""
    text = passage.lower
    for pattern, certainty in ((_SIGNED, 90), (_NAMED, 88), (_SHORT, 70)):
        for found in pattern.finditer(text):
            amount = _amount(found)
            if amount is not None:
                yield _entity("money", amount, passage, found.start(), found.end(), certainty)
    for found in _spoken(text):
        yield from _spoken_sum(passage, found)


def _spoken_sum(passage: Passage, found: re.Match[str]) -> Iterator[Entity]:
    value = number_in_words(found[0])
    money = _DOLLAR_WORD.match(passage.lower, found.end())
    if value is not None and (money or _GRAND.search(found[0])):
        cents = int(money[1]) / 100 if money and money[1] else 0
        end = money.end() if money else found.end()
        yield _entity("money", _whole(value + cents), passage, found.start(), end, 88)


def numbers(passage: Passage) -> Iterator[Entity]:
    """Numbers by themselves. Ids, dates and amounts are found by others, with more certainty."""
    for found in _PLAIN.finditer(passage.lower):
        value = figure(found["figure"])
        if value is not None:
            yield _entity("number", value, passage, found.start(), found.end(), 10)
    for found in _spoken(passage.lower):
        spoken = number_in_words(found[0])
        if spoken is not None:
            yield _entity("number", spoken, passage, found.start(), found.end(), 9)


def _spoken(text: str) -> Iterator[re.Match[str]]:
    """Numbers in words; of `5 grand` the second word is no number of its own."""
    for found in _IN_WORDS.finditer(text):
        after_figure = text[max(0, found.start() - 2) : found.start()].strip().isdigit()
        if not after_figure or found[0].split()[0] not in _SCALES:
            yield found


def _amount(found: re.Match[str]) -> int | float | None:
    groups = found.groupdict()
    value = figure(groups["figure"])
    if value is None:
        return None
    sign = -1 if groups.get("minus") else 1
    cents = int(groups.get("cents") or 0) / 100
    return _whole(sign * round(value * _SUFFIXES.get(groups.get("size") or "", 1) + cents, 4))


def figure(text: str) -> int | float | None:
    """The number written in digits; None where its commas part no thousands."""
    sign = -1 if text.startswith("-") else 1
    whole, _, part = text.lstrip("-").rstrip(",").partition(".")
    if not _GROUPED.fullmatch(whole):
        return None
    return sign * _whole(float(f"{whole.replace(',', '')}.{part or 0}"))


def number_in_words(text: str) -> int | None:
    """`two thousand five hundred` → 2500. None when the words make no number."""
    total = part = 0
    seen = False
    for word in text.replace("-", " ").split():
        if word in {"a", "an", "and"}:
            continue
        if word in COUNTED:
            if seen and part % 10 and part % 100 < 20 and COUNTED[word] < 100 and part < 100:
                return None
            part += COUNTED[word]
        elif word == "hundred":
            part = (part or 1) * 100
        else:
            total += (part or 1) * _SCALES[word]
            part = 0
        seen = True
    return total + part if seen else None


def _whole(value: float) -> int | float:
    return int(value) if value == int(value) else value


def _entity(
    kind: str, value: int | float, passage: Passage, start: int, end: int, sure: int
) -> Entity:
    return Entity(kind, value, passage.text[start:end], start, end, sure)

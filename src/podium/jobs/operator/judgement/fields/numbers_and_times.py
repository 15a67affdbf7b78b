"""Numbers in digits and words, sums of money, times of day and timestamps."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime

from podium.jobs.operator.judgement.fields.tokenized_text import Entity, TokenizedText

_UNITS = "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen"
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety"
COUNTED = {name: value for value, name in enumerate(_UNITS.split())} | {
    name: 20 + 10 * step for step, name in enumerate(_TENS.split())
}
_SCALES = {"hundred": 100, "thousand": 1_000, "grand": 1_000, "million": 1_000_000}
_SUFFIXES = {"k": 1_000, "m": 1_000_000, "mil": 1_000_000, "mill": 1_000_000} | _SCALES

_SPOKEN = "|".join(sorted([*COUNTED, *_SCALES], key=len, reverse=True))
_SPELLED_NUMBER = re.compile(
    rf"(?<![\w\-])(?:an? (?=hundred|thousand|million|grand))?(?:{_SPOKEN})(?:[ \-](?:and )?(?:{_SPOKEN}))*(?![\w\-])"
)
_DOLLARS = re.compile(r" ?(?:dollars?|bucks|aud|aussie dollars)(?: (?:and )?(\d\d?) cents)?(?!\w)")
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


def sums_of_money(tokenized: TokenizedText) -> Iterator[Entity]:
    """Amounts as dollars: `$1,250.50`, `1250 dollars`, `1.2k`, `two thousand dollars`."""
    text = tokenized.lower
    for pattern, certainty in ((_SIGNED, 90), (_NAMED, 88), (_SHORT, 70)):
        for match in pattern.finditer(text):
            amount = _amount(match)
            if amount is not None:
                yield _entity("money", amount, tokenized, match.start(), match.end(), certainty)
    for match in _spoken(text):
        yield from _spoken_sum(tokenized, match)
    yield from _mixed_sums(tokenized)


_AND_A_HALF = re.compile(
    rf"(?<![\w.])(?P<whole>\d{{1,3}}|{'|'.join(COUNTED)}) and a half (?P<size>k|grand|thousand|million|m)(?!\w)"
)
_HUNDREDS = re.compile(
    r"(?<![\w.,$])(?P<hundreds>\d{1,2}) hundred(?: and (?P<rest>\d{1,2}))?(?!\w)(?! (?:and|thousand))"
)


def _mixed_sums(tokenized: TokenizedText) -> Iterator[Entity]:
    """`two and a half k`, `8 hundred and 90`."""
    for match in _AND_A_HALF.finditer(tokenized.lower):
        written = match["whole"]
        value = (int(written) if written.isdigit() else COUNTED[written]) + 0.5
        amount = _whole(value * _SUFFIXES[match["size"]])
        yield _entity("money", amount, tokenized, match.start(), match.end(), 89)
    for match in _HUNDREDS.finditer(tokenized.lower):
        amount = 100 * int(match["hundreds"]) + int(match["rest"] or 0)
        yield _entity("number", amount, tokenized, match.start(), match.end(), 68)


def _spoken_sum(tokenized: TokenizedText, match: re.Match[str]) -> Iterator[Entity]:
    value = spelled_number(match[0])
    money = _DOLLARS.match(tokenized.lower, match.end())
    if value is not None and (money or _GRAND.search(match[0])):
        cents = int(money[1]) / 100 if money and money[1] else 0
        end = money.end() if money else match.end()
        yield _entity("money", _whole(value + cents), tokenized, match.start(), end, 88)


def numbers(tokenized: TokenizedText) -> Iterator[Entity]:
    """Numbers by themselves. Ids, dates and amounts are found by others, with more certainty."""
    for match in _PLAIN.finditer(tokenized.lower):
        value = figure(match["figure"])
        if value is not None:
            yield _entity("number", value, tokenized, match.start(), match.end(), 10)
    for match in _spoken(tokenized.lower):
        spoken = spelled_number(match[0])
        if spoken is not None:
            yield _entity("number", spoken, tokenized, match.start(), match.end(), 9)


def _spoken(text: str) -> Iterator[re.Match[str]]:
    """Numbers in words; of `5 grand` the second word is no number of its own."""
    for match in _SPELLED_NUMBER.finditer(text):
        after_figure = text[max(0, match.start() - 2) : match.start()].strip().isdigit()
        if not after_figure or match[0].split()[0] not in _SCALES:
            yield match


def _amount(match: re.Match[str]) -> int | float | None:
    groups = match.groupdict()
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


def spelled_number(text: str) -> int | None:
    """`two thousand five hundred` → 2500. None when the words make no number."""
    total = part = 0
    any_number = False
    for numeral in text.replace("-", " ").split():
        if numeral in {"a", "an", "and"}:
            continue
        if numeral in COUNTED:
            if (
                any_number
                and part % 10
                and part % 100 < 20
                and COUNTED[numeral] < 100
                and part < 100
            ):
                return None
            part += COUNTED[numeral]
        elif numeral == "hundred":
            part = (part or 1) * 100
        else:
            total += (part or 1) * _SCALES[numeral]
            part = 0
        any_number = True
    return total + part if any_number else None


def _whole(value: float) -> int | float:
    return int(value) if value == int(value) else value


def _entity(
    kind: str, value: int | float, tokenized: TokenizedText, start: int, end: int, sure: int
) -> Entity:
    return Entity(kind, value, tokenized.text[start:end], start, end, sure)


_HOURS = "|".join(name for name, value in COUNTED.items() if 1 <= value <= 12)
_HOUR = rf"\d{{1,2}}|{_HOURS}"
_PART = r"(?: ?(?P<half>[ap]\.?m\b\.?)| in the (?P<part>morning|afternoon|arvo|evening)| (?P<night>at night))?"
_CLOCK = re.compile(
    rf"(?<![\w:.$/\-])(?P<hour>\d{{1,2}})[:.](?P<minute>[0-5]\d)(?::[0-5]\d)?(?![\d:%]){_PART}(?![\w:])(?!\.\d)"
)
_WITH_HALF = re.compile(r"(?<![\w:.$,/\-])(?P<hour>\d{1,2}) ?(?P<half>[ap]\.?m\b\.?)(?!\w)")
_PAST = re.compile(
    rf"\b(?P<minutes>half|quarter|\d{{1,2}}|five|ten|twenty|twenty[ \-]five)(?: minutes?)?[ \-](?P<way>past|to)[ \-](?P<hour>{_HOUR})\b{_PART}"
)
_OCLOCK = re.compile(rf"\b(?P<hour>{_HOUR}) ?o'? ?clock\b{_PART}")
_IN_PART = re.compile(
    rf"(?<![\w:.$/\-])(?P<hour>{_HOUR}) (?:in the (?P<part>morning|afternoon|arvo|evening)|(?P<night>at night))\b"
)
_AT = re.compile(
    rf"\bat (?P<hour>\d{{1,2}}|{_HOURS})(?= (?:on|sharp|in the|at night|tomorrow|today|this|next)\b| ?[.,;!?)]?(?: |$))(?! ?[.,]?\d)(?! [a-z]+ (?:st|street|rd|road|ave|avenue|ct|court|dr|drive)\b){_PART}"
)
_AFTER_AT = re.compile(
    r" (?!on\b|sharp\b|in the\b|tomorrow\b|today\b|this\b|next\b|with\b|for\b|to\b|please\b|and\b|at night\b|mon|tue|wed|thu|fri|sat|sun)\w"
)
_NAMED_TIMES = re.compile(r"\b(noon|midday|midnight)\b")
_ISH = re.compile(
    r"(?<![\w:.$,/\-])(?P<hour>\d{1,2})(?::(?P<minute>[0-5]\d))?(?P<half>[ap]m)?[ -]?ish\b"
)
_BARE = re.compile(
    r"\b(?:[a-z]*day|mon|tues?|weds?|thu(?:rs?)?|fri|sat|sun|tmrw|tomorrow|\d{2}) (?P<time>(?P<hour>[01]?\d|2[0-3])[.:]?(?P<minute>[0-5]\d))(?![\w$:/-]|[.,]\d)"
)
"""`mon 930`, `12.12.26 0730`: figures right behind a day."""
_MILITARY = re.compile(r"(?<![\w:.$,/\-])([01]\d|2[0-3])([0-5]\d) ?h(?:ou)?rs?\b")
_TIMESTAMP = re.compile(
    r"(?<![\w\-])\d{4}-\d\d-\d\dt\d\d:\d\d(?::\d\d(?:\.\d{1,6})?)?(?:z|[+\-]\d\d:?\d\d)?(?![\w:])"
)


def times(tokenized: TokenizedText) -> Iterator[Entity]:
    """Times as HH:MM. Hours from one to six without am or pm are those of the afternoon: people work then."""
    text = tokenized.lower
    for match in _CLOCK.finditer(text):
        if match["half"] or ":" in match[0] or _is_time(text, match.start()):
            yield from _time_entity(
                tokenized, match, _hour(match), int(match["minute"]), 80 if ":" in match[0] else 72
            )
    for match in _WITH_HALF.finditer(text):
        yield from _time_entity(tokenized, match, _hour(match), 0, 80)
    for match in _PAST.finditer(text):
        yield from _past(tokenized, match)
    for match in _OCLOCK.finditer(text):
        yield from _time_entity(tokenized, match, _hour(match), 0, 78)
    for match in _IN_PART.finditer(text):
        yield from _time_entity(tokenized, match, _hour(match), 0, 70)
    for match in _AT.finditer(text):
        if not _AFTER_AT.match(text, match.end()):
            yield from _time_entity(tokenized, match, _hour(match), 0, 55, skip=3)
    for match in _MILITARY.finditer(text):
        yield from _time_entity(tokenized, match, int(match[1]), int(match[2]), 78)
    for match in _ISH.finditer(text):
        yield from _time_entity(tokenized, match, _hour(match), int(match["minute"] or 0), 70)
    for match in _BARE.finditer(text):
        hour = int(match["hour"])
        if match[0][0].isdigit() and not match["hour"].startswith("0"):
            continue
        hour += 12 if len(match["hour"]) == 1 and hour < 7 else 0
        start, end = match.span("time")
        value = f"{hour:02}:{match['minute']}"
        yield Entity("time", value, tokenized.text[start:end], start, end, 71)
    for match in _NAMED_TIMES.finditer(text):
        yield from _time_entity(tokenized, match, 0 if match[1] == "midnight" else 12, 0, 75)


def timestamps(tokenized: TokenizedText) -> Iterator[Entity]:
    """Moments in ISO 8601. Without an offset they are local, as `now` is."""
    for match in _TIMESTAMP.finditer(tokenized.lower):
        try:
            timestamp = datetime.fromisoformat(match[0].upper())
        except ValueError:
            continue
        if timestamp.tzinfo is None:
            timestamp = timestamp.replace(tzinfo=tokenized.now.tzinfo)
        start, end = match.span()
        yield Entity("datetime", timestamp.isoformat(), tokenized.text[start:end], start, end, 92)


def _is_time(text: str, start: int) -> bool:
    return text[max(0, start - 3) : start] == "at " or text[max(0, start - 6) : start] == "about "


def _hour(match: re.Match[str]) -> int:
    groups = match.groupdict()
    written = groups["hour"]
    hour = int(written) if written.isdigit() else COUNTED[written]
    half = (groups.get("half") or "")[:1] or {"morning": "a"}.get(groups.get("part") or "", "")
    if not half and (groups.get("part") or groups.get("night")):
        half = "p"
    if half:
        return -1 if not 1 <= hour <= 12 else hour % 12 + (12 if half == "p" else 0)
    return hour + 12 if 1 <= hour <= 6 and not written.startswith("0") else hour


def _past(tokenized: TokenizedText, match: re.Match[str]) -> Iterator[Entity]:
    minutes_text = match["minutes"].replace("-", " ")
    minutes = (
        {"half": 30, "quarter": 15, "twenty five": 25}.get(minutes_text)
        or COUNTED.get(minutes_text)
        or (int(minutes_text) if minutes_text.isdigit() else 0)
    )
    hour = _hour(match)
    if (
        hour < 0
        or not 0 < minutes < 60
        or (minutes_text.isdigit() and match["way"] == "to" and minutes % 5)
    ):
        return
    if match["way"] == "to":
        hour, minutes = (hour - 1) % 24, 60 - minutes
    # `five to six` may as well be a stretch; half and quarter are times.
    yield from _time_entity(
        tokenized, match, hour, minutes, 78 if minutes_text in {"half", "quarter"} else 50
    )


def _time_entity(
    tokenized: TokenizedText, match: re.Match[str], hour: int, minute: int, sure: int, skip: int = 0
) -> Iterator[Entity]:
    if 0 <= hour <= 23:
        start, end = match.start() + skip, match.end()
        yield Entity("time", f"{hour:02}:{minute:02}", tokenized.text[start:end], start, end, sure)

"""Dates in figures and in words, counted from now. Day before month: 3/4 is the third of April."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from datetime import date, datetime, timedelta
from functools import cache

from podium.flows.operator.judgement.fields.calendar_words import (
    COUNT,
    MONTHS,
    ORDINAL,
    SHORT_WEEKDAYS,
    WEEKDAYS,
    count_of,
    day_in,
    day_number,
    full_year,
    later,
    monday_of,
    month_of,
    months_later,
    nearest,
    weekday_after,
    weekday_before,
    weekday_of,
    weekday_of_next_week,
)
from podium.flows.operator.judgement.fields.entity import Entity
from podium.flows.operator.judgement.fields.passage import Passage

Match = re.Match[str]
Reader = Callable[[Match, date, bool], date | None]
"""A match, today and whether the past is meant → the day."""

_DAY = rf"\d{{1,2}}(?:st|nd|rd|th)?|{ORDINAL}"
_ANY_WEEKDAY = rf"{WEEKDAYS}|{SHORT_WEEKDAYS}"
_TOMORROW = r"tom+or+ow|tomorow|tommorrow|tmrw|tmr|tmw|tomoz|2moro+w?"
_UNIT = r"days?|weeks?|fortnights?|months?|years?"


def _iso(found: Match, today: date, past: bool) -> date | None:
    return day_in(int(found[1]), int(found[2]), int(found[3]))


def _figures(found: Match, today: date, past: bool) -> date | None:
    return day_in(full_year(found[4]), int(found[3]), int(found[1]))


def _day_and_month(found: Match, today: date, past: bool) -> date | None:
    return nearest(int(found[1]), int(found[2]), today, past) if 0 < int(found[2]) < 13 else None


def _named(found: Match, today: date, past: bool) -> date | None:
    day, month = day_number(found["day"]), month_of(found["month"])
    if found["year"]:
        return day_in(full_year(found["year"]), month, day)
    return nearest(day, month, today, past)


def _weekday(found: Match, today: date, past: bool) -> date | None:
    weekday, which, after = weekday_of(found["weekday"]), found["which"] or "", found["after"] or ""
    if which.startswith(("last", "past", "previous")) or (past and not which and not after):
        return weekday_before(today, weekday)
    if which.startswith("next"):
        return weekday_of_next_week(today, weekday)
    weeks = 1 if found["early"] or "week" in after or "next" in after else 2 if after else 0
    return later(weekday_after(today, weekday), weeks, "weeks")


def _near(found: Match, today: date, past: bool) -> date | None:
    word = found[0]
    if word.startswith("yesterday"):
        days = -1
    elif "before" in word:
        days = -2
    elif "after" in word:
        days = 2
    else:
        days = 0 if word.startswith(("to-day", "today", "tonight", "this")) else 1
    return later(today, days, "days")


def _ahead(found: Match, today: date, past: bool) -> date | None:
    return later(today, count_of(found["count"]), found["unit"])


def _ago(found: Match, today: date, past: bool) -> date | None:
    return later(today, -count_of(found["count"]), found["unit"])


def _from_day(found: Match, today: date, past: bool) -> date | None:
    start = {"y": -1, "n": 0}.get(found["from"][0], 0 if found["from"] == "today" else 1)
    if re.fullmatch(_ANY_WEEKDAY, found["from"]):
        first: date | None = weekday_after(today, weekday_of(found["from"]))
    else:
        first = later(today, start, "days")
    return later(first, count_of(found["count"]), found["unit"]) if first else None


def _edge(found: Match, today: date, past: bool) -> date | None:
    """The end or the start of a week, month or year."""
    shift = {"next": 1, "last": -1, "previous": -1}.get(found["which"] or "", 0)
    ending, unit = found["edge"].startswith("e"), found["unit"]
    if unit == "week":
        monday = monday_of(today) + timedelta(weeks=shift)
        return monday + timedelta(days=4 if ending else 0)
    if unit == "year":
        return day_in(today.year + shift, 12 if ending else 1, 31 if ending else 1)
    if unit != "month":
        return _edge_of_named(month_of(unit), today, past, ending)
    first = months_later(today.replace(day=1), shift)
    return months_later(first, 1) - timedelta(days=1) if ending else first


def _edge_of_named(month: int, today: date, past: bool, ending: bool) -> date | None:
    first = nearest(1, month, today.replace(day=1), past)
    return first and (months_later(first, 1) - timedelta(days=1) if ending else first)


def _month_end(found: Match, today: date, past: bool) -> date | None:
    return months_later(today.replace(day=1), 1) - timedelta(days=1)


def _of_this_month(found: Match, today: date, past: bool) -> date | None:
    day = day_number(found[1])
    for months in range(4):
        first = months_later(today.replace(day=1), -months if past else months)
        such = day_in(first.year, first.month, day)
        if such and (such <= today if past else such >= today):
            return such
    return None


_TABLE: tuple[tuple[str, Reader, int, tuple[str, ...]], ...] = tuple(
    (pattern, reader, certainty, tuple(needles.split()))
    for pattern, reader, certainty, needles in (
        (r"(?<![\w.$\-/])(\d{4})[-/](\d{1,2})[-/](\d{1,2})(?![\d\-/])", _iso, 90, "- /"),
        (r"(?<![\w/.$\-])(\d{1,2})([/.\-])(\d{1,2})\2(\d{4}|\d{2})(?![\w/\-])(?!\.\d)", _figures, 89, "/ . -"),
        (r"(?<![\w/.$\-])(\d{1,2})/(\d{1,2})(?![\w/])(?! ?(?:inch|inches|\"|days?|hours?|of|cup|full|mm)\b)", _day_and_month, 62, "/"),
        (rf"(?<![\w/.,$])(?:(?:{_ANY_WEEKDAY}),? )?(?:the )?(?P<day>{_DAY})(?: of)?[ \-]?(?P<month>{MONTHS})\b\.?(?:,? ?(?P<year>20\d\d)\b)?", _named, 78, "jan feb mar apr may jun jul aug sep oct nov dec"),
        (rf"\b(?:(?:{_ANY_WEEKDAY}),? )?(?P<month>{MONTHS})\.? (?:the )?(?P<day>{_DAY})(?![\w:])(?!\.\d)(?:,? (?P<year>20\d\d)\b)?", _named, 77, "jan feb mar apr may jun jul aug sep oct nov dec"),
        (rf"\b(?:(?P<early>a week (?:on|from)) )?(?:(?P<which>next|this coming|this|last|past|previous|coming|on) )?(?P<weekday>{WEEKDAYS})(?P<after> week\b| fortnight\b| after next\b)?(?!\w)", _weekday, 75, "day"),
        (rf"\b(?P<early>)(?:(?P<which>next|this|last|on|by|before|until|till|due|from) )(?P<weekday>{SHORT_WEEKDAYS})(?P<after> week\b| fortnight\b)?(?!\w)", _weekday, 74, "mon tue wed thu fri sat sun"),
        (rf"\b(?P<early>)(?P<which>)(?P<weekday>{SHORT_WEEKDAYS})(?P<after>)(?= (?:at )?\d{{1,2}}(?:[:.]\d\d)? ?(?:[ap]m\b|$)| (?:arvo|morning|afternoon)\b)", _weekday, 73, "mon tue wed thu fri sat sun"),
        (rf"\b(?:(?:the )?day (?:after (?:{_TOMORROW})|before yesterday)|to-?day|tonight|this (?:morning|arvo|afternoon|evening)|{_TOMORROW}|yesterday)\b", _near, 76, "day to tm 2mo this"),
        (rf"\b(?:in|within) (?P<count>{COUNT}) (?P<unit>{_UNIT})(?:'s?)?(?: time)?\b", _ahead, 76, "day week month year fortnight"),
        (rf"\b(?P<count>{COUNT}) (?P<unit>{_UNIT})(?:'s?)? (?:time\b|from now\b|hence\b)", _ahead, 76, "day week month year fortnight"),
        (rf"\b(?P<count>{COUNT}) (?P<unit>{_UNIT}) (?:from|after) (?P<from>today|{_TOMORROW}|{WEEKDAYS})\b", _from_day, 77, "from after"),
        (rf"\b(?P<count>{COUNT}) (?P<unit>{_UNIT}) ago\b", _ago, 76, "ago"),
        (rf"\b(?:the )?(?P<edge>end|start|beginning) of (?:the )?(?P<which>this|next|last|previous)? ?(?P<unit>month|week|year|{MONTHS})\b", _edge, 77, "of"),
        (r"\b(?:month[ \-]end|eom)\b", _month_end, 75, "month eom"),
        (rf"\b(?:(?:{_ANY_WEEKDAY}),? (?:the )?|the )(\d{{1,2}}(?:st|nd|rd|th))\b(?! (?:of|floor|time|street|st|quote|job|invoice)\b)", _of_this_month, 77, "st nd rd th"),
        (r"(?<=\b(?:on|by) )(\d{1,2}(?:st|nd|rd|th))\b(?! (?:of|floor|time|street|st)\b)", _of_this_month, 70, "st nd rd th"),
    )
)  # fmt: skip


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern)


def dates(passage: Passage, past: bool = False) -> Iterator[Entity]:
    """Days as ISO dates. `past`: a day without a year or week is the last such one, not the next."""
    today = passage.now.date()
    for pattern, reader, certainty, needles in _TABLE:
        # Most patterns have nothing to find in most texts; to see that is quicker than to compile and try them.
        if not any(needle in passage.lower for needle in needles):
            continue
        for found in _compiled(pattern).finditer(passage.lower):
            day = reader(found, today, past)
            if day is not None:
                start, end = _without_preposition(found)
                text = passage.text[start:end]
                yield Entity("date", day.isoformat(), text, start, end, certainty)


def _without_preposition(found: Match) -> tuple[int, int]:
    start, end = found.span()
    first = found[0].split(" ", 1)[0]
    return (start + len(first) + 1 if first in _PREPOSITIONS else start), end


_PREPOSITIONS = {"on", "by", "before", "until", "till", "due", "from"}


def date_in(text: str, now: datetime, past: bool) -> str | None:
    """The day a text means that was found to be a date."""
    found = sorted(
        dates(Passage(text, now), past), key=lambda each: (each.start - each.end, -each.certainty)
    )
    return str(found[0].value) if found else None

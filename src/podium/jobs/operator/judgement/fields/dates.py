"""Dates and periods in figures and words, counted from now. Day before month: 3/4 is the third of April."""

from __future__ import annotations

import calendar
import re
from collections.abc import Callable, Iterator
from datetime import date, datetime, timedelta
from functools import cache

from podium.jobs.operator.judgement.fields.numbers_and_times import COUNTED
from podium.jobs.operator.judgement.fields.tokenized_text import Entity, TokenizedText

MONTHS = r"jan(?:uary)?|feb(?:r?uary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?"
_MONTH_STARTS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")

# With the ways in which they are often mistyped.
WEEKDAYS = r"mon?day|tu(?:es|se|s|ees)day|w(?:ed|en)(?:nes|ens|nse|ns|es|s)day|th(?:urs?|rus|ers|usr)day|fr(?:i|ia)day|firday|sat(?:u|e)?rday|sunday"
SHORT_WEEKDAYS = r"mon|tues?|weds?|thu(?:rs?)?|fri|sat|sun"
_WEEKDAY_STARTS = (("mo",), ("tu",), ("w",), ("th",), ("fr", "fi"), ("sa",), ("su",))

COUNT = r"\d{1,3}|an?(?: couple(?: of)?)?|couple(?: of)?|" + "|".join(
    name for name, value in COUNTED.items() if value
)
_ORDINAL_NAMES = (
    "first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth thirteenth fourteenth fifteenth "
    "sixteenth seventeenth eighteenth nineteenth twentieth twenty-first twenty-second twenty-third twenty-fourth "
    "twenty-fifth twenty-sixth twenty-seventh twenty-eighth twenty-ninth thirtieth thirty-first"
)
_ORDINALS = _ORDINAL_NAMES.split()
ORDINAL = "|".join(
    sorted((ordinal.replace("-", "[ -]") for ordinal in _ORDINALS), key=len, reverse=True)
)


def month_of(name: str) -> int:
    return _MONTH_STARTS.index(name[:3]) + 1


def weekday_of(name: str) -> int:
    """0 is Monday."""
    return next(day for day, starts in enumerate(_WEEKDAY_STARTS) if name.startswith(starts))


def day_number(text: str) -> int:
    """`3`, `3rd` or `third`."""
    figures = "".join(character for character in text if character.isdigit())
    return int(figures) if figures else _ORDINALS.index(text.replace(" ", "-")) + 1


def count_of(text: str) -> int:
    if text.isdigit():
        return int(text)
    return 2 if "couple" in text else COUNTED.get(text, 1)


def day_in(year: int, month: int, day: int) -> date | None:
    """None: there is no such day."""
    try:
        return date(year, month, day)
    except ValueError:
        return None


def full_year(text: str) -> int:
    return int(text) if len(text) == 4 else 2000 + int(text)


def nearest(day: int, month: int, today: date, past: bool) -> date | None:
    """The next such day, today included; the last one where the past is meant."""
    for year in range(today.year, today.year + (-9 if past else 9), -1 if past else 1):
        candidate = day_in(year, month, day)
        if candidate and (candidate <= today if past else candidate >= today):
            return candidate
    return None


def weekday_after(today: date, weekday: int) -> date:
    """The first such weekday after today."""
    return today + timedelta(days=(weekday - today.weekday() - 1) % 7 + 1)


def weekday_before(today: date, weekday: int) -> date:
    return today - timedelta(days=(today.weekday() - weekday - 1) % 7 + 1)


def weekday_of_next_week(today: date, weekday: int) -> date:
    """`next Tuesday` is the one of next week, also when this week's is still to come."""
    return monday_of(today) + timedelta(days=7 + weekday)


def monday_of(day: date) -> date:
    return day - timedelta(days=day.weekday())


def months_later(day: date, months: int) -> date:
    """The same day of another month, or that month's last."""
    total = day.year * 12 + day.month - 1 + months
    year, month = min(max(total // 12, 1), 9999), total % 12 + 1
    return date(year, month, min(day.day, month_length(year, month)))


def month_length(year: int, month: int) -> int:
    return calendar.monthrange(year, month)[1]


def later(day: date, count: int, unit: str) -> date | None:
    """`count` days, weeks, fortnights, months or years after the day."""
    try:
        if unit.startswith(("month", "year")):
            return months_later(day, count * (12 if unit.startswith("year") else 1))
        return day + timedelta(days=count * {"w": 7, "f": 14}.get(unit[0], 1))
    except OverflowError:
        return None


Match = re.Match[str]
Reader = Callable[[Match, date, bool], date | None]
"""A match, today and whether the past is meant → the day."""

_DAY = rf"\d{{1,2}}(?:st|nd|rd|th)?|{ORDINAL}"
_ANY_WEEKDAY = rf"{WEEKDAYS}|{SHORT_WEEKDAYS}"
_TOMORROW = r"tom+or+ow|tomorow|tommorrow|tmrw|tmr|tmw|tomoz|2moro+w?"
_UNIT = r"days?|weeks?|fortnights?|months?|years?"


def _iso(match: Match, today: date, past: bool) -> date | None:
    return day_in(int(match[1]), int(match[2]), int(match[3]))


def _figures(match: Match, today: date, past: bool) -> date | None:
    return day_in(full_year(match[4]), int(match[3]), int(match[1]))


def _day_and_month(match: Match, today: date, past: bool) -> date | None:
    return nearest(int(match[1]), int(match[2]), today, past) if 0 < int(match[2]) < 13 else None


def _named(match: Match, today: date, past: bool) -> date | None:
    day, month = day_number(match["day"]), month_of(match["month"])
    if match["year"]:
        return day_in(full_year(match["year"]), month, day)
    return nearest(day, month, today, past)


def _weekday(match: Match, today: date, past: bool) -> date | None:
    weekday, which, after = weekday_of(match["weekday"]), match["which"] or "", match["after"] or ""
    if not which and match.string[max(0, match.start() - 4) : match.start()] == "the ":
        # `the Friday` is that of a week which was spoken of before.
        return None
    if which.startswith(("last", "past", "previous")) or (past and not which and not after):
        return weekday_before(today, weekday)
    if which.startswith("next"):
        return weekday_of_next_week(today, weekday)
    weeks = 1 if match["early"] or "week" in after or "next" in after else 2 if after else 0
    return later(weekday_after(today, weekday), weeks, "weeks")


def _near(match: Match, today: date, past: bool) -> date | None:
    text = match[0]
    if text.startswith("yesterday"):
        days = -1
    elif "before" in text:
        days = -2
    elif "after" in text:
        days = 2
    else:
        days = 0 if text.startswith(("to-day", "today", "tonight", "this")) else 1
    return later(today, days, "days")


def _ahead(match: Match, today: date, past: bool) -> date | None:
    return later(today, count_of(match["count"]), match["unit"])


def _ago(match: Match, today: date, past: bool) -> date | None:
    return later(today, -count_of(match["count"]), match["unit"])


def _from_day(match: Match, today: date, past: bool) -> date | None:
    start = {"y": -1, "n": 0}.get(match["from"][0], 0 if match["from"] == "today" else 1)
    if re.fullmatch(_ANY_WEEKDAY, match["from"]):
        first: date | None = weekday_after(today, weekday_of(match["from"]))
    else:
        first = later(today, start, "days")
    return later(first, count_of(match["count"]), match["unit"]) if first else None


def _edge(match: Match, today: date, past: bool) -> date | None:
    """The end or the start of a week, month or year."""
    shift = {"next": 1, "last": -1, "previous": -1}.get(match["which"] or "", 0)
    ending, unit = match["edge"].startswith("e"), match["unit"]
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


def _month_end(match: Match, today: date, past: bool) -> date | None:
    return months_later(today.replace(day=1), 1) - timedelta(days=1)


def _of_this_month(match: Match, today: date, past: bool) -> date | None:
    day = day_number(match[1])
    for months in range(4):
        first = months_later(today.replace(day=1), -months if past else months)
        such = day_in(first.year, first.month, day)
        if such and (such <= today if past else such >= today):
            return such
    return None


def _holiday(match: Match, today: date, past: bool) -> date | None:
    new_year = match[0].startswith("new")
    day = nearest(1, 1, today, past) if new_year else nearest(25, 12, today, past)
    return day - timedelta(days=1) if day and match["eve"] else day


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
        (rf"\b(?P<early>)(?P<which>)(?P<weekday>{SHORT_WEEKDAYS})(?P<after> week\b| fortnight\b)?(?= (?:at )?\d{{1,2}}(?:[:.]?\d\d)? ?(?:[ap]m\b|ish\b|$)| (?:arvo|morning|afternoon|first thing|same|with|w|half|quarter)\b|$|,)", _weekday, 73, "mon tue wed thu fri sat sun"),
        (rf"\b(?:(?:the )?day (?:after (?:{_TOMORROW})|before yesterday)|to-?day|tonight|this (?:morning|arvo|afternoon|evening)|{_TOMORROW}|yesterday)\b", _near, 76, "day to tm 2mo this"),
        (r"\b(?:x-?mas|christmas|new year'?s?)(?: (?P<eve>eve)| day)\b", _holiday, 77, "mas year"),
        (rf"\b(?:in|within) (?P<count>{COUNT}) (?P<unit>{_UNIT})(?:'s?)?(?: time)?\b", _ahead, 76, "day week month year fortnight"),
        (rf"\b(?P<count>{COUNT}) (?P<unit>{_UNIT})(?:'s?)? (?:time\b|from now\b|hence\b)", _ahead, 76, "day week month year fortnight"),
        (rf"\b(?P<count>{COUNT}) (?P<unit>{_UNIT}) (?:from|after) (?P<from>today|{_TOMORROW}|{WEEKDAYS}|{SHORT_WEEKDAYS})\b", _from_day, 77, "from after"),
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


def dates(tokenized: TokenizedText, past: bool = False) -> Iterator[Entity]:
    """Days as ISO dates. `past`: a day without a year or week is the last such one, not the next."""
    today = tokenized.now.date()
    for pattern, reader, certainty, needles in _TABLE:
        # Most patterns have nothing to find in most texts; to see that is quicker than to compile and try them.
        if not any(needle in tokenized.lower for needle in needles):
            continue
        for match in _compiled(pattern).finditer(tokenized.lower):
            day = reader(match, today, past)
            if day is not None:
                start, end = _without_preposition(match)
                text = tokenized.text[start:end]
                yield Entity("date", day.isoformat(), text, start, end, certainty)


def _without_preposition(match: Match) -> tuple[int, int]:
    start, end = match.span()
    first = match[0].split(" ", 1)[0]
    return (start + len(first) + 1 if first in _PREPOSITIONS else start), end


_PREPOSITIONS = {"on", "by", "before", "until", "till", "due", "from"}


def date_in(text: str, now: datetime, past: bool) -> str | None:
    """The day a text means that was found to be a date."""
    entities = sorted(
        dates(TokenizedText(text, now), past),
        key=lambda entity: (entity.start - entity.end, -entity.certainty),
    )
    return str(entities[0].value) if entities else None


PeriodMatch = re.Match[str]
Days = tuple[date | None, date | None]

_LENGTHS = {"quarter": 3, "year": 12, "fy": 12, "month": 1}


def _named_unit(match: PeriodMatch, today: date) -> Days:
    shift = {"last": -1, "previous": -1, "next": 1}.get(match[1], 0)
    unit = "fy" if match[2].startswith("fi") else match[2]
    if unit == "week":
        monday = monday_of(today) + timedelta(weeks=shift)
        return monday, monday + timedelta(days=6)
    # The Australian financial year begins in July.
    offset = 6 if unit == "fy" else 0
    length = _LENGTHS[unit]
    start = months_later(
        today.replace(day=1), -((today.month - 1 - offset) % length) + shift * length
    )
    return start, months_later(start, length) - timedelta(days=1)


def _so_far(match: PeriodMatch, today: date) -> Days:
    return today.replace(day=1, month=today.month if match[0].startswith("m") else 1), today


def _last_few(match: PeriodMatch, today: date) -> Days:
    return later(today, -count_of(match[1]), match[2]), today


def _whole_month(match: PeriodMatch, today: date) -> Days:
    month = month_of(match[1])
    first = day_in(int(match[2]), month, 1) if match[2] else nearest(1, month, today, past=True)
    return first, first and first.replace(day=month_length(first.year, first.month))


def _months(match: PeriodMatch, today: date) -> Days:
    month = month_of(match[2])
    last = day_in(int(match[3]), month, 1) if match[3] else nearest(1, month, today, past=True)
    if last is None:
        return None, None
    first = months_later(last, -((month - month_of(match[1])) % 12))
    return first, last.replace(day=month_length(last.year, month))


def _days_of_month(match: PeriodMatch, today: date) -> Days:
    month = month_of(match[3])
    if match[4]:
        return day_in(int(match[4]), month, int(match[1])), day_in(
            int(match[4]), month, int(match[2])
        )
    first = nearest(int(match[1]), month, today, past=True)
    return first, first and day_in(first.year, month, int(match[2]))


@cache
def _compiled_period(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern)


_PERIOD_TABLE: tuple[tuple[str, Callable[[PeriodMatch, date], Days], int, tuple[str, ...]], ...] = tuple(
    (pattern, reader, certainty, tuple(needles.split()))
    for pattern, reader, certainty, needles in (
        (r"\b(last|this|current|previous|next)(?: calendar)? (week|month|quarter|financial year|fin(?:ancial)? ?year|fin ?yr|fy|year)\b", _named_unit, 60, "week month quarter year fy yr"),
        (r"\b(?:month to date|year to date|mtd|ytd)\b", _so_far, 60, "date mtd ytd"),
        (rf"\b(?:last|past|previous) ({COUNT}) (days?|weeks?|fortnights?|months?|years?)\b", _last_few, 61, "last past previous"),
        (rf"\b(?<=in |of |or |ng )({MONTHS})\b(?! ?\d{{1,2}}\b)(?: (20\d\d)\b)?", _whole_month, 59, "jan feb mar apr may jun jul aug sep oct nov dec"),
        (rf"(?<![\w/.,$])(\d{{1,2}})(?:st|nd|rd|th)?(?: ?- ?| to | and | until )(?:the )?(\d{{1,2}})(?:st|nd|rd|th)?(?: of)? ({MONTHS})\b(?: (20\d\d)\b)?", _days_of_month, 79, "jan feb mar apr may jun jul aug sep oct nov dec"),
        (rf"\b(?<=om )({MONTHS})\b(?: to | until | through | - |-)({MONTHS})\b(?: (20\d\d)\b)?", _months, 60, "from"),
    )
)  # fmt: skip


def periods(tokenized: TokenizedText) -> Iterator[Entity]:
    """Stretches as {"from": first day, "to": last day}."""
    for pattern, reader, certainty, needles in _PERIOD_TABLE:
        if not any(needle in tokenized.lower for needle in needles):
            continue
        for match in _compiled_period(pattern).finditer(tokenized.lower):
            first, last = reader(match, tokenized.now.date())
            if first and last and first <= last:
                days = {"from": first.isoformat(), "to": last.isoformat()}
                start, end = match.span()
                yield Entity("period", days, tokenized.text[start:end], start, end, certainty)

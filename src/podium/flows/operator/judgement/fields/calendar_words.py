"""Days by the words people have for them, counted from a day."""

from __future__ import annotations

import calendar
from datetime import date, timedelta

from podium.flows.operator.judgement.fields.numbers import COUNTED

MONTHS = r"jan(?:uary)?|feb(?:r?uary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?"
_MONTH_STARTS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")

# With the ways in which they are often mistyped.
WEEKDAYS = r"mon?day|tu(?:es|se|s|ees)day|w(?:ed|en)(?:nes|ens|nse|ns|es|s)day|th(?:urs?|rus|ers|usr)day|fr(?:i|ia)day|firday|sat(?:u|e)?rday|sunday"
SHORT_WEEKDAYS = r"mon|tues?|weds?|thu(?:rs?)?|fri|sat|sun"
_WEEKDAY_STARTS = (("mo",), ("tu",), ("w",), ("th",), ("fr", "fi"), ("sa",), ("su",))

COUNT = r"\d{1,3}|an?(?: couple(?: of)?)?|couple(?: of)?|" + "|".join(
    word for word, value in COUNTED.items() if value
)
_ORDINAL_WORDS = (
    "first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth thirteenth fourteenth fifteenth "
    "sixteenth seventeenth eighteenth nineteenth twentieth twenty-first twenty-second twenty-third twenty-fourth "
    "twenty-fifth twenty-sixth twenty-seventh twenty-eighth twenty-ninth thirtieth thirty-first"
)
_ORDINALS = _ORDINAL_WORDS.split()
ORDINAL = "|".join(sorted((word.replace("-", "[ -]") for word in _ORDINALS), key=len, reverse=True))


def month_of(word: str) -> int:
    return _MONTH_STARTS.index(word[:3]) + 1


def weekday_of(word: str) -> int:
    """0 is Monday."""
    return next(day for day, starts in enumerate(_WEEKDAY_STARTS) if word.startswith(starts))


def day_number(word: str) -> int:
    """`3`, `3rd` or `third`."""
    figures = "".join(letter for letter in word if letter.isdigit())
    return int(figures) if figures else _ORDINALS.index(word.replace(" ", "-")) + 1


def count_of(word: str) -> int:
    if word.isdigit():
        return int(word)
    return 2 if "couple" in word else COUNTED.get(word, 1)


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
        found = day_in(year, month, day)
        if found and (found <= today if past else found >= today):
            return found
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

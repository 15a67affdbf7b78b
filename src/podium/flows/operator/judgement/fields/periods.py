"""Stretches of days, such as `last month` or `1 to 15 October`, for whoever asks with a first and a last day."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from datetime import date, timedelta
from functools import cache

from podium.flows.operator.judgement.fields.calendar_words import (
    COUNT,
    MONTHS,
    count_of,
    day_in,
    later,
    monday_of,
    month_length,
    month_of,
    months_later,
    nearest,
)
from podium.flows.operator.judgement.fields.entity import Entity
from podium.flows.operator.judgement.fields.passage import Passage

Match = re.Match[str]
Days = tuple[date | None, date | None]

_LENGTHS = {"quarter": 3, "year": 12, "financial year": 12, "fy": 12, "month": 1}


def _named_unit(found: Match, today: date) -> Days:
    shift = {"last": -1, "previous": -1, "next": 1}.get(found[1], 0)
    unit = found[2]
    if unit == "week":
        monday = monday_of(today) + timedelta(weeks=shift)
        return monday, monday + timedelta(days=6)
    # The Australian financial year begins in July.
    offset = 6 if unit in {"financial year", "fy"} else 0
    length = _LENGTHS[unit]
    start = months_later(
        today.replace(day=1), -((today.month - 1 - offset) % length) + shift * length
    )
    return start, months_later(start, length) - timedelta(days=1)


def _so_far(found: Match, today: date) -> Days:
    return today.replace(day=1, month=today.month if found[0].startswith("m") else 1), today


def _last_few(found: Match, today: date) -> Days:
    return later(today, -count_of(found[1]), found[2]), today


def _whole_month(found: Match, today: date) -> Days:
    month = month_of(found[1])
    first = day_in(int(found[2]), month, 1) if found[2] else nearest(1, month, today, past=True)
    return first, first and first.replace(day=month_length(first.year, first.month))


def _months(found: Match, today: date) -> Days:
    month = month_of(found[2])
    last = day_in(int(found[3]), month, 1) if found[3] else nearest(1, month, today, past=True)
    if last is None:
        return None, None
    first = months_later(last, -((month - month_of(found[1])) % 12))
    return first, last.replace(day=month_length(last.year, month))


def _days_of_month(found: Match, today: date) -> Days:
    month = month_of(found[3])
    if found[4]:
        return day_in(int(found[4]), month, int(found[1])), day_in(
            int(found[4]), month, int(found[2])
        )
    first = nearest(int(found[1]), month, today, past=True)
    return first, first and day_in(first.year, month, int(found[2]))


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern)


_TABLE: tuple[tuple[str, Callable[[Match, date], Days], int, tuple[str, ...]], ...] = tuple(
    (pattern, reader, certainty, tuple(needles.split()))
    for pattern, reader, certainty, needles in (
        (r"\b(last|this|current|previous|next)(?: calendar)? (week|month|quarter|financial year|fy|year)\b", _named_unit, 60, "week month quarter year fy"),
        (r"\b(?:month to date|year to date|mtd|ytd)\b", _so_far, 60, "date mtd ytd"),
        (rf"\b(?:last|past|previous) ({COUNT}) (days?|weeks?|fortnights?|months?|years?)\b", _last_few, 61, "last past previous"),
        (rf"\b(?<=in |of |or |ng )({MONTHS})\b(?! ?\d{{1,2}}\b)(?: (20\d\d)\b)?", _whole_month, 59, "jan feb mar apr may jun jul aug sep oct nov dec"),
        (rf"(?<![\w/.,$])(\d{{1,2}})(?:st|nd|rd|th)?(?: ?- ?| to | and | until )(?:the )?(\d{{1,2}})(?:st|nd|rd|th)?(?: of)? ({MONTHS})\b(?: (20\d\d)\b)?", _days_of_month, 79, "jan feb mar apr may jun jul aug sep oct nov dec"),
        (rf"\b(?<=om )({MONTHS})\b(?: to | until | through | - |-)({MONTHS})\b(?: (20\d\d)\b)?", _months, 60, "from"),
    )
)  # fmt: skip


def periods(passage: Passage) -> Iterator[Entity]:
    """Stretches as {"from": first day, "to": last day}."""
    for pattern, reader, certainty, needles in _TABLE:
        if not any(needle in passage.lower for needle in needles):
            continue
        for found in _compiled(pattern).finditer(passage.lower):
            first, last = reader(found, passage.now.date())
            if first and last and first <= last:
                days = {"from": first.isoformat(), "to": last.isoformat()}
                start, end = found.span()
                yield Entity("period", days, passage.text[start:end], start, end, certainty)

"""Finds due dates in notes and says when they are."""

import calendar
import re
from datetime import date, timedelta

_DUE = re.compile(
    r"\bdue (?:in (?P<number>\d+) (?P<unit>day|week|month)s?|(?P<day>\d{4}-\d\d-\d\d))\b"
)


def due(note: str, today: date) -> date | None:
    """The first due date in the note. None: there is none."""
    found = _DUE.search(note)
    if found is None:
        return None
    if found["day"]:
        return date.fromisoformat(found["day"])
    number = int(found["number"])
    if found["unit"] == "month":
        return _months_later(today, number)
    return today + timedelta(days=number * (7 if found["unit"] == "week" else 1))


def _months_later(today: date, months: int) -> date:
    year, month = today.year + months // 12, today.month + months % 12
    last = calendar.monthrange(year, month)[1]
    return date(year, month, min(today.day, last))

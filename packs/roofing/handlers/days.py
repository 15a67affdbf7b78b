"""Today's date in the time zone of the business."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from podium.core.errors import ToolBroke
from podium.tools.packs import PackScope


def today(scope: PackScope) -> date:
    return scope.now.astimezone(_zone(scope)).date()


def start_of(day: date, scope: PackScope) -> datetime:
    """The first moment of a day of the business, in UTC."""
    return datetime(day.year, day.month, day.day, tzinfo=_zone(scope)).astimezone(UTC)


def end_of(day: date, scope: PackScope) -> datetime:
    """The last moment of a day of the business, in UTC."""
    return start_of(day + timedelta(days=1), scope) - timedelta(microseconds=1)


def day_of(text: str, what: str) -> date:
    """Raises `ToolBroke` for a day that no calendar has."""
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise ToolBroke(f"{what} {text!r} is not a date; write one such as 2027-03-04") from None


def upcoming(text: str, what: str, scope: PackScope) -> date:
    """Today or a day to come. Raises `ToolBroke` for one that is over, or that no calendar has."""
    day, this_day = day_of(text, what), today(scope)
    if day < this_day:
        raise ToolBroke(f"{what} {day} is in the past, today is {this_day}; give a later day")
    return day


def _zone(scope: PackScope) -> ZoneInfo:
    name = scope.settings.get("ROOFING_TIME_ZONE") or "Australia/Melbourne"
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise ToolBroke(
            f"ROOFING_TIME_ZONE is {name!r}, which this machine does not know; "
            "set one such as Australia/Melbourne"
        ) from None

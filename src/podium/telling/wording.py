"""Small words that every door uses."""

from __future__ import annotations

from datetime import datetime


def counted(number: int, what: str) -> str:
    """`1 receipt`, `2 receipts`."""
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def moment(at: datetime | None) -> str:
    """A point in time as the person's own clock shows it."""
    return at.astimezone().strftime("%Y-%m-%d %H:%M:%S") if at else ""

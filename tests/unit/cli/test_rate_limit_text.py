"""A run that sleeps through a rate limit says so."""

from __future__ import annotations

from datetime import UTC, datetime

from podium.core.events import RunWaiting
from podium.render.event import describe

NOON = datetime(2026, 5, 1, 12, 0, tzinfo=UTC)


def test_rate_limit_is_reported_with_its_end_and_that_nobody_has_to_wait() -> None:
    shown = describe(RunWaiting(signal="timer:rate-limit:act-0", deadline=NOON))
    here = f"{NOON.astimezone():%H:%M}"
    assert shown == f"rate limited until {here}, waiting; Ctrl-C leaves it resumable"


def test_other_waits_are_reported_by_their_names() -> None:
    assert "rate limited" not in describe(RunWaiting(signal="approval:a1", deadline=NOON))

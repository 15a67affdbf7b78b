"""Deadlines in absolute time held against elapsed time, and firing times of schedules."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from cronsim import CronSim, CronSimError

from podium.core.errors import BadInput
from podium.core.work import Schedule
from podium.ports import Clock

MANY_WATCHED = 1_000
"""From so many deadlines on, those whose time has come are forgotten."""


class Deadlines:
    """Tells when a deadline has passed, also after the machine's clock was set back.

    A deadline has passed when its time has come, or when as many monotonic seconds went by as were left of it when
    this process first looked. After a restart only the absolute time counts.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._due: dict[datetime, float] = {}

    def watch(self, deadline: datetime, now: datetime) -> None:
        """Remember how much of it is left; `now` is by the clock that the deadline was made with."""
        if len(self._due) >= MANY_WATCHED:
            self._due = {time: due for time, due in self._due.items() if time > now}
        due = self._clock.monotonic() + (deadline - now).total_seconds()
        self._due.setdefault(deadline, due)

    def seconds_left(self, deadline: datetime, now: datetime) -> float:
        """Seconds until it has passed; zero or less once it has."""
        left = (deadline - now).total_seconds()
        if (due := self._due.get(deadline)) is None:
            return left
        return min(left, due - self._clock.monotonic())

    def passed(self, deadline: datetime, now: datetime) -> bool:
        return self.seconds_left(deadline, now) <= 0

    def horizon(self, now: datetime) -> datetime:
        """The latest deadline that has passed, and `now` at least."""
        passed = [deadline for deadline in self._due if self.passed(deadline, now)]
        return max([now, *passed])


def next_after(schedule: Schedule, timestamp: datetime) -> datetime:
    """The first time after `moment`. Times missed while nobody served are not made up for.

    Raises `BadInput` for a schedule that has neither an interval nor a valid cron expression.
    """
    if schedule.every_seconds is not None:
        return _next_run(schedule, timestamp)
    if schedule.cron is None:
        raise BadInput(f"schedule {schedule.name!r} needs `every_seconds` or `cron`")
    try:
        next_run: datetime = next(CronSim(schedule.cron, timestamp.astimezone(UTC)))
    except (CronSimError, StopIteration) as error:
        raise BadInput(
            f"schedule {schedule.name!r}: {schedule.cron!r} is not a cron expression that ever fires "
            f"({error}); use five fields, such as '*/5 * * * *'"
        ) from error
    return next_run


def _next_run(schedule: Schedule, timestamp: datetime) -> datetime:
    every = schedule.every_seconds or 0.0
    if every <= 0:
        raise BadInput(f"schedule {schedule.name!r}: every_seconds must be greater than 0")
    if schedule.next_at > timestamp:
        return schedule.next_at
    missed = (timestamp - schedule.next_at).total_seconds() // every + 1
    return schedule.next_at + timedelta(seconds=missed * every)

"""When a schedule fires next."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from cronsim import CronSim, CronSimError

from podium.domain.errors import BadInput
from podium.domain.work import Schedule


def next_after(schedule: Schedule, moment: datetime) -> datetime:
    """The first time after `moment`. Times missed while nobody served are not made up for.

    Raises `BadInput` for a schedule that has neither an interval nor a valid cron expression.
    """
    if schedule.every_seconds is not None:
        return _next_beat(schedule, moment)
    if schedule.cron is None:
        raise BadInput(f"schedule {schedule.name!r} needs `every_seconds` or `cron`")
    try:
        found: datetime = next(CronSim(schedule.cron, moment.astimezone(UTC)))
    except (CronSimError, StopIteration) as error:
        raise BadInput(
            f"schedule {schedule.name!r}: {schedule.cron!r} is no cron expression that ever fires "
            f"({error}); five fields are expected, such as '*/5 * * * *'"
        ) from error
    return found


def _next_beat(schedule: Schedule, moment: datetime) -> datetime:
    every = schedule.every_seconds or 0.0
    if every <= 0:
        raise BadInput(f"schedule {schedule.name!r}: every_seconds must be more than 0")
    if schedule.next_at > moment:
        return schedule.next_at
    missed = (moment - schedule.next_at).total_seconds() // every + 1
    return schedule.next_at + timedelta(seconds=missed * every)

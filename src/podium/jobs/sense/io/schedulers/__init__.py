"""Having ticks started by launchd, systemd or cron."""

from podium.jobs.sense.io.schedulers.cron import Cron, line_of
from podium.jobs.sense.io.schedulers.launchd import Launchd, plist_of
from podium.jobs.sense.io.schedulers.schedule import (
    LABEL,
    SHIM,
    Change,
    Machine,
    Schedule,
    Scheduler,
    SchedulerName,
    SchedulerStatus,
)
from podium.jobs.sense.io.schedulers.systemd import Systemd, service_of, timer_of

__all__ = [
    "LABEL",
    "SHIM",
    "Change",
    "Cron",
    "Launchd",
    "Machine",
    "Schedule",
    "Scheduler",
    "SchedulerName",
    "SchedulerStatus",
    "Systemd",
    "line_of",
    "plist_of",
    "service_of",
    "timer_of",
]

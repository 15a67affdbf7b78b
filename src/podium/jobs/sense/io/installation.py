"""Installation of the loop under a scheduler, its removal, and its status."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from podium.app.inventory import Blocker, UninstallCheck
from podium.config.folders import STATE_FOLDER
from podium.core.errors import BadInput, NotPossibleNow, PodiumError
from podium.jobs.sense.io.cron import Cron
from podium.jobs.sense.io.launchd import Launchd
from podium.jobs.sense.io.schedule import (
    HOME,
    Machine,
    Scheduler,
    SchedulerName,
    SchedulerStatus,
    TickSchedule,
)
from podium.jobs.sense.io.systemd import Systemd
from podium.ports import Launcher

SCHEDULERS: tuple[SchedulerName, ...] = ("launchd", "systemd", "cron")
_DATABASE = "PODIUM_DATABASE_URL"


def scheduler(name: SchedulerName, machine: Machine) -> Scheduler:
    """The way of having ticks started that has this name."""
    kinds: Mapping[str, type[Launchd] | type[Systemd] | type[Cron]] = {
        "launchd": Launchd,
        "systemd": Systemd,
        "cron": Cron,
    }
    return kinds[name](machine)


def schedule_of(**fields: Any) -> TickSchedule:
    """A schedule as it was asked for. Raises `BadInput` for what no scheduler can take."""
    try:
        return TickSchedule(**fields)
    except ValidationError as invalid:
        raise BadInput(
            "; ".join(_problem_text(dict(error)) for error in invalid.errors())
        ) from None


def home_in(environ: Mapping[str, str]) -> str | None:
    """The home that a schedule has to name: None where nobody chose one."""
    chosen = environ.get(HOME)
    return str(Path(chosen).expanduser().resolve()) if chosen else None


def machine_in(environ: Mapping[str, str], launcher: Launcher) -> Machine:
    """This machine and its user, as schedulers need them."""
    home = Path(environ.get("HOME") or os.path.expanduser("~"))  # noqa: PTH111 - HOME may be unset
    config_home = environ.get("XDG_CONFIG_HOME", "")
    return Machine(
        launcher=launcher,
        home=home,
        # The specification says that relative values are to be ignored.
        config_home=Path(config_home) if config_home.startswith("/") else home / ".config",
        platform=sys.platform,
        uid=os.getuid(),
    )


def not_written_down(environ: Mapping[str, str]) -> tuple[str, ...]:
    """Return settings of this environment that scheduled ticks will not have, a sentence each."""
    if not environ.get(_DATABASE):
        return ()
    return (
        f"{_DATABASE} is set but not written to the schedule, because it contains a password; scheduled ticks use "
        "the database in .podium/ unless you pass the variable to the scheduler yourself",
    )


async def scheduler_statuses(
    schedule: TickSchedule, machine: Machine
) -> tuple[SchedulerStatus, ...]:
    """Return the status of every scheduler."""
    return tuple([await _status(name, schedule, machine) for name in SCHEDULERS])


async def _status(name: SchedulerName, schedule: TickSchedule, machine: Machine) -> SchedulerStatus:
    try:
        return await scheduler(name, machine).status(schedule)
    except (NotPossibleNow, OSError) as error:
        return SchedulerStatus(scheduler=name, why=str(error))


def _problem_text(error: Mapping[str, Any]) -> str:
    message = str(error["msg"]).removeprefix("Value error, ")
    return f"{'.'.join(map(str, error['loc']))}: {message}"


class ScheduledLoops(UninstallCheck):
    """Schedulers of this machine that start the sense loop keep its project from being removed."""

    async def look_at(self, project: Path) -> tuple[Sequence[Blocker], Sequence[str]]:
        try:
            schedule = schedule_of(root=str(project), program="/bin/true")
        except PodiumError:  # a folder that no scheduler can take
            return (), ()
        machine = machine_in(self.podium.environ, self.podium.launcher)
        schedulers = await scheduler_statuses(schedule, machine)
        is_there = await asyncio.to_thread(project.is_dir)
        where = "there" if is_there else "there, after creating the empty folder"
        blockers = [
            Blocker(
                what=str(project),
                why=f"{status.scheduler} runs its sense loop; run `podium sense uninstall {status.scheduler}` {where}",
                busy=True,
            )
            for status in schedulers
            if status.installed
        ]
        return blockers, _cron_notes(project, schedulers)


def _cron_notes(project: Path, schedulers: Sequence[SchedulerStatus]) -> list[str]:
    """Remind of a line that nobody could look for: crontab needs privileges that children of Podium do not get on Linux."""
    problems = [status.why for status in schedulers if status.scheduler == "cron"]
    unread = any(problem and "not installed" not in problem for problem in problems)
    if not (unread and (project / STATE_FOLDER / "sense").is_dir()):
        return []
    return [
        f"cron: cannot read the crontab; if a line contains {project}, remove it with `crontab -e`"
    ]

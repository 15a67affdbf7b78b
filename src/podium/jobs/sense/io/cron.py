"""cron: one line of the user's table, known by the comment at its end."""

from __future__ import annotations

import shlex
from pathlib import Path

from podium.core.errors import BadInput
from podium.jobs.sense.io.safe_files import make_folder
from podium.jobs.sense.io.schedule import (
    STDERR_LOG,
    STDOUT_LOG,
    CommandOutput,
    InstallChange,
    Machine,
    SchedulerName,
    SchedulerStatus,
    TickSchedule,
)

_MAX_LINE = 990
"""The oldest crons take a thousand characters."""
_NONE_YET = ("no crontab for", "no such file")
TABLE = "crontab"


def line_of(schedule: TickSchedule) -> str:
    """The line, with its newline. Raises `BadInput` for what cron cannot be told."""
    # The root is named once: a line may not be long.
    variables = [
        f"{name}={_from_within(value, schedule.root)}"
        for name, value in schedule.environment.items()
    ]
    command = " ".join(
        (
            *("cd", shlex.quote(schedule.root), "&&", *variables, shlex.quote(schedule.program)),
            *("sense", "--once", "--root", '"$PWD"', f">>{STDOUT_LOG}", f"2>>{STDERR_LOG}"),
            _line_tag(schedule),
        )
    )
    if "\\" in command:
        # Some crons take away one of two backslashes, others do not.
        raise BadInput("cron does not support paths with a backslash; use systemd or launchd")
    line = f"{_minutes(schedule.every_seconds)} {command.replace('%', chr(92) + '%')}\n"
    if len(line.encode()) > _MAX_LINE:
        raise BadInput(
            f"the crontab line would be {len(line.encode())} bytes long, and cron allows {_MAX_LINE}; "
            "use systemd or launchd, or shorter paths"
        )
    return line


class Cron:
    """The table that `crontab` shows and takes. Its other lines stay byte for byte."""

    name: SchedulerName = "cron"

    def __init__(self, machine: Machine) -> None:
        self._machine = machine

    def preview(self, schedule: TickSchedule) -> dict[str, str]:
        return {TABLE: line_of(schedule)}

    async def install(self, schedule: TickSchedule) -> InstallChange:
        line = line_of(schedule)
        table, complaint = await self._table()
        make_folder(Path(schedule.root), "logs")
        if table is None:
            return self._by_hand(complaint, "add this line with `crontab -e`", line)
        others = _without(table, schedule)
        if others and not others.endswith(b"\n"):
            others += b"\n"
        answer = await self._write(others + line.encode())
        if not answer.worked:
            return self._by_hand(answer.complaint, "add this line with `crontab -e`", line)
        return InstallChange(scheduler=self.name, loaded=True, written=(TABLE,))

    async def uninstall(self, schedule: TickSchedule) -> InstallChange:
        table, complaint = await self._table()
        if table is None and "not installed" in complaint:
            return InstallChange(scheduler=self.name)
        if table is None:
            return self._by_hand(
                complaint, "with `crontab -e`, remove the line that ends with", _line_tag(schedule)
            )
        others = _without(table, schedule)
        if others == table:
            return InstallChange(scheduler=self.name)
        answer = await (self._write(others) if others else self._machine.ask("crontab", "-r"))
        if not answer.worked:
            return self._by_hand(
                answer.complaint,
                "with `crontab -e`, remove the line that ends with",
                _line_tag(schedule),
            )
        return InstallChange(scheduler=self.name, removed=(TABLE,))

    async def status(self, schedule: TickSchedule) -> SchedulerStatus:
        table, complaint = await self._table()
        if table is None:
            return SchedulerStatus(scheduler=self.name, where=TABLE, why=complaint)
        installed = _without(table, schedule) != table
        return SchedulerStatus(
            scheduler=self.name,
            installed=installed,
            loaded=installed,
            where=TABLE,
        )

    async def _table(self) -> tuple[bytes | None, str]:
        """The whole table; None, and why, when it cannot be known. Then it must not be written."""
        answer = await self._machine.ask("crontab", "-l")
        if answer.worked:
            return (answer.output, "") if answer.whole else (None, "the crontab is too large")
        if any(message in answer.complaint.lower() for message in _NONE_YET):
            return b"", ""
        return None, answer.complaint

    async def _write(self, table: bytes) -> CommandOutput:
        return await self._machine.ask("crontab", "-", stdin=table)

    def _by_hand(self, complaint: str, what: str, line: str) -> InstallChange:
        # On Linux what Podium starts gains no privileges, and `crontab` lives by those of its group.
        notes = (f"cannot use crontab: {complaint}", f"{what}:")
        return InstallChange(
            scheduler=self.name, done=False, notes=notes, by_hand=line.rstrip("\n")
        )


def _from_within(value: str, root: str) -> str:
    """The value for a shell that stands in the root."""
    if not value.startswith(root):
        return shlex.quote(value)
    rest = value.removeprefix(root)
    return f'"$PWD"{shlex.quote(rest) if rest else ""}'


def _minutes(every_seconds: int) -> str:
    minutes, rest = divmod(every_seconds, 60)
    if rest or minutes < 1 or 60 % minutes:
        raise BadInput(
            f"cron cannot run ticks every {every_seconds} s, only in whole minutes that divide an hour "
            "(60, 300, 600, 1800, …); use systemd or launchd for other intervals"
        )
    return {1: "* * * * *", 60: "0 * * * *"}.get(minutes, f"*/{minutes} * * * *")


def _line_tag(schedule: TickSchedule) -> str:
    return f"# {schedule.name}"


def _without(table: bytes, schedule: TickSchedule) -> bytes:
    tag = f" {_line_tag(schedule)}".encode()
    lines = table.splitlines(keepends=True)
    return b"".join(line for line in lines if not line.rstrip(b"\r\n").endswith(tag))

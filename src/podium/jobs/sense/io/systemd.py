"""systemd: a service and a timer of the user's own manager."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from podium.jobs.sense.io.safe_files import install_file, make_folder, read_installed, remove_file
from podium.jobs.sense.io.schedule import (
    STDERR_LOG,
    STDOUT_LOG,
    CommandOutput,
    InstallChange,
    Machine,
    SchedulerName,
    SchedulerStatus,
    TickSchedule,
    made_folder,
)

HEADER = (
    "# Written by `podium sense install systemd`; `podium sense uninstall systemd` takes it away.\n"
)
_NOT_IN_PROGRAMS = "\\\"'"
"""systemd starts no program whose path holds one of these, however it is quoted."""
_TICK_SECONDS = 1800
"""A tick that takes longer hangs."""


def service_of(schedule: TickSchedule) -> str:
    """The unit that runs one tick."""
    root = schedule.root
    variables = "".join(
        f"Environment={_quoted(f'{k}={v}')}\n" for k, v in schedule.environment.items()
    )
    # 3 waits for a person and 7 finds another tick at work: neither is a failure. Mount namespaces
    # (ProtectSystem and its kin) need privileges that a user's manager lacks, so they are left out.
    return f"""{HEADER}[Unit]
Description=Podium sense tick in {_specifiers(root)}

[Service]
Type=oneshot
WorkingDirectory={_bare(root)}
{variables}ExecStart={_command(schedule)}
SuccessExitStatus=3 7
TimeoutStartSec={_TICK_SECONDS}
StandardOutput=append:{_specifiers(f"{root}/{STDOUT_LOG}")}
StandardError=append:{_specifiers(f"{root}/{STDERR_LOG}")}
NoNewPrivileges=yes
RestrictSUIDSGID=yes
RestrictRealtime=yes
LockPersonality=yes
"""


def timer_of(schedule: TickSchedule) -> str:
    """The unit that starts the other: when it is switched on, and again and again."""
    # A moment after the start of the machine that has passed already means: now.
    return f"""{HEADER}[Unit]
Description=Podium sense tick in {_specifiers(schedule.root)} every {schedule.every_seconds} s

[Timer]
OnBootSec=30
OnUnitActiveSec={schedule.every_seconds}
AccuracySec=5
Unit={schedule.name}.service

[Install]
WantedBy=timers.target
"""


class Systemd:
    """Units in the user's folder, switched on where a manager answers."""

    name: SchedulerName = "systemd"

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self._folder = machine.config_home / "systemd" / "user"

    def preview(self, schedule: TickSchedule) -> dict[str, str]:
        return {str(self._folder / name): text for name, text in _units(schedule).items()}

    async def install(self, schedule: TickSchedule) -> InstallChange:
        folder = made_folder(self._folder)
        backups = [
            install_file(folder, name, text.encode(), is_ours=_is_ours)
            for name, text in _units(schedule).items()
        ]
        make_folder(Path(schedule.root), "logs")
        change = InstallChange(
            scheduler=self.name,
            written=tuple(str(folder / name) for name in _units(schedule)),
            backups=tuple(str(folder / backup) for backup in backups if backup),
        )
        return change.model_copy(update=await self._switch_on(schedule))

    async def uninstall(self, schedule: TickSchedule) -> InstallChange:
        contents = {name: read_installed(self._folder, name) for name in _units(schedule)}
        ours = [name for name, content in contents.items() if content and _is_ours(content)]
        theirs = [name for name in contents if contents[name] is not None and name not in ours]
        if ours:
            await self._switch_off(schedule, ours)
        return InstallChange(
            scheduler=self.name,
            removed=tuple(str(self._folder / name) for name in ours),
            notes=tuple(
                f"{str(self._folder / name)!r} was not written by Podium; not removed"
                for name in theirs
            ),
        )

    async def status(self, schedule: TickSchedule) -> SchedulerStatus:
        where = self._folder / _timer(schedule)
        installed = where.is_file()
        if not installed:
            return SchedulerStatus(scheduler=self.name, where=str(where))
        timer = await self._user("show", _timer(schedule), "--property=ActiveState")
        service = await self._user(
            *("show", f"{schedule.name}.service"),
            "--property=ExecMainStatus,ExecMainExitTimestampMonotonic",
        )
        return SchedulerStatus(
            scheduler=self.name,
            installed=True,
            loaded=_values(timer.text).get("ActiveState") == "active" if timer.worked else None,
            last_exit=_last_exit(_values(service.text)),
            where=str(where),
            why="" if timer.worked else f"cannot reach the systemd user manager: {timer.complaint}",
        )

    async def _switch_on(self, schedule: TickSchedule) -> dict[str, object]:
        timer = _timer(schedule)
        steps = (("daemon-reload",), ("enable", timer), ("restart", timer))
        by_hand = " && ".join(f"systemctl --user {' '.join(step)}" for step in steps)
        asked = await self._user("show", "--property=Version")
        if not asked.worked:
            note = f"cannot reach the systemd user manager ({asked.complaint}); run this where it is available:"
            return {"notes": (note,), "by_hand": by_hand}
        for step in steps:
            answer = await self._user(*step)
            if not answer.worked:
                refused = f"systemctl --user {' '.join(step)}: {answer.complaint}"
                return {"done": False, "notes": (refused, "run this yourself:"), "by_hand": by_hand}
        linger = "it stops when you log out; keep it running with `loginctl enable-linger`"
        return {"loaded": True, "notes": (linger,)}

    async def _switch_off(self, schedule: TickSchedule, units: Sequence[str]) -> None:
        answers = (await self._user("show", "--property=Version")).worked
        if answers:
            await self._user("disable", "--now", _timer(schedule))
        # What switched it on is a link, which goes with the unit also where no manager answers.
        for name in (f"timers.target.wants/{_timer(schedule)}", *units):
            remove_file(self._folder, name)
        if answers:
            await self._user("daemon-reload")

    async def _user(self, *argv: str) -> CommandOutput:
        return await self._machine.ask("systemctl", "--user", *argv)


def _units(schedule: TickSchedule) -> dict[str, str]:
    return {
        f"{schedule.name}.service": service_of(schedule),
        _timer(schedule): timer_of(schedule),
    }


def _is_ours(content: bytes) -> bool:
    return content.startswith(HEADER.encode())


def _timer(schedule: TickSchedule) -> str:
    return f"{schedule.name}.timer"


def _values(text: str) -> dict[str, str]:
    return dict(line.split("=", 1) for line in text.splitlines() if "=" in line)


def _last_exit(values: dict[str, str]) -> int | None:
    """None for a service that never ended: its status is 0 too."""
    if values.get("ExecMainExitTimestampMonotonic", "0") in ("", "0"):
        return None
    status = values.get("ExecMainStatus", "")
    return int(status) if status.isdigit() else None


def _specifiers(text: str) -> str:
    return text.replace("%", "%%")


def _bare(path: str) -> str:
    """A path where quotes mean nothing: its last character must be neither a space nor a backslash."""
    return _specifiers(path if path[-1:].isalnum() else f"{path}/")


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{_specifiers(escaped)}"'


def _command(schedule: TickSchedule) -> str:
    program, *arguments = (schedule.program, "sense", "--once", "--root", schedule.root)
    if set(program) & set(_NOT_IN_PROGRAMS):
        program, *arguments = ("/bin/sh", "-c", 'exec "$0" "$@"', program, *arguments)
    return " ".join((_quoted(program), *map(_argument, arguments)))


def _argument(text: str) -> str:
    """A word of a command, in which `$` would name a variable. The program's own path has none."""
    return _quoted(text.replace("$", "$$"))

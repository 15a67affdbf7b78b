"""launchd: a LaunchAgent that runs the root's shim."""

from __future__ import annotations

import asyncio
import re
import shlex
from pathlib import Path

from podium.core.errors import NotPossibleNow
from podium.core.model import Json
from podium.jobs.sense.io.safe_files import install_file, make_folder, read_installed, remove_file
from podium.jobs.sense.io.schedule import (
    SCHEDULED,
    SHIM,
    STDERR_LOG,
    STDOUT_LOG,
    InstallChange,
    Machine,
    SchedulerName,
    SchedulerStatus,
    TickSchedule,
    made_folder,
)

FOLDER = "LaunchAgents"
_THROTTLE_SECONDS = 5
_TRIES = 5
_LAST_EXIT = re.compile(r"^\s*last exit code = (-?\d+)", re.MULTILINE)


def plist_of(schedule: TickSchedule) -> bytes:
    """The agent's property list."""
    import plistlib  # late: it brings an XML parser

    root = schedule.root
    return plistlib.dumps(
        {
            "Label": schedule.label,
            "ProgramArguments": ["/bin/zsh", f"{root}/{SHIM}"],
            "WorkingDirectory": root,
            "StartInterval": schedule.every_seconds,
            "RunAtLoad": True,
            "ThrottleInterval": _THROTTLE_SECONDS,
            "EnvironmentVariables": schedule.environment,
            "StandardOutPath": f"{root}/{STDOUT_LOG}",
            "StandardErrorPath": f"{root}/{STDERR_LOG}",
        },
        sort_keys=False,
    )


class Launchd:
    """LaunchAgents of one user; on other systems than macOS only the file, beneath the root."""

    name: SchedulerName = "launchd"

    def __init__(self, machine: Machine, *, pause_seconds: float = 1.0) -> None:
        """`pause_seconds` lie between two tries to load what was let go of just now."""
        self._machine = machine
        self._pause_seconds = pause_seconds
        self._loads = machine.platform == "darwin"

    def preview(self, schedule: TickSchedule) -> dict[str, str]:
        base, file = self._plist_location(schedule)
        return {str(base / file): plist_of(schedule).decode()}

    async def install(self, schedule: TickSchedule) -> InstallChange:
        self._must_have_its_shim(schedule)
        base, file = self._plist_location(schedule, make=True)
        self._must_be_free(schedule, base / file, read_installed(base, file))
        content = plist_of(schedule)
        backup = install_file(base, file, content, is_ours=lambda old: _is_ours(old, schedule))
        make_folder(Path(schedule.root), "logs")
        change = InstallChange(
            scheduler=self.name,
            written=(str(base / file),),
            backups=(str(base / backup),) if backup else (),
        )
        return change.model_copy(update=await self._load(schedule, base / file))

    async def uninstall(self, schedule: TickSchedule) -> InstallChange:
        base, file = self._plist_location(schedule)
        content = read_installed(base, file)
        if content is None:
            return InstallChange(scheduler=self.name)
        if not _is_ours(content, schedule):
            note = f"{str(base / file)!r} was not written by Podium for this root; not removed"
            return InstallChange(scheduler=self.name, notes=(note,))
        if self._loads:
            await self._machine.ask("launchctl", "bootout", self._service(schedule))
        remove_file(base, file)
        return InstallChange(scheduler=self.name, removed=(str(base / file),))

    async def status(self, schedule: TickSchedule) -> SchedulerStatus:
        base, file = self._plist_location(schedule)
        content = read_installed(base, file)
        if content is None or not _is_ours(content, schedule):
            why = "" if content is None else "its label is used by a file of another root"
            return SchedulerStatus(scheduler=self.name, where=str(base / file), why=why)
        if not self._loads:
            why = "the file exists, but launchd runs on macOS only"
            return SchedulerStatus(scheduler=self.name, where=str(base / file), why=why)
        answer = await self._machine.ask("launchctl", "print", self._service(schedule))
        match = _LAST_EXIT.search(answer.text)
        return SchedulerStatus(
            scheduler=self.name,
            installed=True,
            loaded=answer.worked,
            last_exit=int(match[1]) if match else None,
            where=str(base / file),
            why="" if answer.worked else answer.complaint,
        )

    async def _load(self, schedule: TickSchedule, file: Path) -> dict[str, object]:
        if not self._loads:
            note = "launchd runs on macOS only; the file was written below the root, but not loaded"
            return {"notes": (note,)}
        # A label that is loaded already cannot be loaded again, and letting go of it takes a moment.
        gone = await self._machine.ask("launchctl", "bootout", self._service(schedule))
        for _ in range(_TRIES if gone.worked else 1):
            answer = await self._machine.ask("launchctl", "bootstrap", self._domain, str(file))
            if answer.worked:
                return {"loaded": True}
            await asyncio.sleep(self._pause_seconds)
        notes = (f"launchctl failed to load it: {answer.complaint}", "run this yourself:")
        by_hand = f"launchctl bootstrap {self._domain} {shlex.quote(str(file))}"
        return {"done": False, "notes": notes, "by_hand": by_hand}

    @property
    def _domain(self) -> str:
        return f"gui/{self._machine.uid}"

    def _service(self, schedule: TickSchedule) -> str:
        return f"{self._domain}/{schedule.label}"

    def _plist_location(self, schedule: TickSchedule, *, make: bool = False) -> tuple[Path, str]:
        """The folder to begin at, and the file beneath it."""
        file = f"{schedule.label}.plist"
        if not self._loads:
            return Path(schedule.root), f"{FOLDER}/{file}"
        folder = self._machine.home / "Library" / FOLDER
        return (made_folder(folder) if make else folder), file

    def _must_have_its_shim(self, schedule: TickSchedule) -> None:
        if not Path(schedule.root, SHIM).is_file():
            raise NotPossibleNow(
                f"{SHIM!r} does not exist in {schedule.root!r}; create it with `podium sense scaffold "
                f"--root {shlex.quote(schedule.root)}`"
            )

    def _must_be_free(self, schedule: TickSchedule, file: Path, before: bytes | None) -> None:
        root = _table(before).get("WorkingDirectory", "") if before else ""
        if root and root != schedule.root:
            raise NotPossibleNow(
                f"{str(file)!r} belongs to {str(root)!r}; pass another --label, or uninstall that one first"
            )


def _is_ours(content: bytes, schedule: TickSchedule) -> bool:
    table = _table(content)
    variables = table.get("EnvironmentVariables")
    scheduled = isinstance(variables, dict) and SCHEDULED in variables
    return scheduled and table.get("WorkingDirectory") == schedule.root


def _table(content: bytes) -> dict[str, Json]:
    """Parse a property list; empty if it is none."""
    import plistlib
    from xml.parsers.expat import ExpatError

    try:
        table = plistlib.loads(content)
    except (plistlib.InvalidFileException, ExpatError, ValueError, TypeError, AttributeError):
        return {}
    return table if isinstance(table, dict) else {}

"""Starts every child process: environment, limits, whole process trees, and the hook door."""

from podium.sandbox.door import HookDoor, HookDoorSettings, TurnDoor, hook_command
from podium.sandbox.launcher import ProcessLauncher
from podium.sandbox.orphans import end_orphans
from podium.sandbox.settings import LauncherSettings

__all__ = [
    "HookDoor",
    "HookDoorSettings",
    "LauncherSettings",
    "ProcessLauncher",
    "TurnDoor",
    "end_orphans",
    "hook_command",
]

"""Starts every child process: environment, limits, whole process trees, and the hook door."""

from podium.sandbox.door import HookDoor, HookDoorSettings, TurnDoor, hook_command
from podium.sandbox.environment import ResolveSecret
from podium.sandbox.launcher import ProcessLauncher
from podium.sandbox.orphans import end_orphans
from podium.sandbox.process import GuardedProcess
from podium.sandbox.settings import LauncherSettings

__all__ = [
    "GuardedProcess",
    "HookDoor",
    "HookDoorSettings",
    "LauncherSettings",
    "ProcessLauncher",
    "ResolveSecret",
    "TurnDoor",
    "end_orphans",
    "hook_command",
]

"""Starts every child process: environment, limits, whole process trees, and the hook door."""

from typing import TYPE_CHECKING

from podium.platform.lazy_exports import export_lazily

if TYPE_CHECKING:
    from podium.sandbox.confining.canary import Mechanism, MechanismTrial
    from podium.sandbox.confining.proxy import serve_network
    from podium.sandbox.confining.toolchains import visible_paths
    from podium.sandbox.environment import LauncherSettings
    from podium.sandbox.guard.limits import can_make_groups
    from podium.sandbox.hook_server import (
        HookServer,
        HookServerSettings,
        TurnHookServer,
        hook_command,
    )
    from podium.sandbox.launcher import ProcessLauncher
    from podium.sandbox.mcp_server import mcp_server_command
    from podium.sandbox.orphans import end_left_server, end_orphans

__all__ = [
    "HookServer",
    "HookServerSettings",
    "LauncherSettings",
    "Mechanism",
    "MechanismTrial",
    "ProcessLauncher",
    "TurnHookServer",
    "can_make_groups",
    "end_left_server",
    "end_orphans",
    "hook_command",
    "mcp_server_command",
    "serve_network",
    "visible_paths",
]

export_lazily(
    __name__,
    {
        "Mechanism": "confining.canary",
        "MechanismTrial": "confining.canary",
        "serve_network": "confining.proxy",
        "visible_paths": "confining.toolchains",
        "HookServer": "hook_server",
        "HookServerSettings": "hook_server",
        "TurnHookServer": "hook_server",
        "hook_command": "hook_server",
        "can_make_groups": "guard.limits",
        "ProcessLauncher": "launcher",
        "mcp_server_command": "mcp_server",
        "end_left_server": "orphans",
        "end_orphans": "orphans",
        "LauncherSettings": "environment",
    },
)

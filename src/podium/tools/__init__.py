"""Tools: the registry, the door every call passes, the toolbox that performs, the built-ins."""

from podium.tools.builtin import builtin_tools, checks_tool, own_tools
from podium.tools.door import GatedDoor
from podium.tools.registry import Registry, Tool
from podium.tools.scope import Handler, ToolScope, in_thread
from podium.tools.toolbox import LocalToolbox, ToolboxSettings
from podium.tools.wish import DoorSettings

__all__ = [
    "DoorSettings",
    "GatedDoor",
    "Handler",
    "LocalToolbox",
    "Registry",
    "Tool",
    "ToolScope",
    "ToolboxSettings",
    "builtin_tools",
    "checks_tool",
    "in_thread",
    "own_tools",
]

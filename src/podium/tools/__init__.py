"""Tools: the registry, the door every call passes, the toolbox that performs, the built-ins."""

from typing import TYPE_CHECKING

from podium.platform.lazy_exports import export_lazily

if TYPE_CHECKING:
    from podium.tools.builtin import builtin_tools, checks_tool, own_tools
    from podium.tools.door import GatedDoor
    from podium.tools.door_call import DoorSettings
    from podium.tools.registry import Registry, Tool
    from podium.tools.scope import Handler, ToolScope
    from podium.tools.toolbox import LocalToolbox, ToolboxSettings

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
    "own_tools",
]

export_lazily(
    __name__,
    {
        "builtin_tools": "builtin",
        "checks_tool": "builtin",
        "own_tools": "builtin",
        "GatedDoor": "door",
        "Registry": "registry",
        "Tool": "registry",
        "Handler": "scope",
        "ToolScope": "scope",
        "LocalToolbox": "toolbox",
        "ToolboxSettings": "toolbox",
        "DoorSettings": "door_call",
    },
)

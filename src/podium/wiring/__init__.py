"""The one package that knows every room: settings in, working objects out."""

from typing import TYPE_CHECKING

from podium.platform.lazy_exports import export_lazily

if TYPE_CHECKING:
    from podium.wiring.closed_door import ClosedDoor
    from podium.wiring.configuration import Configuration, load_configuration, load_readable
    from podium.wiring.flows import FLOWS, FlowBuilder
    from podium.wiring.folders import Folders, find_folders
    from podium.wiring.initialising import init_project
    from podium.wiring.podium import Podium, open_podium
    from podium.wiring.settings import Settings
    from podium.wiring.trust import TrustBook

__all__ = [
    "FLOWS",
    "ClosedDoor",
    "Configuration",
    "FlowBuilder",
    "Folders",
    "Podium",
    "Settings",
    "TrustBook",
    "find_folders",
    "init_project",
    "load_configuration",
    "load_readable",
    "open_podium",
]

export_lazily(
    __name__,
    {
        "ClosedDoor": "closed_door",
        "Configuration": "configuration",
        "load_configuration": "configuration",
        "load_readable": "configuration",
        "FLOWS": "flows",
        "FlowBuilder": "flows",
        "Folders": "folders",
        "find_folders": "folders",
        "init_project": "initialising",
        "Podium": "podium",
        "open_podium": "podium",
        "Settings": "settings",
        "TrustBook": "trust",
    },
)

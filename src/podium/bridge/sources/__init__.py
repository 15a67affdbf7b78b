"""Places that tell something of a system's state: one small class for each kind, all fit the port `Source`."""

from typing import TYPE_CHECKING

from podium.platform.lazy_exports import export_lazily

if TYPE_CHECKING:
    from podium.bridge.sources.command import CommandSource, Fence
    from podium.bridge.sources.figures import FiguresSource
    from podium.bridge.sources.file import FileSource
    from podium.bridge.sources.file_selection import FileSelection
    from podium.bridge.sources.folder import FolderSource
    from podium.bridge.sources.git import GitSource
    from podium.bridge.sources.hiding import hiding
    from podium.bridge.sources.http import HttpSource
    from podium.bridge.sources.kit import SourceKit
    from podium.bridge.sources.log import LogSource
    from podium.bridge.sources.shown_file import shown_file
    from podium.bridge.sources.untrusted import UntrustedSource

__all__ = [
    "CommandSource",
    "Fence",
    "FiguresSource",
    "FileSelection",
    "FileSource",
    "FolderSource",
    "GitSource",
    "HttpSource",
    "LogSource",
    "SourceKit",
    "UntrustedSource",
    "hiding",
    "shown_file",
]

export_lazily(
    __name__,
    {
        "CommandSource": "command",
        "Fence": "command",
        "FiguresSource": "figures",
        "FileSource": "file",
        "FileSelection": "file_selection",
        "FolderSource": "folder",
        "GitSource": "git",
        "hiding": "hiding",
        "HttpSource": "http",
        "SourceKit": "kit",
        "LogSource": "log",
        "shown_file": "shown_file",
        "UntrustedSource": "untrusted",
    },
)

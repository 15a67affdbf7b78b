"""Places that tell something of a system's state: one small class for each kind, all fit the port `Source`."""

from podium.bridge.sources.command import CommandSource, Fence
from podium.bridge.sources.figures import FiguresSource
from podium.bridge.sources.file import FileSource
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

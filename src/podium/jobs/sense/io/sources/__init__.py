"""Places that tell something of a system's state: one small class for each kind, all fit the port `Source`."""

from typing import TYPE_CHECKING

from podium.platform.lazy_exports import export_lazily

if TYPE_CHECKING:
    from podium.jobs.sense.io.sources.asked_sources import (
        CommandSource,
        GetConfinement,
        GitSource,
        HttpSource,
        UntrustedSource,
    )
    from podium.jobs.sense.io.sources.figures_source import FiguresSource
    from podium.jobs.sense.io.sources.file_selection import FileSelection, SourceDeps
    from podium.jobs.sense.io.sources.file_sources import (
        FileSource,
        FolderSource,
        LogSource,
        file_text,
    )

__all__ = [
    "CommandSource",
    "FiguresSource",
    "FileSelection",
    "FileSource",
    "FolderSource",
    "GetConfinement",
    "GitSource",
    "HttpSource",
    "LogSource",
    "SourceDeps",
    "UntrustedSource",
    "file_text",
]

export_lazily(
    __name__,
    {
        "CommandSource": "asked_sources",
        "GetConfinement": "asked_sources",
        "FiguresSource": "figures_source",
        "FileSource": "file_sources",
        "FileSelection": "file_selection",
        "FolderSource": "file_sources",
        "GitSource": "asked_sources",
        "HttpSource": "asked_sources",
        "SourceDeps": "file_selection",
        "LogSource": "file_sources",
        "file_text": "file_sources",
        "UntrustedSource": "asked_sources",
    },
)

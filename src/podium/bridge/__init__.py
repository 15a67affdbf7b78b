"""The files, and other places, by which other systems hand Podium their state and their work."""

from typing import TYPE_CHECKING

from podium.platform.lazy_exports import export_lazily

if TYPE_CHECKING:
    from podium.bridge.inbox import FolderInbox, InboxFolders
    from podium.bridge.installing import SCHEDULERS, last_tick, schedule_of, scheduler, standings
    from podium.bridge.record import FileRecord
    from podium.bridge.scaffold import Scaffolded, write_layout
    from podium.bridge.sources import (
        CommandSource,
        Fence,
        FiguresSource,
        FileSource,
        FolderSource,
        GitSource,
        HttpSource,
        LogSource,
        SourceKit,
    )
    from podium.bridge.tick_files import RecordFiles
    from podium.bridge.trust_book import FileTrustBook

__all__ = [
    "SCHEDULERS",
    "CommandSource",
    "Fence",
    "FiguresSource",
    "FileRecord",
    "FileSource",
    "FileTrustBook",
    "FolderInbox",
    "FolderSource",
    "GitSource",
    "HttpSource",
    "InboxFolders",
    "LogSource",
    "RecordFiles",
    "Scaffolded",
    "SourceKit",
    "last_tick",
    "schedule_of",
    "scheduler",
    "standings",
    "write_layout",
]

export_lazily(
    __name__,
    {
        "FolderInbox": "inbox",
        "InboxFolders": "inbox",
        "SCHEDULERS": "installing",
        "last_tick": "installing",
        "schedule_of": "installing",
        "scheduler": "installing",
        "standings": "installing",
        "FileRecord": "record",
        "Scaffolded": "scaffold",
        "write_layout": "scaffold",
        "CommandSource": "sources",
        "Fence": "sources",
        "FiguresSource": "sources",
        "FileSource": "sources",
        "FolderSource": "sources",
        "GitSource": "sources",
        "HttpSource": "sources",
        "LogSource": "sources",
        "SourceKit": "sources",
        "RecordFiles": "tick_files",
        "FileTrustBook": "trust_book",
    },
)

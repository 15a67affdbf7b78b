"""The files, and other places, by which other systems hand Podium their state and their work."""

from podium.bridge.inbox import FolderInbox, InboxFolders
from podium.bridge.installing import SCHEDULERS, last_tick, schedule_of, scheduler, standings
from podium.bridge.record import FileRecord, RecordFiles
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

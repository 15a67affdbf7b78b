"""The files, and other places, by which other systems hand Podium their state and their work."""

from typing import TYPE_CHECKING

from podium.platform.lazy_exports import export_lazily

if TYPE_CHECKING:
    from podium.jobs.sense.io.inbox import FolderInbox, InboxFolders
    from podium.jobs.sense.io.installation import (
        SCHEDULERS,
        schedule_of,
        scheduler,
        scheduler_statuses,
    )
    from podium.jobs.sense.io.layout import Scaffolded, write_layout
    from podium.jobs.sense.io.record import FileRecord, FileTrustBook, last_tick
    from podium.jobs.sense.io.sources import (
        CommandSource,
        FiguresSource,
        FileSource,
        FolderSource,
        GetConfinement,
        GitSource,
        HttpSource,
        LogSource,
        SourceDeps,
    )
    from podium.jobs.sense.io.tick_files import RecordFiles

__all__ = [
    "SCHEDULERS",
    "CommandSource",
    "FiguresSource",
    "FileRecord",
    "FileSource",
    "FileTrustBook",
    "FolderInbox",
    "FolderSource",
    "GetConfinement",
    "GitSource",
    "HttpSource",
    "InboxFolders",
    "LogSource",
    "RecordFiles",
    "Scaffolded",
    "SourceDeps",
    "last_tick",
    "schedule_of",
    "scheduler",
    "scheduler_statuses",
    "write_layout",
]

export_lazily(
    __name__,
    {
        "FolderInbox": "inbox",
        "InboxFolders": "inbox",
        "SCHEDULERS": "installation",
        "last_tick": "record",
        "schedule_of": "installation",
        "scheduler": "installation",
        "scheduler_statuses": "installation",
        "FileRecord": "record",
        "Scaffolded": "layout",
        "write_layout": "layout",
        "CommandSource": "sources",
        "GetConfinement": "sources",
        "FiguresSource": "sources",
        "FileSource": "sources",
        "FolderSource": "sources",
        "GitSource": "sources",
        "HttpSource": "sources",
        "LogSource": "sources",
        "SourceDeps": "sources",
        "RecordFiles": "tick_files",
        "FileTrustBook": "record",
    },
)

"""The store: events, steps, approvals and receipts in one file; traces; redaction."""

from typing import TYPE_CHECKING

from podium.platform.lazy_exports import export_lazily

if TYPE_CHECKING:
    from podium.journal.anchors import Anchors, copy_heads
    from podium.journal.events import StoreJournal
    from podium.journal.receipts import verify
    from podium.journal.redaction import Redactor
    from podium.journal.sqlite import chain_ends, is_empty, quick_check, run_statuses
    from podium.journal.store import DATABASE_NAME, SqlStore
    from podium.journal.trace import TraceWriter
    from podium.journal.transcripts import FileTranscripts

__all__ = [
    "DATABASE_NAME",
    "Anchors",
    "FileTranscripts",
    "Redactor",
    "SqlStore",
    "StoreJournal",
    "TraceWriter",
    "chain_ends",
    "copy_heads",
    "is_empty",
    "quick_check",
    "run_statuses",
    "verify",
]

export_lazily(
    __name__,
    {
        "Anchors": "anchors",
        "copy_heads": "anchors",
        "StoreJournal": "events",
        "verify": "receipts",
        "Redactor": "redaction",
        "chain_ends": "sqlite",
        "is_empty": "sqlite",
        "quick_check": "sqlite",
        "run_statuses": "sqlite",
        "DATABASE_NAME": "store",
        "SqlStore": "store",
        "TraceWriter": "trace",
        "FileTranscripts": "transcripts",
    },
)

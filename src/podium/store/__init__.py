"""The store: events, steps, approvals and receipts in one file; traces; redaction."""

from typing import TYPE_CHECKING

from podium.platform.lazy_exports import export_lazily

if TYPE_CHECKING:
    from podium.store.receipts import Anchors, copy_heads, verify
    from podium.store.redaction import Redactor
    from podium.store.sqlite import chain_ends, is_empty, quick_check, run_statuses
    from podium.store.sqlite_store import DATABASE_NAME, SqlStore
    from podium.store.store_journal import StoreJournal
    from podium.store.trace import TraceWriter
    from podium.store.transcripts import FileTranscripts

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
        "Anchors": "receipts",
        "copy_heads": "receipts",
        "StoreJournal": "store_journal",
        "verify": "receipts",
        "Redactor": "redaction",
        "chain_ends": "sqlite",
        "is_empty": "sqlite",
        "quick_check": "sqlite",
        "run_statuses": "sqlite",
        "DATABASE_NAME": "sqlite_store",
        "SqlStore": "sqlite_store",
        "TraceWriter": "trace",
        "FileTranscripts": "transcripts",
    },
)

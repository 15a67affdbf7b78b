"""The store: events, steps, approvals and receipts in one file; traces; redaction."""

from podium.journal.events import StoreJournal
from podium.journal.receipts import verify
from podium.journal.redaction import Redactor
from podium.journal.sqlite import quick_check
from podium.journal.store import DATABASE_NAME, SqlStore
from podium.journal.trace import TraceWriter
from podium.journal.transcripts import FileTranscripts

__all__ = [
    "DATABASE_NAME",
    "FileTranscripts",
    "Redactor",
    "SqlStore",
    "StoreJournal",
    "TraceWriter",
    "quick_check",
    "verify",
]

"""The kinds of fields that are looked for in messages."""

from __future__ import annotations

import re

KINDS = (
    "phone",
    "email",
    "money",
    "date",
    "datetime",
    "time",
    "name",
    "suburb",
    "address",
    "postcode",
    "text",
    "number",
    "choice",
    "flag",
)
RESOLVED = ("last_run", "last_failed_run", "message")
"""Sources of `x-resolve` for a value that the message leaves out: the record, or the whole message."""
_ID = re.compile(r"id:[a-z][a-z0-9_]*")


def is_kind(kind: object) -> bool:
    """Check a property's `x-kind`: one of `KINDS`, or `id:` and what it is the id of."""
    return isinstance(kind, str) and (kind in KINDS or is_id(kind))


def is_id(kind: object) -> bool:
    return isinstance(kind, str) and _ID.fullmatch(kind) is not None

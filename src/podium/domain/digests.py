"""One text and one digest for one value."""

from __future__ import annotations

import hashlib
import json

from podium.domain.model import Json

# Made once: `json.dumps` would make one for every value.
_CANONICAL = json.JSONEncoder(
    sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False
)


def canonical_json(value: Json) -> str:
    """One text for one value: keys sorted, no blanks, no NaN."""
    return _CANONICAL.encode(value)


def digest_of(value: Json) -> str:
    """SHA-256 of the canonical JSON, as `sha256:…`."""
    return "sha256:" + hashlib.sha256(canonical_json(value).encode()).hexdigest()

"""Edits of a text by what stands in it: found beyond doubt, or refused. No files here."""

from podium.tools.edits.application import AppliedEdit, EditResult, apply_edits
from podium.tools.edits.edit import (
    EditRefused,
    EncodedText,
    MatchCandidate,
    MatchLevel,
    RefusalReason,
    TextEdit,
    decoded,
)
from podium.tools.edits.hunks import Hunk, apply_hunks, diff_between, unified_diff

__all__ = [
    "AppliedEdit",
    "EditRefused",
    "EditResult",
    "EncodedText",
    "Hunk",
    "MatchCandidate",
    "MatchLevel",
    "RefusalReason",
    "TextEdit",
    "apply_edits",
    "apply_hunks",
    "decoded",
    "diff_between",
    "unified_diff",
]

"""Edits of a text by what stands in it: found beyond doubt, or refused. No files here."""

from podium.tools.edits.application import Done, Edited, apply_edits
from podium.tools.edits.edit import Candidate, Coded, Edit, EditRefused, Level, Reason, decoded
from podium.tools.edits.hunks import Hunk, apply_hunks, diff_between, unified_diff

__all__ = [
    "Candidate",
    "Coded",
    "Done",
    "Edit",
    "EditRefused",
    "Edited",
    "Hunk",
    "Level",
    "Reason",
    "apply_edits",
    "apply_hunks",
    "decoded",
    "diff_between",
    "unified_diff",
]

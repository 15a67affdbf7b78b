"""Edits of a text by what stands in it: found beyond doubt, or refused. No files here."""

from podium.tools.edits.applying import Done, Edited, apply_edits
from podium.tools.edits.diffs import diff_between, unified_diff
from podium.tools.edits.hunks import Hunk, apply_hunks
from podium.tools.edits.nouns import Candidate, Edit, EditRefused, Level, Reason
from podium.tools.edits.texts import Coded, decoded

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

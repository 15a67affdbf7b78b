"""Edits as agents really send them, sound and drifted, each with what is right to make of it.

The cases lie beside this file, one shape of failure to a line's `shape`. What must come out was made
from the true snippet, before it was drifted: no matcher had a hand in it.
"""

from tests.edit_cases.cases import EditCase, WantedEdit, edit_cases

__all__ = ["EditCase", "WantedEdit", "edit_cases"]

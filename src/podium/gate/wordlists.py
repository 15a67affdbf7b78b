"""Lists of names, written as one reads them."""

from __future__ import annotations


def names(text: str) -> frozenset[str]:
    """The names in a text, parted by blanks."""
    return frozenset(text.split())

"""How the reader says that it cannot read."""

from __future__ import annotations


class Unclear(Exception):
    """This line may mean something that its text does not show. Answered inside the reader."""

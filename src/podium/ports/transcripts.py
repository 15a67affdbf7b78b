"""Transcripts: what was really said in a turn, kept beside the journal."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from podium.domain.asking import Turn


class Transcript(Protocol):
    """The record of one turn. Secrets are removed when it is written."""

    @property
    def path(self) -> str: ...

    def write(self, line: str) -> None:
        """Keep a line as it came. Beyond the transcript's size lines are counted and dropped."""
        ...


class Transcripts(Protocol):
    """Opens a transcript for each turn."""

    def open(self, turn: Turn, agent: str) -> AbstractContextManager[Transcript]:
        """A new transcript; the prompt is kept beside it. On leaving it is complete."""
        ...

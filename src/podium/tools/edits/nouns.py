"""What an edit is, how it was found, and why it was refused."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum


class Level(StrEnum):
    """How an edit's place was found, the strictest first."""

    EXACT = "exact"
    """Character by character; line ends of any kind are equal."""
    LINES = "lines"
    """Whole lines, when blanks at their ends are left out of account."""
    INDENT = "indent"
    """As `lines`, all of them shifted by the same indentation."""
    TABS = "tabs"
    """As `lines`, with tabs for spaces in the indentation or the other way round."""
    SPACING = "spacing"
    """As these, with other numbers of blanks between words."""
    LOOKALIKE = "lookalike"
    """As these, with typographic quotes, dashes and blanks for plain ones."""
    ELIDED = "elided"
    """By the lines around a `...` that stands for lines which stay as they are."""
    PASTED = "pasted"
    """As `lines`, `indent` or `tabs`, without the fence, line numbers or escapes around it."""


class Reason(StrEnum):
    """Why an edit is refused."""

    MISSING = "missing"
    AMBIGUOUS = "ambiguous"
    OVERLAP = "overlap"
    NOTHING = "nothing"
    """It would change nothing."""
    DOUBTFUL = "doubtful"
    """The place is known, and what shall stand there is not beyond doubt."""
    NOT_TEXT = "not text"


@dataclass(frozen=True)
class Edit:
    """Replace one text by another. `at_line` (from 1) only chooses among equal matches."""

    find: str
    replace: str
    at_line: int | None = None


@dataclass(frozen=True)
class Candidate:
    """A place that is not, or not alone, the one that was meant."""

    line: int
    """From 1."""
    text: str
    """The line of the file that tells most: where it differs, or its first. Not cut."""
    differs: str = ""
    """What is different there, in words."""


class EditRefused(Exception):
    """Nothing was changed, for this reason. `number` is the edit's, from 1; 0: all of them."""

    def __init__(
        self, reason: Reason, words: str, candidates: Sequence[Candidate] = (), number: int = 0
    ) -> None:
        super().__init__(words)
        self.reason = reason
        self.words = words
        self.candidates = tuple(candidates)
        self.number = number

    def of_edit(self, number: int) -> EditRefused:
        """The same, about the edit with this number."""
        return EditRefused(self.reason, self.words, self.candidates, number)


@dataclass(frozen=True)
class Change:
    """Characters `start` to `end` of the text with plain line feeds, and what comes there instead."""

    start: int
    end: int
    text: str
    level: Level

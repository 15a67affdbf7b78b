"""A text and its line ends, which may be of several kinds at once.

Matching sees plain line feeds alone. What is not changed is taken from the original, so that every
line keeps the end it has.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Sequence
from functools import cached_property
from itertools import accumulate

from podium.tools.edits.aligning import aligned
from podium.tools.edits.nouns import Change


class Layout:
    """The text of a file, its lines and their ends."""

    def __init__(self, original: str) -> None:
        self.original = original
        # The end of lines on old Macs. Beside line feeds it is a character like any other.
        self._old_mac = "\r" in original and "\n" not in original
        self._ends = re.findall(r"\r" if self._old_mac else r"\r?\n", original)
        self.text = self.plain(original)

    def plain(self, text: str) -> str:
        """A text with line feeds for the line ends that this file knows."""
        plain = text.replace("\r\n", "\n")
        return plain.replace("\r", "\n") if self._old_mac else plain

    @cached_property
    def lines(self) -> list[str]:
        """Without their ends. Behind a last line feed there is one more, empty."""
        return self.text.split("\n")

    @cached_property
    def starts(self) -> list[int]:
        """Where each line begins in `text`."""
        return [0, *accumulate(len(line) + 1 for line in self.lines[:-1])]

    def line_at(self, offset: int) -> int:
        """Index of the line that holds this character of `text`."""
        return bisect_right(self.starts, offset) - 1

    @cached_property
    def _longer_by(self) -> list[int]:
        """How many characters the ends of the lines before each line take beyond one."""
        return [0, *accumulate(len(end) - 1 for end in self._ends)]

    def _in_original(self, offset: int) -> int:
        return offset + self._longer_by[self.line_at(offset)]

    @cached_property
    def _usual_end(self) -> str | None:
        counted = Counter(self._ends).most_common(1)
        return counted[0][0] if counted else None

    def rewritten(self, changes: Sequence[Change]) -> str:
        """The original with these changes, which are sorted and do not overlap."""
        parts: list[str] = []
        at = 0
        for change in changes:
            parts += [self.original[at : self._in_original(change.start)], self._ended(change)]
            at = self._in_original(change.end)
        return "".join([*parts, self.original[at:]])

    def _ended(self, change: Change) -> str:
        """The new text with line ends: lines that stay have their own, others the usual one."""
        usual = self._usual_end or "\n"
        pieces = change.text.split("\n")
        if len(set(self._ends)) < 2 or len(pieces) == 1:
            return usual.join(pieces)
        first = self.line_at(change.start)
        old = self.text[change.start : change.end].split("\n")
        ends = [usual] * len(pieces)
        for block in aligned(old, pieces):
            for index in range(min(block.old_count, block.new_count)):
                if block.old + index < len(old) - 1:
                    ends[block.new + index] = self._ends[first + block.old + index]
        ends[-1] = ""
        return "".join(piece + end for piece, end in zip(pieces, ends, strict=True))

"""Where one sequence of lines stands in another, in linear time."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence

MOST_PLACES = 100
"""More than this many matches are as good as this many: nobody can tell which was meant."""


def places_of(needle: Sequence[str], lines: Sequence[str], most: int = MOST_PLACES) -> list[int]:
    """Indexes at which all lines of `needle` stand in `lines`, overlapping ones too.

    Each line becomes one character, so that the search is that of `str.find`, which never goes
    back: comparing lists line by line takes time by the product of both in a file of equal lines.
    """
    if not needle or len(needle) > len(lines):
        return []
    known: dict[str, str] = {}
    for line in needle:
        known.setdefault(line, chr(len(known) + 1))
    pattern = "".join(known[line] for line in needle)
    return occurrences(pattern, "".join(known.get(line, "\0") for line in lines), most)


def occurrences(needle: str, text: str, most: int = MOST_PLACES) -> list[int]:
    """Offsets at which `needle` stands in `text`, overlapping ones too, at most so many."""
    found: list[int] = []
    at = text.find(needle)
    while at >= 0 and len(found) < most:
        found.append(at)
        at = text.find(needle, at + 1)
    return found


class Collapsed:
    """A text whose runs of blanks are one each, with the way back to the places in the whole."""

    def __init__(self, whole: str) -> None:
        self.whole = whole
        self._text = re.sub(r"[^\S\n]+", " ", whole)
        self._behind = [0]
        self._left_out = [0]
        for run in re.finditer(r"[^\S\n]{2,}", whole):
            self._behind.append(run.start() - self._left_out[-1] + 1)
            self._left_out.append(self._left_out[-1] + len(run[0]) - 1)

    def spans_of(self, needle: str) -> list[tuple[int, int]]:
        """Where `needle`, which begins and ends with no blank, stands in the whole."""
        return [
            (self._back(at), self._back(at + len(needle) - 1) + 1)
            for at in occurrences(needle, self._text)
        ]

    def _back(self, offset: int) -> int:
        return offset + self._left_out[bisect_right(self._behind, offset) - 1]

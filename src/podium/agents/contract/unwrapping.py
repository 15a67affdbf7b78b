"""Lines that a program broke to fit its pane, made whole again as well as can be told."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from itertools import pairwise

_NEVER_GOES_ON = re.compile(r"(?:[-*+>]|#{1,6}|\d{1,3}[.)])\s|```|~~~|</?[A-Z]+>$|\s\s")
_SECTION = re.compile(r"</?[A-Z]+>")


def cells(text: str) -> int:
    """Columns that the text takes on a terminal."""
    if text.isascii():
        return len(text)
    return sum(map(_cells_of, text))


def unwrapped(rows: Sequence[str], width: int) -> list[str]:
    """The lines that were broken into these rows: between words, or wherever a row was full.

    A row goes on in the next one when that one's first word did not fit. Where a line happens to end so, two
    lines become one: it cannot be told. A row wider than the pane shows that the program breaks no lines at all.
    """
    if width < 2 or any(cells(row) > width for row in rows):
        return list(rows)
    is_cut = _is_cut_anywhere(rows, width)
    lines: list[list[str]] = []
    before = ""
    for row in rows:
        if lines and _goes_on(before, row, width) and (not is_cut or _is_full(before, width)):
            blank = _cut_blank(before, row, width) if is_cut else _word_blank(before, row, width)
            lines[-1] += [blank, row.lstrip(" ")]
        else:
            lines.append([row])
        before = row
    return ["".join(pieces) for pieces in lines]


def _is_cut_anywhere(rows: Sequence[str], width: int) -> bool:
    """Between words one row in six or so is full to the last column; cut without regard to words, almost all are."""
    broken = [pair for pair in pairwise(rows) if _goes_on(*pair, width)]
    full = sum(cells(row) == width and " " in row.strip() for row, _ in broken)
    short = sum(not _is_full(row, width) for row, _ in broken)
    return full >= 2 and full > short


def _goes_on(row: str, following: str, width: int) -> bool:
    room = width - cells(row) - 1
    if cells(following) <= room:
        return False  # all of it would have fitted, as most rows do
    if not row.strip() or not following.strip() or _SECTION.fullmatch(row):
        return False
    if _NEVER_GOES_ON.match(following) and cells(row) < width:
        return False
    return cells(_first_word(following)) > room


def _is_full(row: str, width: int) -> bool:
    """A wide character that did not fit, or a blank that the screen does not show, leaves one column."""
    return cells(row) >= width - 1


def _word_blank(row: str, following: str, width: int) -> str:
    """Nothing where a word was cut: one that fits on a row never is, and a cut row is full."""
    is_cut = _is_full(row, width) and _has_long_word(row, following, width)
    return "" if is_cut and not following.startswith(" ") else " "


def _has_long_word(row: str, following: str, width: int) -> bool:
    """Whether the words at the break, taken for one, fit on no row."""
    return cells(row.rsplit(" ", 1)[-1]) + cells(_first_word(following)) > width


def _cut_blank(row: str, following: str, width: int) -> str:
    is_lost = cells(row) < width and cells(following[:1]) < 2
    return " " if is_lost or following.startswith(" ") else ""


def _first_word(row: str) -> str:
    return row.lstrip(" ").split(" ", 1)[0]


def _cells_of(character: str) -> int:
    if unicodedata.combining(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1

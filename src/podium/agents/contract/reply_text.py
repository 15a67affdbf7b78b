"""Text of a reply without what a terminal did to it: escapes, frames, indents and wraps; cut in the middle where too long."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from itertools import pairwise
from typing import Literal

from podium.agents.contract.json_objects import load_object
from podium.core.model import Json

MAX_CHARACTERS = 200_000


def bounded(text: str, most: int = MAX_CHARACTERS) -> str:
    """At most that many characters: head and tail, with a line between that says what is missing."""
    if len(text) <= most:
        return text
    # The note's own length depends on the figure in it by a digit at most.
    available = most - len(_note(len(text)))
    head = available // 2
    tail = available - head
    return f"{text[:head]}{_note(len(text) - available)}{text[len(text) - tail :]}"


def _note(left_out: int) -> str:
    return f"\n[… {left_out} characters omitted; the full text is in the transcript …]\n"


# Parameters of an escape are short in practice; the bounds keep a flood of half escapes linear.
_ESCAPES = re.compile(
    r"\x1b(?:\[[0-?]{0,64}+[ -/]{0,8}+[@-~]|\][^\x07\x1b]{0,4096}+(?:\x07|\x1b\\)|[PX^_][^\x1b]{0,4096}+\x1b\\|[@-Z\\^_])"
)


def without_escapes(text: str) -> str:
    """The text without terminal escapes; the very same object when there are none."""
    return _ESCAPES.sub("", text) if "\x1b" in text else text


BORDERS = "│┃|"
BLANKS = " \t"
LEAD = r"^(?P<lead>[\u200b\ufeff]?[ \t]{0,200}+(?:[⏺●•✦◆│┃|][ \t]{0,200}+)?)"
"""Pattern of what may stand before a tag."""
EDGE = r"[ \t]{0,2000}+[│┃|]?+[ \t]{0,2000}+$"
"""Pattern of what may stand behind one."""


def header_of(written: str) -> tuple[dict[str, Json], Literal["strict", "repaired"]] | None:
    """Read the JSON of an opening tag. None when it cannot be read."""
    source = written.strip() or "{}"
    try:
        return load_object(source), "strict"
    except ValueError:
        pass
    lines = [line.strip(BLANKS + BORDERS) for line in source.split("\n")]
    try:
        wrapped = load_object("\n".join(lines), raw_breaks=True)
        return dict(map(_joined, wrapped.items())), "repaired"
    except ValueError:
        return None


def _joined(member: tuple[str, Json]) -> tuple[str, Json]:
    key, value = member
    return _unwrapped(key), _unwrapped(value) if isinstance(value, str) else value


def _unwrapped(text: str) -> str:
    """A word that was wrapped. Between several, whether a blank was lost at the break cannot be told."""
    if "\n" in text and " " in text:
        raise ValueError("it is wrapped between words")
    return text.replace("\n", "")


def body_freed(body: str, lead: str, *, is_framed: bool) -> str:
    """The body without the frame or the indent that its opening tag stands behind.

    `is_framed`: a border stands after the tag too. Without, borders at both ends are a table of the body.
    """
    lead = lead.lstrip("\u200b\ufeff")
    if not lead:
        return body
    lines = body.split("\n")
    if is_framed and lead.strip() and lead.strip(BLANKS) in BORDERS:
        framed = [_unframed(line) for line in lines]
        whole = [line for line in framed if line is not None]
        if len(whole) == len(lines):
            return "\n".join(whole)
    width = len(lead)
    return "\n".join(line[width:] if not line[:width].strip() else line for line in lines)


def _unframed(line: str) -> str | None:
    """Return the text between two borders; None when they are not there."""
    inner = line.strip(BLANKS)
    if len(inner) < 2 or inner[0] not in BORDERS or inner[-1] not in BORDERS:
        return None
    return inner[1:-1].removeprefix(" ").rstrip(BLANKS)


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
    free_cells = width - cells(row) - 1
    if cells(following) <= free_cells:
        return False  # all of it would have fitted, as most rows do
    if not row.strip() or not following.strip() or _SECTION.fullmatch(row):
        return False
    if _NEVER_GOES_ON.match(following) and cells(row) < width:
        return False
    return cells(_first_word(following)) > free_cells


def _is_full(row: str, width: int) -> bool:
    """A wide character that did not fit, or a blank that the screen does not show, leaves one column."""
    return cells(row) >= width - 1


def _word_blank(row: str, following: str, width: int) -> str:
    """Nothing where a word was cut: one that fits on a row never is, and a cut row is full."""
    is_cut = _is_full(row, width) and _has_long_word(row, following, width)
    return "" if is_cut and not following.startswith(" ") else " "


def _has_long_word(row: str, following: str, width: int) -> bool:
    """Return whether the words at the break, taken for one, fit on no row."""
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

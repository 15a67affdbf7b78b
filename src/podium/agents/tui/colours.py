"""Lines as tmux draws them with colours, made so that each can be shown by itself, and can do nothing but be shown."""

from __future__ import annotations

import re
from collections.abc import Iterable

_PIECES = re.compile(
    r"\x1b\[(?P<codes>[0-9;:]*)m"  # how the characters after it look
    r"|(?P<shift>[\x0e\x0f])"  # line-drawing characters from here on, or no more
    r"|\x1b[\]P^_X](?:[^\x07\x1b]|\x1b(?!\\))*(?:\x07|\x1b\\|$)"  # titles, clipboards, links
    r"|\x1b\[[0-?]*[ -/]*[@-~]?|\x1b[ -/]*[0-~]?"  # whatever else an escape begins
    r"|(?P<text>[^\x00-\x1f\x7f-\x9f]+)"
    r"|(?P<control>.)",
    re.DOTALL,
)
_DRAWN = str.maketrans("`afgjklmnopqrstuvwxyz{|}~", "◆▒°±┘┐┌└┼⎺⎻─⎼⎽├┤┴┬│≤≥π≠£·")
_RESET = "\x1b[0m"
_MOST_CODES = 32
"""In one escape; tmux writes fewer."""


def separate_lines(lines: Iterable[str]) -> tuple[str, ...]:
    """Each line with the colours that tmux carries over from the one before it, and reset at its end.

    Colours and printable characters are all that is left: no title, clipboard, link, question or movement of a cursor.
    """
    look: dict[str, str] = {}
    shown, drawing = [], False
    for line in lines:
        parts = [_written(look)]
        for piece in _PIECES.finditer(line):
            if piece["codes"] is not None:
                parts.append(_changed(look, piece["codes"]))
            elif piece["shift"]:
                drawing = piece["shift"] == "\x0e"
            elif piece["text"]:
                parts.append(piece["text"].translate(_DRAWN) if drawing else piece["text"])
            elif piece["control"]:
                parts.append(" ")
        shown.append("".join(parts) + _RESET)
    return tuple(shown)


def _written(look: dict[str, str]) -> str:
    return f"\x1b[{';'.join(look.values())}m" if look else ""


def _changed(look: dict[str, str], codes: str) -> str:
    """Note what the escape changes, and give it back in our own words."""
    words = codes.split(";")[:_MOST_CODES]
    at = 0
    while at < len(words):
        at += _note(look, words[at:])
    return f"{_RESET}{_written(look)}"


def _note(look: dict[str, str], words: list[str]) -> int:
    """Note the first of the codes. Gives how many words it had."""
    first = words[0].partition(":")[0] or "0"
    if first == "0":
        look.clear()
        return 1
    length = 1
    if words[0] in ("38", "48", "58"):  # a colour by its number, or by red, green and blue
        length = {"5": 3, "2": 5}.get(words[1] if len(words) > 1 else "", len(words))
    if kind := _kind(int(first[:4])):
        look.pop(kind, None)
        look[kind] = ";".join(words[:length])
    return length


def _kind(code: int) -> str:
    """What a code is about: the next of its kind takes its place. Empty: nothing that is shown."""
    if 30 <= code <= 39 or 90 <= code <= 97:
        return "ink"
    if 40 <= code <= 49 or 100 <= code <= 107:
        return "paper"
    if code in (58, 59):
        return "line"
    return _ATTRIBUTES.get(code, "")


_ATTRIBUTES = {
    1: "bold", 2: "faint", 22: "bold", 3: "italics", 23: "italics", 4: "under", 21: "under", 24: "under",
    5: "blink", 25: "blink", 7: "reverse", 27: "reverse", 8: "hidden", 28: "hidden",
    9: "struck", 29: "struck", 53: "over", 55: "over",
}  # fmt: skip

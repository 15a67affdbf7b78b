"""Untrusted text made safe for a terminal, and small phrases that every interface uses."""

from __future__ import annotations

import re
from datetime import datetime

from podium.platform.invisible_text import is_visible, written

_ESCAPES = re.compile(
    r"""
    (?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]?                  # CSI: colours, cursor, erase
    | (?:\x1b[\]PX^_]|[\x90\x98\x9d\x9e\x9f])           # OSC, DCS, SOS, PM, APC: titles, links, clipboard
      [^\x07\x1b\x9c]*(?:\x07|\x1b\\|\x9c)?
    | \x1b[ -/]*[0-~]?                                  # all the short ones
    """,
    re.VERBOSE,
)
_UNSEEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f"  # controls but tab and newline
    "\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff"  # zero width, and what turns text around
    "\U000e0000-\U000e007f\ud800-\udfff]"  # tags, and halves of characters
)
_COLOUR = re.compile(r"\x1b\[[0-9;:]*m")
_STEERING = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1a\x1c-\x1f\x7f-\x9f"  # controls but those of lines, and of colours
    "\u200e\u200f\u202a-\u202e\u2066-\u2069\U000e0000-\U000e001f\ud800-\udfff]"  # what turns text around
)
_ODD = re.compile(r"[^ -~\n\t]")
_ODD_OR_BREAK = re.compile(r"[^ -~]")


def safe_text(text: str) -> str:
    """The text without terminal escapes, control and invisible characters. Keeps lines and tabs."""
    return _UNSEEN.sub("", _ESCAPES.sub("", text.replace("\r\n", "\n").replace("\r", "\n")))


def coloured_text(text: str) -> str:
    """Clean a program's output: keep its lines, tabs, colours and joined letters, and remove all that steers
    a terminal otherwise."""
    cleaned = _ESCAPES.sub(lambda match: match[0] if _COLOUR.fullmatch(match[0]) else "", text)
    return _STEERING.sub("", cleaned)


def safe_line(text: str, longest: int = 0) -> str:
    """The same on one line, cut to `longest` characters when that is given."""
    return _cut(" ".join(safe_text(text).split()), longest)


def escaped_text(text: str) -> str:
    r"""The text with every character that cannot be seen written out, as in `\x1b` or `\u202e`.

    For what somebody is asked to answer for: there nothing may be left out. Keeps lines and tabs.
    """
    return _ODD.sub(lambda match: _escaped(match[0]), text)


def escaped_line(text: str, longest: int = 0) -> str:
    r"""The same on one line: also ends of lines are written out, as `\n`."""
    return _cut(_ODD_OR_BREAK.sub(lambda match: _escaped(match[0]), text), longest)


def escaped_json(text: str) -> str:
    """JSON with the characters that cannot be seen written in its own way. It means the same."""
    return _ODD.sub(lambda match: _escaped(match[0], json=True), text)


def _cut(line: str, longest: int) -> str:
    return line if not longest or len(line) <= longest else line[: longest - 1] + "…"


def _escaped(char: str, *, json: bool = False) -> str:
    return char if is_visible(char) else written(char, json=json)


def counted(number: int, what: str) -> str:
    """`1 receipt`, `2 receipts`."""
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def local_time(at: datetime | None) -> str:
    """A point in time as the person's own clock shows it."""
    return at.astimezone().strftime("%Y-%m-%d %H:%M:%S") if at else ""

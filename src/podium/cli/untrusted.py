"""Text of agents, tools and files, made safe for a terminal."""

from __future__ import annotations

import re

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


def safe_text(text: str) -> str:
    """The text without terminal escapes, control and invisible characters. Keeps lines and tabs."""
    return _UNSEEN.sub("", _ESCAPES.sub("", text.replace("\r\n", "\n").replace("\r", "\n")))


def safe_line(text: str, longest: int = 0) -> str:
    """The same on one line, cut to `longest` characters when that is given."""
    line = " ".join(safe_text(text).split())
    return line if not longest or len(line) <= longest else line[: longest - 1] + "…"

"""Text of others, put so that nothing in it can end its place or open another."""

from __future__ import annotations

import re

from podium.domain.seeing import written_out

_TICKS = re.compile(r"`+")
_LINE_ENDS = re.compile(r"\r\n?|[\v\f\x1c-\x1e\x85\u2028\u2029]")


def plain(text: str) -> str:
    """The text with one kind of line end, and with every hidden character written out."""
    whole = text.encode(errors="replace").decode()
    return written_out(_LINE_ENDS.sub("\n", whole))


def as_data(text: str) -> str:
    """The text as a block whose fence is longer than any run of backticks in it."""
    body = plain(text).rstrip("\n")
    fence = "`" * max(3, _longest_run(body) + 1)
    return f"{fence}data\n{body}\n{fence}"


def in_code(line: str) -> str:
    """The text on one line, as a code span that nothing in it can end."""
    shown = " ".join(plain(line).split("\n"))
    ticks = "`" * (_longest_run(shown) + 1)
    gap = " " if shown.startswith("`") or shown.endswith("`") else ""
    return f"{ticks}{gap}{shown}{gap}{ticks}"


def _longest_run(text: str) -> int:
    return max((len(run) for run in _TICKS.findall(text)), default=0)

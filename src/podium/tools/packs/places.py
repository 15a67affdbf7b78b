"""Positions in a JSON text: the line of every pointer, and duplicate keys.

Python's own reader tells neither, so a text that has a fault is walked through once more.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from json import JSONDecoder

_BLANKS = re.compile(r"[ \t\n\r]*")
_SCALARS = JSONDecoder()


def pointer(parts: Iterable[str | int]) -> str:
    """A JSON pointer (RFC 6901), such as `/tools/3/tier`."""
    return "".join("/" + str(part).replace("~", "~0").replace("/", "~1") for part in parts)


def parent(of: str) -> str:
    """The pointer of what holds this one; empty at the top."""
    return of.rpartition("/")[0]


class JsonPositions:
    """The lines of a JSON text that `json.loads` has read."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._lines: dict[str, int] = {}
        self.doubled: list[str] = []
        """Pointers of keys that their object has had already."""
        self._newlines = _LineCounter(text)
        self._value(self._past_blanks(0), "")

    def line(self, of: str) -> int | None:
        """Return the line of a pointer, from 1; of a missing one, that of its nearest parent."""
        while of and of not in self._lines:
            of = parent(of)
        return self._lines.get(of)

    def _value(self, at: int, location: str) -> int:
        """Walk over the value that begins here. Gives where it ends."""
        self._lines.setdefault(location, self._newlines.line(at))
        first = self._text[at : at + 1]
        if first == "{":
            return self._object(at, location)
        if first == "[":
            return self._list(at, location)
        return _SCALARS.raw_decode(self._text, at)[1]

    def _object(self, at: int, location: str) -> int:
        keys: set[str] = set()
        at = self._past_blanks(at + 1)
        while self._text[at] != "}":
            key, behind = _SCALARS.raw_decode(self._text, at)
            here = f"{location}{pointer([key])}"
            if key in keys:
                self.doubled.append(here)
            keys.add(key)
            self._lines[here] = self._newlines.line(at)
            colon = self._past_blanks(behind)
            at = self._past_comma(self._value(self._past_blanks(colon + 1), here))
        return at + 1

    def _list(self, at: int, location: str) -> int:
        number = 0
        at = self._past_blanks(at + 1)
        while self._text[at] != "]":
            at = self._past_comma(self._value(at, f"{location}/{number}"))
            number += 1
        return at + 1

    def _past_comma(self, at: int) -> int:
        at = self._past_blanks(at)
        return self._past_blanks(at + 1) if self._text[at] == "," else at

    def _past_blanks(self, at: int) -> int:
        blanks = _BLANKS.match(self._text, at)
        return blanks.end() if blanks else at


class _LineCounter:
    """Counts lines for positions that only grow."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._line = 1

    def line(self, at: int) -> int:
        self._line += self._text.count("\n", self._at, at)
        self._at = at
        return self._line

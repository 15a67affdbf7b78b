"""Where the JSON objects of a text are, found in one pass from its end.

Read backwards from a closing brace, JSON has no ambiguity: a quote that no backslash escapes ends a
string, the one before it on the same line begins it, since strings hold no line breaks. So each
closing brace has at most one partner, prose with odd quotes spoils one line at most, and the cost
is that of looking at each brace, quote and line break once.
"""

from __future__ import annotations

import re
from array import array
from typing import NamedTuple

# A run of backslashes is taken whole, so that a million of them are looked at once.
_MARKS = re.compile(r'\\++"?|["{}\n]')
_OPEN, _CLOSE, _QUOTE, _LINE = b'{}"\n'


class Span(NamedTuple):
    """A piece of a text: `text[start:end]`."""

    start: int
    end: int


class Objects(NamedTuple):
    """The outermost pairs of braces and the braces without a partner, each list last first."""

    spans: list[Span]
    opened: list[int]
    closed: list[int]


def find_objects(text: str) -> Objects:
    """Every outermost `{…}` of the text, JSON or not."""
    places, kinds = _marks(text)
    spans: list[Span] = []
    opened: list[int] = []
    closing: list[int] = []
    at = len(kinds) - 1
    while at >= 0:
        kind = kinds[at]
        if kind == _CLOSE:
            closing.append(places[at])
        elif kind == _OPEN and closing:
            _keep_outermost(spans, Span(places[at], closing.pop() + 1))
        elif kind == _OPEN:
            opened.append(places[at])
        elif kind == _QUOTE and closing:
            at = _string_start(kinds, at)
        at -= 1
    return Objects(spans, opened, closing)


def _marks(text: str) -> tuple[array[int], bytearray]:
    places, kinds = array("I"), bytearray()
    for found in _MARKS.finditer(text):
        mark = found[0]
        if mark[0] == "\\" and (mark[-1] != '"' or len(mark) % 2 == 0):
            continue  # no quote, or an escaped one
        places.append(found.end() - 1)
        kinds.append(ord(mark[-1]))
    return places, kinds


def _string_start(kinds: bytearray, end: int) -> int:
    """The quote that begins the string which ends here; without one on the line, it is a stray."""
    at = end - 1
    while at >= 0 and kinds[at] not in (_QUOTE, _LINE):
        at -= 1
    return at if at >= 0 and kinds[at] == _QUOTE else end


def _keep_outermost(spans: list[Span], span: Span) -> None:
    while spans and spans[-1].end <= span.end:
        spans.pop()
    spans.append(span)

"""Snippets with a `...` for lines that stay: found by the lines around it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from podium.tools.edits.layout import Layout
from podium.tools.edits.matches import Match, one_of
from podium.tools.edits.nouns import Candidate, Change, EditRefused, Level, Reason
from podium.tools.edits.sequences import places_of

_DOTS = r"(?:\.\.\.|\u2026)"
_OPENED = r"(?:\#|//|--|;|%|/\*|<!--)"
_ELISION = re.compile(rf"\s*(?:{_OPENED}\s*{_DOTS}.*|{_DOTS}\s*)$")
_WORDS = r"(?:existing|rest|unchanged|remaining|same|previous|omitted|other)"
_LAZY = re.compile(rf"^[ \t]*{_OPENED}[ \t]*{_DOTS}.*\b{_WORDS}\b", re.IGNORECASE | re.MULTILINE)

_MOST_ANCHORS = 10_000
_MOST_PARTS = 20
"""The file is searched once for each."""


@dataclass(frozen=True)
class _Part:
    """Lines between two elisions, and what shall stand in their place."""

    found: tuple[str, ...]
    wanted: tuple[str, ...]

    @property
    def is_changed(self) -> bool:
        return self.found != self.wanted


def refuse_placeholder(find: str, replace: str) -> None:
    """Raise `EditRefused` for a replacement that says lines stay, where no lines were left out."""
    lazy = _LAZY.search(replace)
    if lazy is not None and lazy[0].strip() not in find:
        raise EditRefused(
            Reason.DOUBTFUL,
            f"`replace` has {lazy[0].strip()[:100]!r} in place of lines; write them out, or elide the "
            "same lines in `find`",
        )


def elided_changes(
    layout: Layout, find: str, replace: str, at_line: int | None
) -> list[Change] | None:
    """The changes of an edit with elisions. None when it has none, or its lines do not stand there."""
    found, wanted = _split(find), _split(replace)
    if not 2 <= len(found) <= _MOST_PARTS or any(
        not any(line.strip() for line in part) for part in found
    ):
        return None
    places = _possible(layout, found)
    if places is None:
        return None
    if len(found) != len(wanted):
        raise EditRefused(
            Reason.DOUBTFUL,
            f"`find` leaves out lines at {len(found) - 1} places and `replace` at {len(wanted) - 1}; "
            "whether they shall stay cannot be told: elide the same in both, or write them out",
            [Candidate(places[0][0] + 1, layout.lines[places[0][0]])],
        )
    parts = [_Part(*each) for each in zip(found, wanted, strict=True)]
    return [
        _change(layout, part, there, at_line)
        for part, there in zip(parts, places, strict=True)
        if part.is_changed
    ]


def _split(text: str) -> list[tuple[str, ...]]:
    parts: list[list[str]] = [[]]
    for line in text.strip("\n").split("\n"):
        if _ELISION.match(line):
            parts.append([])
        else:
            parts[-1].append(line)
    return [tuple(part) for part in parts]


def _possible(layout: Layout, parts: Sequence[tuple[str, ...]]) -> list[list[int]] | None:
    """For each part the lines it may begin at, given that all stand there in order."""
    lines = [line.rstrip(" \t") for line in layout.lines]
    everywhere = [
        places_of([line.rstrip(" \t") for line in part], lines, _MOST_ANCHORS) for part in parts
    ]
    if any(len(places) == _MOST_ANCHORS for places in everywhere):
        return None
    least = 0
    forward: list[list[int]] = []
    for part, places in zip(parts, everywhere, strict=True):
        forward.append([place for place in places if place >= least])
        if not forward[-1]:
            return None
        least = forward[-1][0] + len(part)
    most = len(lines)
    backward: list[list[int]] = []
    for part, places in zip(reversed(parts), reversed(forward), strict=True):
        backward.append([place for place in places if place + len(part) <= most])
        most = backward[-1][-1]
    return backward[::-1]


def _change(layout: Layout, part: _Part, places: Sequence[int], at_line: int | None) -> Change:
    matches = []
    for first in places:
        last = first + len(part.found) - 1
        end = layout.starts[last] + len(layout.lines[last])
        matches.append(Match(layout.starts[first], end, Level.ELIDED))
    match = one_of(matches, layout, at_line)
    start, end, text = match.start, match.end, "\n".join(part.wanted)
    if not part.wanted:  # whole lines go, with the end of the last
        end = min(end + 1, len(layout.text))
    return Change(start, end, text, Level.ELIDED)

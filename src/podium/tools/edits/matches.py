"""One match of a snippet, and the choice among several."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from podium.tools.edits.indents import NO_SHIFT, Shift
from podium.tools.edits.layout import Layout
from podium.tools.edits.nouns import Candidate, EditRefused, Level, Reason

MOST_CANDIDATES = 5


@dataclass(frozen=True)
class Match:
    """Where a snippet stands in the text, and by what tolerance."""

    start: int
    end: int
    level: Level
    shift: Shift = NO_SHIFT
    is_part: bool = False
    """Of a line, or of its first and last line."""


def one_of(matches: Sequence[Match], layout: Layout, at_line: int | None) -> Match:
    """The only match, or the only one that `at_line` lies in. Raises `EditRefused`."""
    if len(matches) == 1:
        return matches[0]
    if at_line is not None:
        there = [match for match in matches if _holds(match, layout, at_line - 1)]
        if len(there) == 1:
            return there[0]
    lines = [layout.line_at(match.start) for match in matches]
    candidates = [Candidate(line + 1, layout.lines[line]) for line in lines[:MOST_CANDIDATES]]
    hint = "give `at_line`" if at_line is None else f"line {at_line} lies in none, or in several"
    raise EditRefused(
        Reason.AMBIGUOUS,
        f"`find` stands at {len(matches)} places; quote more of what is around it, or {hint}",
        candidates,
    )


def _holds(match: Match, layout: Layout, line: int) -> bool:
    last = layout.line_at(max(match.start, match.end - 1))
    return layout.line_at(match.start) <= line <= last

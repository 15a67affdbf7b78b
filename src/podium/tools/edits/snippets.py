"""Snippets matched line by line: blanks, indentation and typographic characters may differ."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from podium.tools.edits.indents import Shift, indent_of, shift_between
from podium.tools.edits.layout import Layout
from podium.tools.edits.matches import Match
from podium.tools.edits.nouns import Level
from podium.tools.edits.sequences import Collapsed, occurrences, places_of
from podium.tools.edits.tokens import Key, as_it_is, folded, looking, spaced

_KEYS: tuple[tuple[Level | None, Key], ...] = (
    (None, as_it_is),
    (Level.SPACING, spaced),
    (Level.LOOKALIKE, looking),
)


@dataclass(frozen=True)
class Lookup:
    """A text and what was computed of its lines, for the edits of one call."""

    layout: Layout
    _keyed: dict[Key, list[str]] = field(default_factory=dict)
    _collapsed: dict[Level, Collapsed] = field(default_factory=dict)

    def keyed(self, key: Key) -> list[str]:
        if self.layout.text.isascii() and key is looking:
            key = spaced
        if key not in self._keyed:
            bodies = [body_of(line) for line in self.layout.lines]
            known = {body: key(body) for body in set(bodies)}
            self._keyed[key] = [known[body] for body in bodies]
        return self._keyed[key]

    def collapsed(self, level: Level) -> Collapsed:
        text = self.layout.text
        if text.isascii():
            level = Level.SPACING  # nothing in it looks like something else
        if level not in self._collapsed:
            self._collapsed[level] = Collapsed(folded(text) if level is Level.LOOKALIKE else text)
        return self._collapsed[level]


def body_of(line: str) -> str:
    """A line without its indentation and the blanks at its end."""
    return line.strip(" \t")


def loose_matches(lookup: Lookup, find: str) -> list[Match]:
    """Matches of the strictest tolerance that has any. Too little text is matched exactly or not at all."""
    lines = find.split("\n")
    for level, key in _KEYS:
        whole = _whole_lines(lookup, lines, level, key)
        for found in (whole, [] if level is None else _fragments(lookup, find, level)):
            if found:
                return found
    return []


def whole_line_matches(lookup: Lookup, lines: Sequence[str]) -> list[Match]:
    """As `loose_matches`, never of a part of a line."""
    if not any(line.strip() for line in lines):
        return []
    for level, key in _KEYS:
        if found := _whole_lines(lookup, lines, level, key):
            return found
    return []


def _whole_lines(
    lookup: Lookup, lines: Sequence[str], level: Level | None, key: Key
) -> list[Match]:
    layout = lookup.layout
    found: list[Match] = []
    for first in places_of([key(body_of(line)) for line in lines], lookup.keyed(key)):
        last = first + len(lines) - 1
        shift = shift_between(lines, layout.lines[first : last + 1])
        if shift is not None and _tells_enough(lines, shift):
            end = layout.starts[last] + len(layout.lines[last])
            found.append(Match(layout.starts[first], end, level or shift.level, shift))
    if level is not None:
        return found
    strictest = min((_ORDER.index(match.level) for match in found), default=0)
    return [match for match in found if match.level is _ORDER[strictest]]


_ORDER = list(Level)


def _tells_enough(lines: Sequence[str], shift: Shift) -> bool:
    """Whether it can hardly be another place: `return None` at another depth is another one.

    Shifted lines are known by their shape: three of them, or two of different depths.
    """
    signs = sum(char.isalnum() for line in lines for char in line)
    if shift.level is not Level.INDENT:
        return signs >= 2
    depths = [indent_of(line) for line in lines if line.strip()]
    return signs >= 8 and (len(depths) > 2 or len(set(depths)) > 1)


def _fragments(lookup: Lookup, find: str, level: Level) -> list[Match]:
    """Parts of lines. Blanks at the beginnings of further lines must be as they are."""
    if sum(char.isalnum() for char in find) < 4 or find != find.strip():
        return []
    text = lookup.collapsed(level)
    wanted = folded(find) if level is Level.LOOKALIKE else find
    if "\n" in find:
        spans = [(at, at + len(find)) for at in occurrences(wanted, text.whole)]
    else:
        spans = text.spans_of(spaced(wanted))
    return [Match(start, end, level, is_part=True) for start, end in spans]


def indent_and_body(line: str) -> tuple[str, str]:
    indent = indent_of(line)
    return indent, line[len(indent) :].rstrip(" \t")

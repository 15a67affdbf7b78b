"""Matches of a snippet: exact, by lines, without indentation, or with `...` for lines that stay.

`find` has no line end and `replace` has: what stands around the match stays, so the first line is
indented by what is there already. Of the others it must be told whether they were written as they
shall stand, or without the indentation that the first one lacks too.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from podium.tools.edits.edit import (
    EditRefused,
    MatchCandidate,
    MatchLevel,
    RefusalReason,
    TextChange,
)
from podium.tools.edits.text_lines import (
    NO_SHIFT,
    CollapsedText,
    IndentShift,
    Key,
    TextLayout,
    as_it_is,
    folded,
    indent_of,
    line_positions,
    looking,
    occurrences,
    shift_between,
    spaced,
)

MAX_CANDIDATES = 5


@dataclass(frozen=True)
class SnippetMatch:
    """Position of a snippet in the text, and the tolerance of the match."""

    start: int
    end: int
    level: MatchLevel
    shift: IndentShift = NO_SHIFT
    is_part: bool = False
    """Of a line, or of its first and last line."""


def one_of(
    matches: Sequence[SnippetMatch], layout: TextLayout, at_line: int | None
) -> SnippetMatch:
    """The only match, or the only one that `at_line` lies in. Raises `EditRefused`."""
    if len(matches) == 1:
        return matches[0]
    if at_line is not None:
        there = [match for match in matches if _holds(match, layout, at_line - 1)]
        if len(there) == 1:
            return there[0]
    lines = [layout.line_at(match.start) for match in matches]
    candidates = [MatchCandidate(line + 1, layout.lines[line]) for line in lines[:MAX_CANDIDATES]]
    hint = (
        "set `at_line`"
        if at_line is None
        else f"a line in only one of them (line {at_line} is in none or in several)"
    )
    raise EditRefused(
        RefusalReason.AMBIGUOUS,
        f"`find` matches at {len(matches)} places; quote more surrounding lines, or {hint}",
        candidates,
    )


def _holds(match: SnippetMatch, layout: TextLayout, line: int) -> bool:
    last = layout.line_at(max(match.start, match.end - 1))
    return layout.line_at(match.start) <= line <= last


_KEYS: tuple[tuple[MatchLevel | None, Key], ...] = (
    (None, as_it_is),
    (MatchLevel.SPACING, spaced),
    (MatchLevel.LOOKALIKE, looking),
)


@dataclass(frozen=True)
class SnippetLookup:
    """A text and what was computed of its lines, for the edits of one call."""

    layout: TextLayout
    _keyed: dict[Key, list[str]] = field(default_factory=dict)
    _collapsed: dict[MatchLevel, CollapsedText] = field(default_factory=dict)

    def keyed(self, key: Key) -> list[str]:
        if self.layout.text.isascii() and key is looking:
            key = spaced
        if key not in self._keyed:
            bodies = [body_of(line) for line in self.layout.lines]
            keys = {body: key(body) for body in set(bodies)}
            self._keyed[key] = [keys[body] for body in bodies]
        return self._keyed[key]

    def collapsed(self, level: MatchLevel) -> CollapsedText:
        text = self.layout.text
        if text.isascii():
            level = MatchLevel.SPACING  # nothing in it looks like something else
        if level not in self._collapsed:
            self._collapsed[level] = CollapsedText(
                folded(text) if level is MatchLevel.LOOKALIKE else text
            )
        return self._collapsed[level]


def body_of(line: str) -> str:
    """A line without its indentation and the blanks at its end."""
    return line.strip(" \t")


def loose_matches(lookup: SnippetLookup, find: str) -> list[SnippetMatch]:
    """Matches of the strictest tolerance that has any. Too little text is matched exactly or not at all."""
    lines = find.split("\n")
    for level, key in _KEYS:
        whole = _whole_lines(lookup, lines, level, key)
        for matches in (whole, [] if level is None else _fragments(lookup, find, level)):
            if matches:
                return matches
    return []


def whole_line_matches(lookup: SnippetLookup, lines: Sequence[str]) -> list[SnippetMatch]:
    """As `loose_matches`, never of a part of a line."""
    if not any(line.strip() for line in lines):
        return []
    for level, key in _KEYS:
        if matches := _whole_lines(lookup, lines, level, key):
            return matches
    return []


def _whole_lines(
    lookup: SnippetLookup, lines: Sequence[str], level: MatchLevel | None, key: Key
) -> list[SnippetMatch]:
    layout = lookup.layout
    matches: list[SnippetMatch] = []
    for first in line_positions([key(body_of(line)) for line in lines], lookup.keyed(key)):
        last = first + len(lines) - 1
        shift = shift_between(lines, layout.lines[first : last + 1])
        if shift is not None and _is_distinctive(lines, shift):
            end = layout.starts[last] + len(layout.lines[last])
            matches.append(SnippetMatch(layout.starts[first], end, level or shift.level, shift))
    if level is not None:
        return matches
    strictest = min((_ORDER.index(match.level) for match in matches), default=0)
    return [match for match in matches if match.level is _ORDER[strictest]]


_ORDER = list(MatchLevel)


def _is_distinctive(lines: Sequence[str], shift: IndentShift) -> bool:
    """Check that the match can hardly be another one: `return None` at another depth is.

    Shifted lines are known by their shape: three of them, or two of different depths.
    """
    signs = sum(char.isalnum() for line in lines for char in line)
    if shift.level is not MatchLevel.INDENT:
        return signs >= 2
    depths = [indent_of(line) for line in lines if line.strip()]
    return signs >= 8 and (len(depths) > 2 or len(set(depths)) > 1)


def _fragments(lookup: SnippetLookup, find: str, level: MatchLevel) -> list[SnippetMatch]:
    """Parts of lines. Blanks at the beginnings of further lines must be as they are."""
    if sum(char.isalnum() for char in find) < 4 or find != find.strip():
        return []
    text = lookup.collapsed(level)
    needle = folded(find) if level is MatchLevel.LOOKALIKE else find
    if "\n" in find:
        spans = [(at, at + len(find)) for at in occurrences(needle, text.whole)]
    else:
        spans = text.spans_of(spaced(needle))
    return [SnippetMatch(start, end, level, is_part=True) for start, end in spans]


def indent_and_body(line: str) -> tuple[str, str]:
    indent = indent_of(line)
    return indent, line[len(indent) :].rstrip(" \t")


_OPENS = re.compile(r"(?:[:{(\[]|=>|->|\b(?:then|do))\s*$")
_FIRST_TOKEN = re.compile(r"[)\]}@<]|#?\w+")
_CLOSES = frozenset([")", "]", "}", "end", "fi", "done", "esac"])
_LEAVES = frozenset(["return", "raise", "throw", "break", "continue", "pass", "}"])
"""Behind these a block is over, so what follows at the margin is meant to stand there."""
_DECLARES = frozenset(
    [
        "def",
        "async",
        "class",
        "@",
        "func",
        "fn",
        "function",
        "export",
        "import",
        "from",
        "public",
        "private",
        "pub",
        "impl",
        "struct",
        "enum",
        "type",
        "interface",
        "#include",
        "module",
        "package",
        "<",
    ]
)


def indented_as_its_line(layout: TextLayout, match: SnippetMatch, find: str, replace: str) -> str:
    """Return the replacement with its indentation. Raises `EditRefused` when that cannot be told."""
    if "\n" in find or "\n" not in replace:
        return replace
    line = layout.line_at(match.start)
    before = layout.text[layout.starts[line] : match.start]
    lines = replace.split("\n")
    later = [line for line in lines[1:] if line.strip()]
    if not before or before.strip() or not later or indent_of(lines[0]):
        return replace
    if _is_indented(before, lines[0], lines[1:]):
        return replace
    if _lacks_the_same(before, lines[0], lines[1:]):
        return "\n".join(
            [lines[0], *(before + line if line.strip() else line for line in lines[1:])]
        )
    raise EditRefused(
        RefusalReason.DOUBTFUL,
        "`find` omits the indentation of its line, so the indentation of the other lines of `replace` is unknown; "
        "quote the whole line with its indentation in both",
        [MatchCandidate(line + 1, layout.lines[line])],
    )


def _is_indented(own: str, first: str, rest: Sequence[str]) -> bool:
    """Check that the later lines are indented as in the file already."""
    later = [line for line in rest if line.strip()]
    indent = indent_of(later[0])
    if _opens(first):
        # A block that is opened is deeper than the line that opens it.
        return indent.startswith(own) and len(indent) > len(own)
    if indent:
        return True
    leaves = _first_token(first) in _LEAVES and not rest[0].strip()
    return leaves and _first_token(later[0]) in _DECLARES


def _lacks_the_same(own: str, first: str, rest: Sequence[str]) -> bool:
    """Check that they are surely written from the margin on, as the first one is."""
    later = [line for line in rest if line.strip()]
    indent = indent_of(later[0])
    if _opens(first):
        return bool(indent) and ("\t" in indent) == ("\t" in own)
    if indent or not rest[0].strip():
        return False
    at_margin = {_first_token(line) for line in later if not indent_of(line)}
    return not at_margin & (_CLOSES | _DECLARES)


def _opens(line: str) -> bool:
    return _OPENS.search(line) is not None


def _first_token(line: str) -> str:
    match = _FIRST_TOKEN.match(line)
    return match[0] if match else ""


_DOTS = r"(?:\.\.\.|\u2026)"
_OPENED = r"(?:\#|//|--|;|%|/\*|<!--)"
_ELISION = re.compile(rf"\s*(?:{_OPENED}\s*{_DOTS}.*|{_DOTS}\s*)$")
_LAZY_HINTS = r"(?:existing|rest|unchanged|remaining|same|previous|omitted|other)"
_LAZY = re.compile(
    rf"^[ \t]*{_OPENED}[ \t]*{_DOTS}.*\b{_LAZY_HINTS}\b", re.IGNORECASE | re.MULTILINE
)

_MAX_ANCHORS = 10_000
_MAX_PARTS = 20
"""The file is searched once for each."""


@dataclass(frozen=True)
class _SnippetPart:
    """Lines between two elisions, and what shall stand in their place."""

    find: tuple[str, ...]
    replacement: tuple[str, ...]

    @property
    def is_changed(self) -> bool:
        return self.find != self.replacement


def refuse_placeholder(find: str, replace: str) -> None:
    """Raise `EditRefused` for a replacement that says lines stay, where no lines were left out."""
    lazy = _LAZY.search(replace)
    if lazy is not None and lazy[0].strip() not in find:
        raise EditRefused(
            RefusalReason.DOUBTFUL,
            f"`replace` has {lazy[0].strip()[:100]!r} in place of lines; write the lines out, or elide the same lines in `find`",
        )


def elided_changes(
    layout: TextLayout, find: str, replace: str, at_line: int | None
) -> list[TextChange] | None:
    """The changes of an edit with elisions. None when it has none, or its lines do not stand there."""
    find_parts, replace_parts = _split(find), _split(replace)
    if not 2 <= len(find_parts) <= _MAX_PARTS or any(
        not any(line.strip() for line in part) for part in find_parts
    ):
        return None
    positions = _possible(layout, find_parts)
    if positions is None:
        return None
    if len(find_parts) != len(replace_parts):
        raise EditRefused(
            RefusalReason.DOUBTFUL,
            f"`find` elides lines at {len(find_parts) - 1} places and `replace` at {len(replace_parts) - 1}, so it is "
            "unknown which lines to keep; elide the same lines in both, or write them out",
            [MatchCandidate(positions[0][0] + 1, layout.lines[positions[0][0]])],
        )
    parts = [_SnippetPart(*pair) for pair in zip(find_parts, replace_parts, strict=True)]
    return [
        _change(layout, part, there, at_line)
        for part, there in zip(parts, positions, strict=True)
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


def _possible(layout: TextLayout, parts: Sequence[tuple[str, ...]]) -> list[list[int]] | None:
    """For each part the lines it may begin at, given that all stand there in order."""
    lines = [line.rstrip(" \t") for line in layout.lines]
    everywhere = [
        line_positions([line.rstrip(" \t") for line in part], lines, _MAX_ANCHORS) for part in parts
    ]
    if any(len(positions) == _MAX_ANCHORS for positions in everywhere):
        return None
    least = 0
    forward: list[list[int]] = []
    for part, positions in zip(parts, everywhere, strict=True):
        forward.append([position for position in positions if position >= least])
        if not forward[-1]:
            return None
        least = forward[-1][0] + len(part)
    most = len(lines)
    backward: list[list[int]] = []
    for part, positions in zip(reversed(parts), reversed(forward), strict=True):
        backward.append([position for position in positions if position + len(part) <= most])
        most = backward[-1][-1]
    return backward[::-1]


def _change(
    layout: TextLayout, part: _SnippetPart, positions: Sequence[int], at_line: int | None
) -> TextChange:
    matches = []
    for first in positions:
        last = first + len(part.find) - 1
        end = layout.starts[last] + len(layout.lines[last])
        matches.append(SnippetMatch(layout.starts[first], end, MatchLevel.ELIDED))
    match = one_of(matches, layout, at_line)
    start, end, text = match.start, match.end, "\n".join(part.replacement)
    if not part.replacement:  # whole lines go, with the end of the last
        end = min(end + 1, len(layout.text))
    return TextChange(start, end, text, MatchLevel.ELIDED)

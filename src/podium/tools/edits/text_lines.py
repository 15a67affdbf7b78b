"""Lines of a text: their ends, indentation, spelling, alignment and search in linear time.

Matching sees plain line feeds alone. What is not changed is taken from the original, so that every
line keeps the end it has.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from functools import cached_property
from itertools import accumulate

from podium.tools.edits.edit import EditRefused, MatchLevel, RefusalReason, TextChange

_MAX_PAIRS = 60_000
"""Comparing takes time by the product of both lengths, and at worst once for each item."""


@dataclass(frozen=True)
class LineBlock:
    """A run of old items and what stands in their place. `same`: they are equal, one by one."""

    same: bool
    old: int
    old_count: int
    new: int
    new_count: int


def aligned(old: Sequence[str], new: Sequence[str]) -> list[LineBlock]:
    """The blocks that both consist of, in order and without gaps."""
    head = _common(old, new)
    tail = _common(old[head:][::-1], new[head:][::-1])
    old_end, new_end = len(old) - tail, len(new) - tail
    blocks = [LineBlock(True, 0, head, 0, head)] if head else []
    blocks += _middle(old[head:old_end], new[head:new_end], head)
    if tail:
        blocks.append(LineBlock(True, old_end, tail, new_end, tail))
    return blocks


def _common(one: Sequence[str], other: Sequence[str]) -> int:
    count = 0
    for first, second in zip(one, other, strict=False):
        if first != second:
            break
        count += 1
    return count


def _middle(old: Sequence[str], new: Sequence[str], offset: int) -> list[LineBlock]:
    if not old and not new:
        return []
    if not old or not new or len(old) * len(new) > _MAX_PAIRS:
        return [LineBlock(False, offset, len(old), offset, len(new))]
    matcher = SequenceMatcher(None, old, new, autojunk=False)
    return [
        LineBlock(tag == "equal", offset + i, i_end - i, offset + j, j_end - j)
        for tag, i, i_end, j, j_end in matcher.get_opcodes()
    ]


class TextLayout:
    """The text of a file, its lines and their ends."""

    def __init__(self, original: str) -> None:
        self.original = original
        # The end of lines on old Macs. Beside line feeds it is a character like any other.
        self._old_mac = "\r" in original and "\n" not in original
        self._ends = re.findall(r"\r" if self._old_mac else r"\r?\n", original)
        self.text = self.plain(original)

    def plain(self, text: str) -> str:
        """A text with line feeds for the line ends that this file knows."""
        plain = text.replace("\r\n", "\n")
        return plain.replace("\r", "\n") if self._old_mac else plain

    @cached_property
    def lines(self) -> list[str]:
        """Without their ends. Behind a last line feed there is one more, empty."""
        return self.text.split("\n")

    @cached_property
    def starts(self) -> list[int]:
        """Offset of each line in `text`."""
        return [0, *accumulate(len(line) + 1 for line in self.lines[:-1])]

    def line_at(self, offset: int) -> int:
        """Index of the line that holds this character of `text`."""
        return bisect_right(self.starts, offset) - 1

    @cached_property
    def _longer_by(self) -> list[int]:
        """Extra characters of line ends before each line, beyond one each."""
        return [0, *accumulate(len(end) - 1 for end in self._ends)]

    def _in_original(self, offset: int) -> int:
        return offset + self._longer_by[self.line_at(offset)]

    @cached_property
    def _usual_end(self) -> str | None:
        counted = Counter(self._ends).most_common(1)
        return counted[0][0] if counted else None

    def rewritten(self, changes: Sequence[TextChange]) -> str:
        """The original with these changes, which are sorted and do not overlap."""
        parts: list[str] = []
        at = 0
        for change in changes:
            parts += [self.original[at : self._in_original(change.start)], self._ended(change)]
            at = self._in_original(change.end)
        return "".join([*parts, self.original[at:]])

    def _ended(self, change: TextChange) -> str:
        """The new text with line ends: lines that stay have their own, others the usual one."""
        usual = self._usual_end or "\n"
        pieces = change.text.split("\n")
        if len(set(self._ends)) < 2 or len(pieces) == 1:
            return usual.join(pieces)
        first = self.line_at(change.start)
        old = self.text[change.start : change.end].split("\n")
        ends = [usual] * len(pieces)
        for block in aligned(old, pieces):
            for index in range(min(block.old_count, block.new_count)):
                if block.old + index < len(old) - 1:
                    ends[block.new + index] = self._ends[first + block.old + index]
        ends[-1] = ""
        return "".join(piece + end for piece, end in zip(pieces, ends, strict=True))


_INDENT = re.compile(r"[ \t]*")


def indent_of(line: str) -> str:
    match = _INDENT.match(line)
    return match[0] if match else ""


@dataclass(frozen=True)
class IndentShift:
    """Conversion of a snippet's indentation into the file's."""

    level: MatchLevel = MatchLevel.LINES
    added: str = ""
    removed: str = ""
    mapped: dict[str, str] = field(default_factory=dict)
    """Indentation in the snippet → in the file, where tabs stand for spaces."""
    columns_per_tab: int | None = None
    """Of those; None when it cannot be told."""

    def of(self, line: str) -> str:
        """A line of the replacement as the file would indent it. Raises `EditRefused` in doubt."""
        if not line.strip():
            return line
        indent = indent_of(line)
        return self._indent(indent) + line[len(indent) :]

    def _indent(self, indent: str) -> str:
        if self.level is MatchLevel.TABS:
            return self._by_map(indent)
        if not indent.startswith(self.removed):
            raise EditRefused(
                RefusalReason.DOUBTFUL,
                "`find` is indented more than the file, and a line of `replace` is indented less than the "
                "difference; copy the indentation from the file",
            )
        return self.added + indent[len(self.removed) :]

    def _by_map(self, indent: str) -> str:
        if indent in self.mapped:
            return self.mapped[indent]
        columns = self.columns_per_tab
        to_tabs = any("\t" in own for own in self.mapped.values())
        if columns and to_tabs and "\t" not in indent and len(indent) % columns == 0:
            return "\t" * (len(indent) // columns)
        if columns and not to_tabs and " " not in indent:
            return " " * (columns * len(indent))
        raise EditRefused(
            RefusalReason.DOUBTFUL,
            "the file and `find` differ in tabs and spaces, so the indentation of a line of `replace` is "
            "unknown; copy the indentation from the file",
        )


NO_SHIFT = IndentShift()


def shift_between(snippet: Sequence[str], own: Sequence[str]) -> IndentShift | None:
    """The one shift that leads from a snippet's lines to the file's; None when there is none."""
    pairs = {
        (indent_of(line), indent_of(mine))
        for line, mine in zip(snippet, own, strict=True)
        if mine.strip()
    }
    return _uniform(pairs) or _tabbed(pairs)


def _uniform(pairs: set[tuple[str, str]]) -> IndentShift | None:
    if all(indent == mine for indent, mine in pairs):
        return NO_SHIFT
    indent, mine = next(iter(pairs))
    added = mine.removesuffix(indent) if mine.endswith(indent) else ""
    if added and all(own == added + theirs for theirs, own in pairs):
        return IndentShift(MatchLevel.INDENT, added=added)
    removed = indent.removesuffix(mine) if indent.endswith(mine) else ""
    if removed and all(theirs == removed + own for theirs, own in pairs):
        return IndentShift(MatchLevel.INDENT, removed=removed)
    return None


def _tabbed(pairs: set[tuple[str, str]]) -> IndentShift | None:
    """Pure tabs on one side and pure spaces on the other, in a fixed proportion from the margin on."""
    for spaces, tabs in (((0, 1)), (1, 0)):
        widths = {(pair[spaces], pair[tabs]) for pair in pairs if pair[spaces] or pair[tabs]}
        if any("\t" in wide or " " in narrow for wide, narrow in widths):
            continue
        if any(not wide or not narrow or len(wide) % len(narrow) for wide, narrow in widths):
            continue
        columns = {len(wide) // len(narrow) for wide, narrow in widths}
        if len(columns) == 1 and columns <= {2, 3, 4, 8}:
            return IndentShift(MatchLevel.TABS, mapped=dict(pairs), columns_per_tab=columns.pop())
    return None


# Blanks; words, with accents that are characters of their own; anything else by itself.
_TOKENS = re.compile(r"\s+|\w(?:\w|[\u0300-\u036f])*|[^\w\s]")
_LOOKALIKES = str.maketrans(
    {
        **dict.fromkeys("\u2018\u2019\u201a\u201b\u2032\u00b4", "'"),
        **dict.fromkeys("\u201c\u201d\u201e\u201f\u2033", '"'),
        **dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2015\u2212", "-"),
        **dict.fromkeys("\u00a0\u2000\u2001\u2002\u2003\u2004\u2005\u2006", " "),
        **dict.fromkeys("\u2007\u2008\u2009\u200a\u202f\u205f\u3000", " "),
    }
)

Key = Callable[[str], str]
"""Key of a line; lines with equal keys match."""


def folded(text: str) -> str:
    """Plain quotes, dashes and blanks for typographic ones, character by character."""
    return text.translate(_LOOKALIKES)


def as_it_is(body: str) -> str:
    return body


def spaced(body: str) -> str:
    """Runs of blanks as one."""
    if body.isascii():  # several times as quick, and nearly every line
        return " ".join(body.split())
    return re.sub(r"\s+", " ", body)


def looking(body: str) -> str:
    """As `spaced`, typographic characters as plain ones, accents composed."""
    if body.isascii():
        return spaced(body)
    return spaced(folded(unicodedata.normalize("NFC", body)))


def put_into(own: str, find: str, replacement: str) -> str:
    """The file's `own` line with the change that leads from `found` to `wanted`.

    Both `own` and `found` look the same. Words that the change leaves alone stay spelt as the file
    has them. Raises `EditRefused` where a word that the file spells differently is replaced: whether
    the difference shall go cannot be told.
    """
    if own == find:
        return replacement
    own_tokens, find_tokens = _TOKENS.findall(own), _TOKENS.findall(find)
    replacement_tokens = _TOKENS.findall(replacement)
    if [looking(token) for token in own_tokens] != [looking(token) for token in find_tokens]:
        raise _doubt()
    parts: list[str] = []
    for block in aligned(find_tokens, replacement_tokens):
        old = slice(block.old, block.old + block.old_count)
        if block.same:
            parts += own_tokens[old]
        elif block.new_count and own_tokens[old] != find_tokens[old]:
            raise _doubt()
        else:
            parts += replacement_tokens[block.new : block.new + block.new_count]
    return "".join(parts)


def _doubt() -> EditRefused:
    return EditRefused(
        RefusalReason.DOUBTFUL,
        "a line of `find` differs from the file in the part that is replaced; copy the line exactly from the file",
    )


MAX_MATCHES = 100
"""More than this many matches are as good as this many: nobody can tell which was meant."""


def line_positions(
    needle: Sequence[str], lines: Sequence[str], most: int = MAX_MATCHES
) -> list[int]:
    """Indexes at which all lines of `needle` stand in `lines`, overlapping ones too.

    Each line becomes one character, so that the search is that of `str.find`, which never goes
    back: comparing lists line by line takes time by the product of both in a file of equal lines.
    """
    if not needle or len(needle) > len(lines):
        return []
    symbols: dict[str, str] = {}
    for line in needle:
        symbols.setdefault(line, chr(len(symbols) + 1))
    pattern = "".join(symbols[line] for line in needle)
    return occurrences(pattern, "".join(symbols.get(line, "\0") for line in lines), most)


def occurrences(needle: str, text: str, most: int = MAX_MATCHES) -> list[int]:
    """Offsets at which `needle` stands in `text`, overlapping ones too, at most so many."""
    offsets: list[int] = []
    at = text.find(needle)
    while at >= 0 and len(offsets) < most:
        offsets.append(at)
        at = text.find(needle, at + 1)
    return offsets


class CollapsedText:
    """A text whose runs of blanks are one each, with the way back to the places in the whole."""

    def __init__(self, whole: str) -> None:
        self.whole = whole
        self._text = re.sub(r"[^\S\n]+", " ", whole)
        self._behind = [0]
        self._left_out = [0]
        for run in re.finditer(r"[^\S\n]{2,}", whole):
            self._behind.append(run.start() - self._left_out[-1] + 1)
            self._left_out.append(self._left_out[-1] + len(run[0]) - 1)

    def spans_of(self, needle: str) -> list[tuple[int, int]]:
        """Find `needle`, which begins and ends with no blank, in the whole."""
        return [
            (self._back(at), self._back(at + len(needle) - 1) + 1)
            for at in occurrences(needle, self._text)
        ]

    def _back(self, offset: int) -> int:
        return offset + self._left_out[bisect_right(self._behind, offset) - 1]

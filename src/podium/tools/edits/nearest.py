"""Where a text that was not found might have been meant, for the message to whoever sent it."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Sequence

from podium.tools.edits.nouns import Candidate
from podium.tools.edits.snippets import Lookup, body_of
from podium.tools.edits.tokens import looking

_MOST = 3
_USUAL = 50
"""A line that stands in a file more often says nothing about the place."""
_LONGEST_LINE = 2_000
_WORD = re.compile(r"\w{2,}")
# Cyrillic and Greek letters that look like Latin ones, and characters that do not show at all.
_SKELETON = {
    **str.maketrans("аеорсухіјѕһԁԛԝАВЕКМНОРСТХαοντρικ", "aeopcyxijshdqwABEKMHOPCTXaovtpik"),
    **dict.fromkeys((0x200B, 0x200C, 0x200D, 0x2060, 0xFEFF, 0x00AD)),
}


def nearest(lookup: Lookup, find: str) -> list[Candidate]:
    """At most three places that are like it, the likeliest first, with what is different there."""
    wanted = find.split("\n")
    firsts = _by_lines(lookup, wanted) or _by_words(lookup, wanted)
    return [_candidate(lookup.layout.lines, wanted, first) for first in firsts]


def _by_lines(lookup: Lookup, wanted: Sequence[str]) -> list[int]:
    """Places by how many lines of the text stand there."""
    keyed = lookup.keyed(_skeleton)
    sought = {_skeleton(body_of(line)) for line in wanted if body_of(line)}
    where: dict[str, list[int]] = defaultdict(list)
    for index, key in enumerate(keyed):
        if key in sought:
            where[key].append(index)
    votes: Counter[int] = Counter()
    for offset, line in enumerate(wanted):
        found = where.get(_skeleton(body_of(line)), [])
        if len(found) <= _USUAL:
            votes.update(index - offset for index in found)
    return [max(0, first) for first, _ in votes.most_common(_MOST)]


def _skeleton(body: str) -> str:
    """What is left of a line for somebody who looks at it in passing."""
    plain = looking(body)
    if not plain.isascii():
        plain = unicodedata.normalize("NFKC", plain).translate(_SKELETON)
    return plain.casefold()


def _by_words(lookup: Lookup, wanted: Sequence[str]) -> list[int]:
    """Places of lines that share words with the longest line of the text."""
    offset = max(range(len(wanted)), key=lambda index: len(wanted[index]))
    sought = set(_WORD.findall(wanted[offset][:_LONGEST_LINE]))
    shared: Counter[int] = Counter()
    for index, line in enumerate(lookup.layout.lines):
        count = len(sought.intersection(_WORD.findall(line[:_LONGEST_LINE])))
        if count * 2 >= len(sought) and count:
            shared[index] = count
    return [max(0, index - offset) for index, _ in shared.most_common(_MOST)]


def _candidate(lines: Sequence[str], wanted: Sequence[str], first: int) -> Candidate:
    """The first line that differs tells most."""
    for offset, line in enumerate(wanted):
        index = first + offset
        if index >= len(lines):
            return Candidate(len(lines), lines[-1], "the file ends here")
        if lines[index] != line:
            return Candidate(index + 1, lines[index], _difference(lines[index], line))
    return Candidate(first + 1, lines[first])


def _difference(own: str, line: str) -> str:
    if own.rstrip(" \t") == line.rstrip(" \t"):
        return "blanks at its end"
    if body_of(own) == body_of(line):
        return "its indentation"
    pairs = enumerate(zip(own, line, strict=False))
    at = next((index for index, (one, other) in pairs if one != other), min(len(own), len(line)))
    return f"at column {at + 1} it has {_named(own, at)}, `find` has {_named(line, at)}"


def _named(text: str, at: int) -> str:
    if at >= len(text):
        return "its end"
    char = text[at]
    if char.isascii() and char.isprintable():
        return repr(char)
    return f"U+{ord(char):04X} {unicodedata.name(char, 'without a name')}"

"""Application of all edits to a text, or of none, and the nearest match for the error."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from dataclasses import replace as with_changes
from itertools import pairwise

from podium.tools.edits.edit import (
    EditRefused,
    MatchCandidate,
    MatchLevel,
    RefusalReason,
    TextChange,
    TextEdit,
    unwrapped,
)
from podium.tools.edits.snippet_match import (
    SnippetLookup,
    SnippetMatch,
    body_of,
    elided_changes,
    indent_and_body,
    indented_as_its_line,
    loose_matches,
    one_of,
    refuse_placeholder,
)
from podium.tools.edits.text_lines import (
    IndentShift,
    LineBlock,
    TextLayout,
    aligned,
    looking,
    occurrences,
    put_into,
)


def merged(
    own: Sequence[str], find: Sequence[str], replacement: Sequence[str], shift: IndentShift
) -> str:
    """Return the new text for the file's `own` lines, which matched the lines of `find`.

    Lines of `find` that are also in `replacement` stay as they are in the file; others are
    indented as the file is. Raises `EditRefused` when that cannot be done beyond doubt.
    """
    lines: list[str] = []
    for block in aligned(
        [line.rstrip(" \t") for line in find], [x.rstrip(" \t") for x in replacement]
    ):
        old = slice(block.old, block.old + block.old_count)
        if block.same:
            lines += own[old]
        else:
            new = replacement[block.new : block.new + block.new_count]
            lines += _changed(own[old], find[old], new, block, shift)
    return "\n".join(lines)


def _changed(
    own: Sequence[str],
    find: Sequence[str],
    replacement: Sequence[str],
    block: LineBlock,
    shift: IndentShift,
) -> list[str]:
    if block.old_count == block.new_count:
        return [_line(*lines, shift) for lines in zip(own, find, replacement, strict=True)]
    if block.new_count:
        for mine, line in zip(own, find, strict=True):
            if indent_and_body(mine)[1] != indent_and_body(line)[1]:
                raise EditRefused(
                    RefusalReason.DOUBTFUL,
                    "a line of `find` differs from the line in the file that it would replace; copy the line "
                    "exactly from the file",
                )
    return [shift.of(line) for line in replacement]


def _line(own: str, find: str, replacement: str, shift: IndentShift) -> str:
    if not find.strip() or not replacement.strip():
        return shift.of(replacement)
    (own_indent, own_body), (indent, body) = indent_and_body(own), indent_and_body(find)
    new_indent, new_body = indent_and_body(replacement)
    indentation = (
        own_indent
        if new_indent == indent
        else shift.of(replacement)[: -len(replacement.lstrip(" \t"))]
    )
    tail = _tail(own) if _tail(replacement) == _tail(find) else _tail(replacement)
    return indentation + put_into(own_body, body, new_body) + tail


def _tail(line: str) -> str:
    """The blanks at its end."""
    return line[len(line.rstrip(" \t")) :]


_MAX_COUNT = 3
_USUAL = 50
"""A line that stands in a file more often says nothing about the place."""
_MAX_LINE = 2_000
_TOKEN = re.compile(r"\w{2,}")
# Cyrillic and Greek letters that look like Latin ones, and characters that do not show at all.
_SKELETON = {
    **str.maketrans("аеорсухіјѕһԁԛԝАВЕКМНОРСТХαοντρικ", "aeopcyxijshdqwABEKMHOPCTXaovtpik"),
    **dict.fromkeys((0x200B, 0x200C, 0x200D, 0x2060, 0xFEFF, 0x00AD)),
}


def nearest(lookup: SnippetLookup, find: str) -> list[MatchCandidate]:
    """At most three places that are like it, the likeliest first, with what is different there."""
    snippet = find.split("\n")
    firsts = _by_lines(lookup, snippet) or _by_tokens(lookup, snippet)
    return [_candidate(lookup.layout.lines, snippet, first) for first in firsts]


def _by_lines(lookup: SnippetLookup, snippet: Sequence[str]) -> list[int]:
    """Return positions by the number of lines of the snippet there."""
    keyed = lookup.keyed(_skeleton)
    sought = {_skeleton(body_of(line)) for line in snippet if body_of(line)}
    where: dict[str, list[int]] = defaultdict(list)
    for index, key in enumerate(keyed):
        if key in sought:
            where[key].append(index)
    votes: Counter[int] = Counter()
    for offset, line in enumerate(snippet):
        indexes = where.get(_skeleton(body_of(line)), [])
        if len(indexes) <= _USUAL:
            votes.update(index - offset for index in indexes)
    return [max(0, first) for first, _ in votes.most_common(_MAX_COUNT)]


def _skeleton(body: str) -> str:
    """Reduce a line to what a person sees at a glance."""
    plain = looking(body)
    if not plain.isascii():
        plain = unicodedata.normalize("NFKC", plain).translate(_SKELETON)
    return plain.casefold()


def _by_tokens(lookup: SnippetLookup, snippet: Sequence[str]) -> list[int]:
    """Return lines that share words with the longest line of the snippet."""
    offset = max(range(len(snippet)), key=lambda index: len(snippet[index]))
    sought = set(_TOKEN.findall(snippet[offset][:_MAX_LINE]))
    shared: Counter[int] = Counter()
    for index, line in enumerate(lookup.layout.lines):
        count = len(sought.intersection(_TOKEN.findall(line[:_MAX_LINE])))
        if count * 2 >= len(sought) and count:
            shared[index] = count
    return [max(0, index - offset) for index, _ in shared.most_common(_MAX_COUNT)]


def _candidate(lines: Sequence[str], snippet: Sequence[str], first: int) -> MatchCandidate:
    """The first line that differs tells most."""
    for offset, line in enumerate(snippet):
        index = first + offset
        if index >= len(lines):
            return MatchCandidate(len(lines), lines[-1], "the file ends here")
        if lines[index] != line:
            return MatchCandidate(index + 1, lines[index], _difference(lines[index], line))
    return MatchCandidate(first + 1, lines[first])


def _difference(own: str, line: str) -> str:
    if own.rstrip(" \t") == line.rstrip(" \t"):
        return "trailing whitespace"
    if body_of(own) == body_of(line):
        return "indentation"
    pairs = enumerate(zip(own, line, strict=False))
    at = next((index for index, (one, other) in pairs if one != other), min(len(own), len(line)))
    return f"at column {at + 1} it has {_named(own, at)}, `find` has {_named(line, at)}"


def _named(text: str, at: int) -> str:
    if at >= len(text):
        return "the end of the line"
    char = text[at]
    if char.isascii() and char.isprintable():
        return repr(char)
    return f"U+{ord(char):04X} {unicodedata.name(char, 'unnamed')}"


_STRICT = (MatchLevel.LINES, MatchLevel.INDENT, MatchLevel.TABS)


@dataclass(frozen=True)
class AppliedEdit:
    """Line of one edit, and the level at which it matched."""

    line: int
    """From 1, in the original."""
    level: MatchLevel


@dataclass(frozen=True)
class EditResult:
    """The new text, and what was done."""

    before: TextLayout
    text: str
    changes: tuple[TextChange, ...]
    """Sorted by place."""
    done: tuple[AppliedEdit, ...]
    """In the order of the edits."""


def apply_edits(text: str, edits: Sequence[TextEdit]) -> EditResult:
    """All edits made in the text. Raises `EditRefused` when one of them cannot be, beyond doubt."""
    lookup = SnippetLookup(TextLayout(text))
    numbered: list[tuple[int, TextChange]] = []
    done: list[AppliedEdit] = []
    for number, edit in enumerate(edits, start=1):
        try:
            changes = _changes_of(edit, lookup)
        except EditRefused as refused:
            raise refused.of_edit(number) from None
        numbered += [(number, change) for change in changes]
        done.append(AppliedEdit(lookup.layout.line_at(changes[0].start) + 1, changes[0].level))
    return rewritten(
        lookup.layout, numbered, done, "the edits change nothing: the file already has the new text"
    )


def rewritten(
    layout: TextLayout,
    numbered: list[tuple[int, TextChange]],
    done: Sequence[AppliedEdit],
    unchanged: str,
) -> EditResult:
    """Make the numbered changes. Raises `EditRefused` for overlaps, and with `unchanged` when the text stays the same."""
    numbered.sort(key=lambda item: (item[1].start, item[1].end))
    refuse_overlaps(layout, numbered)
    changes = [change for _, change in numbered]
    after = layout.rewritten(changes)
    if after == layout.original:
        raise EditRefused(RefusalReason.NOTHING, unchanged)
    return EditResult(layout, after, tuple(changes), tuple(done))


def refuse_overlaps(layout: TextLayout, numbered: Sequence[tuple[int, TextChange]]) -> None:
    """Raise `EditRefused` when two of the numbered, sorted changes touch the same text."""
    for (number, change), (other, following) in pairwise(numbered):
        if following.start < change.end:
            line = layout.line_at(following.start)
            raise EditRefused(
                RefusalReason.OVERLAP,
                f"edits {number} and {other} change the same text; make them one edit",
                [MatchCandidate(line + 1, layout.lines[line])],
                max(number, other),
            )


def _changes_of(edit: TextEdit, lookup: SnippetLookup) -> list[TextChange]:
    """Return the changes of one edit, at least one."""
    find, replace = lookup.layout.plain(edit.find), lookup.layout.plain(edit.replace)
    edit = with_changes(edit, find=find, replace=replace)
    if not find:
        raise EditRefused(RefusalReason.MISSING, "`find` is empty; quote the text to replace")
    if find == replace:
        raise EditRefused(
            RefusalReason.NOTHING,
            "`find` and `replace` are the same, so nothing would change; set `replace` to the new text",
        )
    refuse_placeholder(find, replace)
    changes = _exact(edit, lookup) or _loose(edit, lookup) or _elided(edit, lookup)
    changes = changes or _unwrapped(edit, lookup)
    if not changes:
        raise _missing(edit, lookup)
    return changes


def _exact(edit: TextEdit, lookup: SnippetLookup) -> list[TextChange]:
    layout = lookup.layout
    offsets = occurrences(edit.find, layout.text)
    if not offsets:
        return []
    matches = [SnippetMatch(at, at + len(edit.find), MatchLevel.EXACT) for at in offsets]
    match = one_of(matches, layout, edit.at_line)
    replace = indented_as_its_line(layout, match, edit.find, edit.replace)
    return [TextChange(match.start, match.end, replace, MatchLevel.EXACT)]


def _loose(edit: TextEdit, lookup: SnippetLookup) -> list[TextChange]:
    find, replace, deletes = _trimmed(edit.find, edit.replace)
    matches = loose_matches(lookup, find) if find.strip() else []
    if not matches:
        return []
    match = one_of(matches, lookup.layout, edit.at_line)
    return [_change(lookup.layout, match, find, replace, deletes=deletes)]


def _trimmed(find: str, replace: str) -> tuple[str, str, bool]:
    """Without line ends that both begin or end with; whether whole lines go, with their ends."""
    while find.startswith("\n") and replace.startswith("\n"):
        find, replace = find[1:], replace[1:]
    while find.endswith("\n") and replace.endswith("\n"):
        find, replace = find[:-1], replace[:-1]
    deletes = not replace and find.endswith("\n")
    return (find[:-1] if deletes else find), replace, deletes


def _change(
    layout: TextLayout, match: SnippetMatch, find: str, replace: str, *, deletes: bool
) -> TextChange:
    if deletes:
        return TextChange(match.start, min(match.end + 1, len(layout.text)), "", match.level)
    if match.is_part and find.count("\n") != replace.count("\n"):
        raise EditRefused(
            RefusalReason.DOUBTFUL,
            "`find` is part of a line and differs from the text in the file, and `replace` has a different number "
            "of lines; quote whole lines with their indentation",
        )
    own = layout.text[match.start : match.end].split("\n")
    try:
        text = merged(own, find.split("\n"), replace.split("\n"), match.shift)
    except EditRefused as refused:
        line = layout.line_at(match.start)
        candidate = MatchCandidate(line + 1, layout.lines[line])
        raise EditRefused(refused.reason, refused.message, [candidate]) from None
    return TextChange(match.start, match.end, text, match.level)


def _elided(edit: TextEdit, lookup: SnippetLookup) -> list[TextChange]:
    return elided_changes(lookup.layout, edit.find, edit.replace, edit.at_line) or []


def _unwrapped(edit: TextEdit, lookup: SnippetLookup) -> list[TextChange]:
    layout = lookup.layout
    for other in unwrapped(edit):
        find, replace = other.edit.find, other.edit.replace
        matches = loose_matches(lookup, find) if find.strip() else []
        matches = [match for match in matches if match.level in _STRICT]
        if other.line is not None:
            matches = [match for match in matches if layout.line_at(match.start) + 1 == other.line]
        if matches:
            match = one_of(matches, layout, edit.at_line)
            change = _change(layout, match, find, replace, deletes=False)
            return [with_changes(change, level=MatchLevel.PASTED)]
    return []


def _missing(edit: TextEdit, lookup: SnippetLookup) -> EditRefused:
    layout = lookup.layout
    there = occurrences(edit.replace, layout.text) if len(edit.replace.strip()) >= 4 else []
    if there:
        line = layout.line_at(there[0])
        message = f"`find` was not found in the file, but `replace` was, at line {line + 1}; the edit seems to be done"
        return EditRefused(
            RefusalReason.MISSING, message, [MatchCandidate(line + 1, layout.lines[line])]
        )
    near = nearest(lookup, edit.find)
    message = "`find` was not found in the file; read the file again and quote its text exactly"
    return EditRefused(RefusalReason.MISSING, message, near)

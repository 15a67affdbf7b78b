"""Hunks of a patch put where their lines are, and unified diffs of known changes.

A hunk says more of its place than an edit does: it stands behind the hunk before it, and it may have
the number of a line, a line above it or the end of the file for a mark. These choose among equal
places and never make one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from podium.tools.edits.application import AppliedEdit, EditResult, merged, nearest, rewritten
from podium.tools.edits.edit import (
    EditRefused,
    MatchCandidate,
    MatchLevel,
    RefusalReason,
    TextChange,
)
from podium.tools.edits.snippet_match import (
    MAX_CANDIDATES,
    SnippetLookup,
    SnippetMatch,
    body_of,
    whole_line_matches,
)
from podium.tools.edits.text_lines import TextLayout, aligned, indent_of, line_positions


@dataclass(frozen=True)
class Hunk:
    """Lines that stand together in a file, and what shall stand there."""

    old: tuple[str, ...]
    new: tuple[str, ...]
    line: int | None = None
    """Number of its first line as the hunk has it, from 1."""
    below: tuple[str, ...] = ()
    """Lines that it says stand above it, such as the head of a function."""
    at_end: bool = False
    """It says that it reaches to the end of the file."""
    ends_open: tuple[bool, bool] = (False, False)
    """True where the file's last line has no line end, before and after."""


def apply_hunks(text: str, hunks: Sequence[Hunk]) -> EditResult:
    """All hunks made in the text. Raises `EditRefused` when one of them cannot be, beyond doubt."""
    lookup = SnippetLookup(TextLayout(text))
    numbered: list[tuple[int, TextChange]] = []
    done: list[AppliedEdit] = []
    behind = drift = 0
    for number, hunk in enumerate(hunks, start=1):
        try:
            match = _find_match(lookup, hunk, behind, drift)
            change = _change(lookup.layout, match, hunk)
        except EditRefused as refused:
            raise _of_hunk(refused, number) from None
        line = lookup.layout.line_at(match.start) + 1
        behind, drift = match.end, line - hunk.line if hunk.line else drift
        numbered.append((number, change))
        done.append(AppliedEdit(line, match.level))
    return rewritten(
        lookup.layout, numbered, done, "the patch changes nothing: the file already has its changes"
    )


def _find_match(lookup: SnippetLookup, hunk: Hunk, behind: int, drift: int) -> SnippetMatch:
    if not hunk.old:
        return _end_of_file(lookup.layout, hunk)
    matches = _matches(lookup, hunk)
    if not matches:
        message = "the lines of the hunk were not found in the file; read the file again and quote its lines exactly"
        raise EditRefused(RefusalReason.MISSING, message, nearest(lookup, "\n".join(hunk.old)))
    if len(matches) == 1:
        return matches[0]
    layout = lookup.layout
    for choice in (
        [match for match in matches if _is_marked(layout, match, hunk, drift)],
        [match for match in matches if match.start >= behind],
    ):
        if len(choice) == 1:
            return choice[0]
    lines = [layout.line_at(match.start) for match in matches[:MAX_CANDIDATES]]
    message = f"the lines of the hunk match at {len(matches)} places; quote more surrounding lines"
    candidates = [MatchCandidate(line + 1, layout.lines[line]) for line in lines]
    raise EditRefused(RefusalReason.AMBIGUOUS, message, candidates)


def _of_hunk(refused: EditRefused, number: int) -> EditRefused:
    """Reword a refusal for hunks: the sender of a patch knows of no `find`."""
    message = refused.message.replace("`find`", "the hunk").replace("`replace`", "its new text")
    return EditRefused(refused.reason, message, refused.candidates, number)


def _matches(lookup: SnippetLookup, hunk: Hunk) -> list[SnippetMatch]:
    """Places of its lines by the strictest tolerance that finds any."""
    layout = lookup.layout
    exact = [
        _match(layout, first, first + len(hunk.old) - 1)
        for first in line_positions(hunk.old, layout.lines)
    ]
    return exact or whole_line_matches(lookup, hunk.old)


def _match(layout: TextLayout, first: int, last: int) -> SnippetMatch:
    end = layout.starts[last] + len(layout.lines[last])
    return SnippetMatch(layout.starts[first], end, MatchLevel.EXACT)


def _is_marked(layout: TextLayout, match: SnippetMatch, hunk: Hunk, drift: int) -> bool:
    """Check that the match agrees with every hint of the hunk, and there is at least one."""
    hints: list[bool] = []
    if hunk.line is not None:
        hints.append(layout.line_at(match.start) + 1 == hunk.line + drift)
    if hunk.below:
        hints.append(_lies_below(layout, match, hunk.below))
    if hunk.at_end:
        hints.append(not layout.text[match.end :].strip("\n"))
    return bool(hints) and all(hints)


def _lies_below(layout: TextLayout, match: SnippetMatch, heads: Sequence[str]) -> bool:
    """Check that the match lies in the block of the last head, that one in the block of the head before it, and so on."""
    at, depth = layout.line_at(match.start), None
    for head in reversed(heads):
        at, depth = _head_above(layout, at, body_of(head), depth)
        if at < 0:
            return False
    return True


def _head_above(
    layout: TextLayout, below: int, head: str, depth: int | None
) -> tuple[int, int | None]:
    """Return the nearest such line above whose block has not ended since."""
    for at in range(below - 1, -1, -1):
        line = layout.lines[at]
        if not line.strip():
            continue
        own = len(indent_of(line))
        if depth is not None and own >= depth:
            continue
        if _begins_with(body_of(line), head):
            return at, own
        depth = own
    return -1, depth


def _begins_with(body: str, head: str) -> bool:
    """Check that the line is the head, or goes on behind it: `class A` matches `class A(B):`."""
    after = body[len(head) : len(head) + 1]
    return body.startswith(head) and not (after.isalnum() or after == "_")


def _end_of_file(layout: TextLayout, hunk: Hunk) -> SnippetMatch:
    if hunk.at_end or not layout.text:
        return SnippetMatch(len(layout.text), len(layout.text), MatchLevel.EXACT)
    raise EditRefused(
        RefusalReason.DOUBTFUL,
        "the hunk has only new lines, so its place is unknown; quote lines of the file around them",
    )


def _change(layout: TextLayout, match: SnippetMatch, hunk: Hunk) -> TextChange:
    if not hunk.old:
        return TextChange(match.start, match.end, _appended(layout, hunk), match.level)
    if not hunk.new:
        return TextChange(match.start, min(match.end + 1, len(layout.text)), "", match.level)
    own = layout.text[match.start : match.end].split("\n")
    try:
        text = merged(own, hunk.old, hunk.new, match.shift)
    except EditRefused as refused:
        line = layout.line_at(match.start)
        candidate = MatchCandidate(line + 1, layout.lines[line])
        raise EditRefused(refused.reason, refused.message, [candidate]) from None
    return _with_end(layout, TextChange(match.start, match.end, text, match.level), hunk)


def _appended(layout: TextLayout, hunk: Hunk) -> str:
    text = "\n".join(hunk.new)
    if layout.text and not layout.text.endswith("\n"):
        return f"\n{text}"
    return text if hunk.ends_open[1] else f"{text}\n"


def _with_end(layout: TextLayout, change: TextChange, hunk: Hunk) -> TextChange:
    """The file keeps its last line end, or goes on without, unless the hunk says otherwise."""
    before, after = hunk.ends_open
    rest = layout.text[change.end :]
    if before == after or rest.strip("\n"):
        return change
    end = len(layout.text)
    return TextChange(change.start, end, change.text + ("" if after else "\n"), change.level)


_CONTEXT = 3


@dataclass(frozen=True)
class _LineSpan:
    """Whole lines of the old text, and the number of those in their place."""

    first: int
    end: int
    new_first: int
    new_end: int


def unified_diff(path: str, before: TextLayout, after: str, changes: Sequence[TextChange]) -> str:
    """Format the changes as `diff -u` does. `changes` are sorted; a last line without an end is marked."""
    old, new = _lines(before.original), _lines(after)
    parts = [f"--- a/{path}\n", f"+++ b/{path}\n"]
    for hunk in _hunks(_spans(before, changes), len(old)):
        parts += _hunk(old, new, hunk)
    return "".join(parts)


def diff_between(path: str, before: str | None, after: str | None, *, was: str = "") -> str:
    """Compare two whole texts as `diff -u` does; None is no file. `was` is the path before, if another."""
    old, new = _lines(before or ""), _lines(after or "")
    spans = (
        _LineSpan(block.old, block.old + block.old_count, block.new, block.new + block.new_count)
        for block in aligned(old, new)
        if not block.same
    )
    head = "/dev/null" if before is None else f"a/{was or path}"
    parts = [f"--- {head}\n", f"+++ {'/dev/null' if after is None else f'b/{path}'}\n"]
    for hunk in _hunks(spans, len(old)):
        parts += _hunk(old, new, hunk)
    return "".join(parts)


def _lines(text: str) -> list[str]:
    """With their ends. Not `splitlines`, to which a form feed is an end as well."""
    cut = "\n" if "\n" in text else "\r"
    lines = [line + cut for line in text.split(cut)]
    lines[-1] = lines[-1][:-1]
    return lines if lines[-1] else lines[:-1]


def _spans(before: TextLayout, changes: Sequence[TextChange]) -> Iterator[_LineSpan]:
    moved = 0
    for change in changes:
        first, last = before.line_at(change.start), before.line_at(change.end)
        grown = change.text.count("\n") - (last - first)
        yield _LineSpan(first, last + 1, first + moved, last + 1 + moved + grown)
        moved += grown


def _hunks(spans: Iterator[_LineSpan], old_count: int) -> Iterator[list[_LineSpan]]:
    """Spans whose context touches stand in one hunk; those that share a line are one span."""
    hunk: list[_LineSpan] = []
    for span in spans:
        if hunk and span.first < hunk[-1].end:
            joined = hunk.pop()
            hunk.append(_LineSpan(joined.first, span.end, joined.new_first, span.new_end))
        elif hunk and span.first - hunk[-1].end > 2 * _CONTEXT:
            yield hunk
            hunk = [span]
        else:
            hunk.append(span)
    if hunk:
        yield hunk


def _hunk(old: Sequence[str], new: Sequence[str], spans: Sequence[_LineSpan]) -> list[str]:
    begin, end = max(0, spans[0].first - _CONTEXT), min(len(old), spans[-1].end + _CONTEXT)
    shift = spans[-1].new_end - spans[-1].end
    new_begin = spans[0].new_first - (spans[0].first - begin)
    new_end = min(len(new), end + shift) if end > spans[-1].end else len(new[: spans[-1].new_end])
    head = f"@@ -{_range(begin, end)} +{_range(new_begin, new_end)} @@\n"
    body: list[str] = []
    for block in aligned(old[begin:end], new[new_begin:new_end]):
        was = old[begin + block.old : begin + block.old + block.old_count]
        now = new[new_begin + block.new : new_begin + block.new + block.new_count]
        if block.same:
            body += [_marked(" ", line) for line in was]
        else:
            body += [_marked("-", line) for line in was] + [_marked("+", line) for line in now]
    return [head, *body]


def _range(begin: int, end: int) -> str:
    count = end - begin
    first = begin + 1 if count else begin
    return f"{first}" if count == 1 else f"{first},{count}"


def _marked(sign: str, line: str) -> str:
    return (
        sign + line
        if line.endswith(("\n", "\r"))
        else f"{sign}{line}\n\\ No newline at end of file\n"
    )

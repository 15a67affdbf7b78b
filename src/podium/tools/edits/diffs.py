"""A unified diff of known changes, in time that goes by the changes and not by the file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from podium.tools.edits.aligning import aligned
from podium.tools.edits.layout import Layout
from podium.tools.edits.nouns import Change

_CONTEXT = 3


@dataclass(frozen=True)
class _Span:
    """Whole lines of the old text, and the number of those in their place."""

    first: int
    end: int
    new_first: int
    new_end: int


def unified_diff(path: str, before: Layout, after: str, changes: Sequence[Change]) -> str:
    """What `diff -u` would say. `changes` are sorted; a last line without an end is marked."""
    old, new = _lines(before.original), _lines(after)
    parts = [f"--- a/{path}\n", f"+++ b/{path}\n"]
    for hunk in _hunks(_spans(before, changes), len(old)):
        parts += _hunk(old, new, hunk)
    return "".join(parts)


def diff_between(path: str, before: str | None, after: str | None, *, was: str = "") -> str:
    """What `diff -u` would say of two whole texts; None is no file. `was` is the path before, if another."""
    old, new = _lines(before or ""), _lines(after or "")
    spans = (
        _Span(each.old, each.old + each.old_count, each.new, each.new + each.new_count)
        for each in aligned(old, new)
        if not each.same
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


def _spans(before: Layout, changes: Sequence[Change]) -> Iterator[_Span]:
    moved = 0
    for change in changes:
        first, last = before.line_at(change.start), before.line_at(change.end)
        grown = change.text.count("\n") - (last - first)
        yield _Span(first, last + 1, first + moved, last + 1 + moved + grown)
        moved += grown


def _hunks(spans: Iterator[_Span], old_count: int) -> Iterator[list[_Span]]:
    """Spans whose context touches stand in one hunk; those that share a line are one span."""
    hunk: list[_Span] = []
    for span in spans:
        if hunk and span.first < hunk[-1].end:
            joined = hunk.pop()
            hunk.append(_Span(joined.first, span.end, joined.new_first, span.new_end))
        elif hunk and span.first - hunk[-1].end > 2 * _CONTEXT:
            yield hunk
            hunk = [span]
        else:
            hunk.append(span)
    if hunk:
        yield hunk


def _hunk(old: Sequence[str], new: Sequence[str], spans: Sequence[_Span]) -> list[str]:
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

"""What a call would change in files, as lines that go and lines that come."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Literal

from podium.domain import guarded_files
from podium.domain.model import Json
from podium.domain.orders import WorkOrder
from podium.telling.approval_words import diff_counts, diff_lines
from podium.telling.untrusted import shown_line

MOST_LINES = 60
"""Of one change among many cards; a card alone shows all."""

MOST_COMPARED = 40_000
"""Lines that go times lines that come. To compare more takes time by the square, or worse."""

LineKind = Literal["add", "del", "at", "same"]


@dataclass(frozen=True)
class ChangedLine:
    kind: LineKind
    text: str


@dataclass(frozen=True)
class Change:
    """One file, and what would become of it."""

    title: str
    lines: tuple[ChangedLine, ...] = ()
    left_out: int = 0


def changes_of(
    tool: str, arguments: Mapping[str, Json], *, diff: str = "", most: int | None = MOST_LINES
) -> tuple[Change, ...]:
    """The changes that a call of this tool names in its arguments; none where it names none.

    `diff` is against the file that a write replaces.
    """
    path = shown_line(str(arguments.get("path", "")))
    match tool:
        case "write_file" if diff:
            return (_cut(f"write {path}, {diff_counts(diff)}", map(_told, diff_lines(diff)), most),)
        case "write_file":
            return (_cut(f"write {path}", _added(arguments.get("content")), most),)
        case "append_to_file":
            return (_cut(f"add to the end of {path}", _added(arguments.get("content")), most),)
        case "replace_in_file":
            lines = _replaced((arguments.get("find"), arguments.get("replace")))
            return (_cut(f"edit {path}", lines, most),)
        case "edit_file":
            return (_cut(f"edit {path}", _edits(arguments), most),)
        case "apply_patch":
            return (_cut("apply a patch", _patched(arguments.get("patch")), most),)
        case guarded_files.GUARDED_TOOL:
            branch = shown_line(str(arguments.get("branch", "")))
            return (_cut(f"guarded files of {branch}", _patched(arguments.get("diff")), most),)
        case _:
            return ()


def changes_in(order: WorkOrder, *, most: int | None = MOST_LINES) -> tuple[Change, ...]:
    """Every operation of an order, in its order, each with what it writes."""
    found = []
    for number, op in enumerate(order.ops, start=1):
        made = changes_of(*op.call, most=most)
        title = f"{number}. {shown_line(op.line)}"
        found.append(Change(title, made[0].lines, made[0].left_out) if made else Change(title))
    return tuple(found)


def _cut(title: str, lines: Iterator[ChangedLine], most: int | None) -> Change:
    found = tuple(lines)
    kept = found if most is None else found[:most]
    return Change(title, kept, len(found) - len(kept))


def _added(content: Json) -> Iterator[ChangedLine]:
    yield from (ChangedLine("add", shown_line(line)) for line in _lines(content))


def _replaced(*edits: tuple[Json, Json]) -> Iterator[ChangedLine]:
    """What is found and what comes instead; of large ones all that goes, and then all that comes."""
    pairs = [(_lines(find), _lines(replace)) for find, replace in edits]
    compared = sum(len(before) * len(after) for before, after in pairs) <= MOST_COMPARED
    for before, after in pairs:
        if compared:
            told = difflib.unified_diff(before, after, n=2, lineterm="")
            # The heads that stand first, by their place: a changed line may look like one.
            yield from map(_told, islice(told, 2, None))
        else:
            yield from (ChangedLine("del", shown_line(line)) for line in before)
            yield from (ChangedLine("add", shown_line(line)) for line in after)


def _edits(arguments: Mapping[str, Json]) -> Iterator[ChangedLine]:
    edits = arguments.get("edits")
    named = [edit for edit in edits if isinstance(edit, dict)] if isinstance(edits, list) else []
    yield from _replaced(*((edit.get("find"), edit.get("replace")) for edit in named))
    if isinstance(change := arguments.get("change"), str):
        yield from _patched(change)


def _patched(patch: Json) -> Iterator[ChangedLine]:
    for line in _lines(patch):
        is_head = line.startswith(("+++ ", "--- ", "*** ", "diff "))
        yield ChangedLine("at", shown_line(line)) if is_head else _told(line)


def _told(line: str) -> ChangedLine:
    kinds: dict[str, LineKind] = {"+": "add", "-": "del", "@": "at"}
    kind = kinds.get(line[:1], "same")
    return ChangedLine(kind, shown_line(line[1:] if kind in ("add", "del") else line))


def _lines(text: Json) -> list[str]:
    # Only these end a line of a file; what else breaks lines is written out.
    return text.removesuffix("\n").split("\n") if isinstance(text, str) and text else []

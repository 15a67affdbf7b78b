"""The format with a section for each file, between `*** Begin Patch` and `*** End Patch`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from podium.tools.edits import Hunk
from podium.tools.patches.bodies import Body
from podium.tools.patches.nouns import FilePatch, named, unreadable

BEGIN = "*** Begin Patch"
_END = "*** End Patch"
_ADD, _DELETE, _UPDATE = "*** Add File:", "*** Delete File:", "*** Update File:"
_MOVE = "*** Move to:"
_END_OF_FILE = "*** End of File"
_NUMBERED = re.compile(r"@@ -(\d+)(?:,\d+)? \+\d+(?:,\d+)? @@")


def read_sections(lines: Sequence[str]) -> Iterator[FilePatch]:
    """The files of a patch in this format. Raises `PatchUnreadable`."""
    at = next(number for number, line in enumerate(lines) if line.strip() == BEGIN) + 1
    ends = [number for number, line in enumerate(lines) if line.strip() == _END]
    if not ends or any(line.strip() for line in lines[ends[0] + 1 :]):
        raise unreadable(lines, len(lines), f"`{_END}` must be its last line")
    while at < ends[0]:
        if not lines[at].strip():
            at += 1
            continue
        end = _next_section(lines, at + 1, ends[0])
        yield _section(lines, at, end)
        at = end


def _next_section(lines: Sequence[str], at: int, end: int) -> int:
    while at < end and not lines[at].startswith((_ADD, _DELETE, _UPDATE)):
        at += 1
    return at


def _section(lines: Sequence[str], at: int, end: int) -> FilePatch:
    head = lines[at]
    for mark in (_ADD, _DELETE, _UPDATE):
        if head.startswith(mark):
            path = named(lines, at, head.removeprefix(mark).strip())
            break
    else:
        raise unreadable(lines, at, f"a section begins with `{_ADD}`, `{_UPDATE}` or `{_DELETE}`")
    if mark == _ADD:
        return FilePatch("add", path, content=_added(lines, at + 1, end))
    if mark == _DELETE:
        _must_be_blank(lines, at + 1, end)
        return FilePatch("delete", path)
    to = ""
    if at + 1 < end and lines[at + 1].startswith(_MOVE):
        at += 1
        to = named(lines, at, lines[at].removeprefix(_MOVE).strip())
    hunks = tuple(_hunks(lines, at + 1, end))
    if not hunks and not to:
        raise unreadable(lines, at, "the section changes nothing")
    return FilePatch("change", path, to=to, hunks=hunks)


def _added(lines: Sequence[str], at: int, end: int) -> str:
    while end > at and not lines[end - 1]:
        end -= 1
    for number in range(at, end):
        if not lines[number].startswith("+"):
            raise unreadable(lines, number, "lines of a new file begin with `+`")
    return "".join(f"{line[1:]}\n" for line in lines[at:end])


def _must_be_blank(lines: Sequence[str], at: int, end: int) -> None:
    for number in range(at, end):
        if lines[number].strip():
            raise unreadable(lines, number, "a file that is deleted needs no lines")


def _hunks(lines: Sequence[str], at: int, end: int) -> Iterator[Hunk]:
    body = Body()
    for number in range(at, end):
        line = lines[number]
        if line.startswith("@@"):
            if not body.is_empty:
                yield body.hunk()
                body = Body()
            _take_head(body, line)
        elif line.strip() == _END_OF_FILE:
            body.at_end = True
        elif body.at_end and line.strip():
            raise unreadable(lines, number, f"nothing but `@@` follows `{_END_OF_FILE}`")
        else:
            body.take(lines, number)
    if not body.is_empty:
        yield body.hunk()


def _take_head(body: Body, line: str) -> None:
    """Several of them in a row lead from the outside to the inside."""
    if numbers := _NUMBERED.match(line):
        body.line = int(numbers[1])
    elif head := line.removeprefix("@@").strip().removesuffix("@@").strip():
        body.below = (*body.below, head)

"""The new text of a match: lines that the edit leaves alone stay as the file has them."""

from __future__ import annotations

from collections.abc import Sequence

from podium.tools.edits.aligning import Block, aligned
from podium.tools.edits.indents import Shift
from podium.tools.edits.nouns import EditRefused, Reason
from podium.tools.edits.snippets import indent_and_body
from podium.tools.edits.tokens import put_into


def merged(own: Sequence[str], found: Sequence[str], wanted: Sequence[str], shift: Shift) -> str:
    """What shall stand in place of the file's `own` lines, which were `found` as a snippet's.

    Lines of the snippet that are also in what is `wanted` stay as they are in the file; others are
    indented as the file is. Raises `EditRefused` when that cannot be done beyond doubt.
    """
    lines: list[str] = []
    for block in aligned([line.rstrip(" \t") for line in found], [x.rstrip(" \t") for x in wanted]):
        old = slice(block.old, block.old + block.old_count)
        if block.same:
            lines += own[old]
        else:
            new = wanted[block.new : block.new + block.new_count]
            lines += _changed(own[old], found[old], new, block, shift)
    return "\n".join(lines)


def _changed(
    own: Sequence[str], found: Sequence[str], wanted: Sequence[str], block: Block, shift: Shift
) -> list[str]:
    if block.old_count == block.new_count:
        return [_line(*each, shift) for each in zip(own, found, wanted, strict=True)]
    if block.new_count:
        for mine, line in zip(own, found, strict=True):
            if indent_and_body(mine)[1] != indent_and_body(line)[1]:
                raise EditRefused(
                    Reason.DOUBTFUL,
                    "`find` spells a line differently that is among those which are replaced; copy it "
                    "as it stands in the file",
                )
    return [shift.of(line) for line in wanted]


def _line(own: str, found: str, wanted: str, shift: Shift) -> str:
    if not found.strip() or not wanted.strip():
        return shift.of(wanted)
    (own_indent, own_body), (indent, body) = indent_and_body(own), indent_and_body(found)
    new_indent, new_body = indent_and_body(wanted)
    kept = own_indent if new_indent == indent else shift.of(wanted)[: -len(wanted.lstrip(" \t"))]
    tail = _tail(own) if _tail(wanted) == _tail(found) else _tail(wanted)
    return kept + put_into(own_body, body, new_body) + tail


def _tail(line: str) -> str:
    """The blanks at its end."""
    return line[len(line.rstrip(" \t")) :]

"""By how much the indentation of a snippet is off, and how its replacement is indented in turn."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from podium.tools.edits.nouns import EditRefused, Level, Reason

_INDENT = re.compile(r"[ \t]*")


def indent_of(line: str) -> str:
    found = _INDENT.match(line)
    return found[0] if found else ""


@dataclass(frozen=True)
class Shift:
    """How indentation in a snippet becomes the file's."""

    level: Level = Level.LINES
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
        if self.level is Level.TABS:
            return self._by_map(indent)
        if not indent.startswith(self.removed):
            raise EditRefused(
                Reason.DOUBTFUL,
                "`find` is indented more than the file, and a line of `replace` is indented less than "
                "that difference; copy the indentation from the file",
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
            Reason.DOUBTFUL,
            "the file and `find` differ in tabs and spaces, and how a line of `replace` is to be "
            "indented cannot be told; copy the indentation from the file",
        )


NO_SHIFT = Shift()


def shift_between(found: Sequence[str], own: Sequence[str]) -> Shift | None:
    """The one shift that leads from a snippet's lines to the file's; None when there is none."""
    pairs = {
        (indent_of(line), indent_of(mine))
        for line, mine in zip(found, own, strict=True)
        if mine.strip()
    }
    return _uniform(pairs) or _tabbed(pairs)


def _uniform(pairs: set[tuple[str, str]]) -> Shift | None:
    if all(indent == mine for indent, mine in pairs):
        return NO_SHIFT
    indent, mine = next(iter(pairs))
    added = mine.removesuffix(indent) if mine.endswith(indent) else ""
    if added and all(each == added + theirs for theirs, each in pairs):
        return Shift(Level.INDENT, added=added)
    removed = indent.removesuffix(mine) if indent.endswith(mine) else ""
    if removed and all(theirs == removed + each for theirs, each in pairs):
        return Shift(Level.INDENT, removed=removed)
    return None


def _tabbed(pairs: set[tuple[str, str]]) -> Shift | None:
    """Pure tabs on one side and pure spaces on the other, in a fixed proportion from the margin on."""
    for spaces, tabs in (((0, 1)), (1, 0)):
        widths = {(pair[spaces], pair[tabs]) for pair in pairs if pair[spaces] or pair[tabs]}
        if any("\t" in wide or " " in narrow for wide, narrow in widths):
            continue
        if any(not wide or not narrow or len(wide) % len(narrow) for wide, narrow in widths):
            continue
        columns = {len(wide) // len(narrow) for wide, narrow in widths}
        if len(columns) == 1 and columns <= {2, 3, 4, 8}:
            return Shift(Level.TABS, mapped=dict(pairs), columns_per_tab=columns.pop())
    return None

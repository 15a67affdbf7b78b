"""What a patch says of one file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from podium.tools.edits import Hunk

Kind = Literal["add", "change", "delete"]

_LONGEST_SHOWN = 80


class PatchUnreadable(ValueError):
    """The text is no patch, or could be read in two ways. The words say where and why."""


@dataclass(frozen=True)
class FilePatch:
    """What becomes of one file."""

    kind: Kind
    path: str
    to: str = ""
    """The new place, when it is moved."""
    hunks: tuple[Hunk, ...] = ()
    """Of a file that is removed: all its lines, if the patch tells them."""
    content: str = ""
    """Of a file that is added."""
    mode: int | None = None
    """Permission bits of a file that is added. None: the usual ones."""

    @property
    def places(self) -> tuple[str, ...]:
        return (self.path, self.to) if self.to else (self.path,)


def unreadable(lines: Sequence[str], at: int, why: str) -> PatchUnreadable:
    """The error about one line of the patch."""
    shown = lines[at][:_LONGEST_SHOWN] if at < len(lines) else "its end"
    return PatchUnreadable(f"line {at + 1} of the patch ({shown!r}): {why}")


def named(lines: Sequence[str], at: int, path: str) -> str:
    """A path as it stands in a line of the patch."""
    if not path:
        raise unreadable(lines, at, "it names no file")
    if path.startswith('"'):
        raise unreadable(lines, at, "quoted names are not read; write the name as it is")
    return path

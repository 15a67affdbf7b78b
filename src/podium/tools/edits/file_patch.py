"""Changes that a patch makes to one file, and the bodies of its hunks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from podium.tools.edits import Hunk

Kind = Literal["add", "change", "delete"]

_MAX_EXCERPT_CHARACTERS = 80


class PatchUnreadable(ValueError):
    """The text is no patch, or could be read in two ways. The message says where and why."""


@dataclass(frozen=True)
class FilePatch:
    """Change of one file."""

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
    def paths(self) -> tuple[str, ...]:
        return (self.path, self.to) if self.to else (self.path,)


def unreadable(lines: Sequence[str], at: int, why: str) -> PatchUnreadable:
    """The error about one line of the patch."""
    excerpt = lines[at][:_MAX_EXCERPT_CHARACTERS] if at < len(lines) else "its end"
    return PatchUnreadable(f"line {at + 1} of the patch ({excerpt!r}): {why}")


def named(lines: Sequence[str], at: int, path: str) -> str:
    """A path as it stands in a line of the patch."""
    if not path:
        raise unreadable(lines, at, "it names no file")
    if path.startswith('"'):
        raise unreadable(lines, at, "quoted names are not read; write the name as it is")
    return path


_NO_END = "\\"
"""Begins the line that says that the one before it has no line end."""


@dataclass
class HunkBody:
    """Collects the lines of one hunk."""

    line: int | None = None
    below: tuple[str, ...] = ()
    at_end: bool = False
    old: list[str] = field(default_factory=list)
    new: list[str] = field(default_factory=list)
    _open: list[bool] = field(default_factory=lambda: [False, False])
    _last: str = ""
    _unsigned_blanks: int = 0
    """Number of empty lines at the end without even the blank of a context line."""

    def take(self, lines: Sequence[str], at: int) -> None:
        """One line of the patch. Raises `PatchUnreadable` when it is none of a hunk."""
        text = lines[at]
        sign, rest = (text[:1], text[1:]) if text else (" ", "")
        if sign == _NO_END:
            self._note_open_end()
            return
        if sign not in (" ", "+", "-"):
            raise unreadable(lines, at, "lines of a hunk begin with a blank, `+` or `-`")
        self._unsigned_blanks = 0 if text else self._unsigned_blanks + 1
        self._last = sign
        if sign != "+":
            self.old.append(rest)
        if sign != "-":
            self.new.append(rest)

    def hunk(self) -> Hunk:
        """Empty lines at its end only part it from what follows."""
        if self._unsigned_blanks:
            del self.old[-self._unsigned_blanks :], self.new[-self._unsigned_blanks :]
        return Hunk(
            old=tuple(self.old),
            new=tuple(self.new),
            line=self.line,
            below=self.below,
            at_end=self.at_end or self._open[0],
            ends_open=(self._open[0], self._open[1]),
        )

    @property
    def is_empty(self) -> bool:
        return not (self.old or self.new)

    def _note_open_end(self) -> None:
        if self._last in (" ", "-"):
            self._open[0] = True
        if self._last in (" ", "+"):
            self._open[1] = True

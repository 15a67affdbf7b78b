"""The body of a hunk: lines that stay, go and come."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from podium.tools.edits import Hunk
from podium.tools.patches.nouns import unreadable

_NO_END = "\\"
"""Begins the line that says that the one before it has no line end."""


@dataclass
class Body:
    """Collects the lines of one hunk."""

    line: int | None = None
    below: tuple[str, ...] = ()
    at_end: bool = False
    old: list[str] = field(default_factory=list)
    new: list[str] = field(default_factory=list)
    _open: list[bool] = field(default_factory=lambda: [False, False])
    _last: str = ""
    _unsigned_blanks: int = 0
    """How many lines at the end are empty and have not even the blank of a line that stays."""

    def take(self, lines: Sequence[str], at: int) -> None:
        """One line of the patch. Raises `PatchUnreadable` when it is none of a hunk."""
        text = lines[at]
        sign, rest = (text[:1], text[1:]) if text else (" ", "")
        if sign == _NO_END:
            self._mark_open()
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

    def _mark_open(self) -> None:
        if self._last in (" ", "-"):
            self._open[0] = True
        if self._last in (" ", "+"):
            self._open[1] = True

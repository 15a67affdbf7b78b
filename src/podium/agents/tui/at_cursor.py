"""What stands before the cursor. Most programs keep it at the end of their input, also when that fills the screen."""

from __future__ import annotations

from dataclasses import dataclass

from podium.agents.contract.unwrapping import cells
from podium.agents.tui.capturing import Screen
from podium.agents.tui.drawn import end_surely_drawn


@dataclass(frozen=True)
class BeforeCursor:
    """The lines down to the cursor."""

    lines: tuple[str, ...]
    """The last is cut where the cursor stands. Empty ones behind the last words are there too."""

    @property
    def at(self) -> int:
        """Which of the screen's lines the cursor is in; beyond the last when only blanks follow."""
        return len(self.lines) - 1

    @property
    def blank_lines(self) -> int:
        """How many lines at the end have nothing in them."""
        blank = 0
        for line in reversed(self.lines):
            if line.strip():
                break
            blank += 1
        return blank

    def end_in(self, words: str, sure_length: int) -> bool:
        """Whether the words stand right before the cursor; the end of long ones will do.

        Only what is surely drawn counts: programs change blanks, and leave out parts of emoji. But a line more than the
        words have is behind an Enter.
        """
        wanted = end_surely_drawn(words, sure_length)
        shown = end_surely_drawn("\n".join(self.lines), sure_length)
        return bool(wanted) and shown.endswith(wanted) and self.blank_lines <= _line_ends(words)


def before_cursor(screen: Screen) -> BeforeCursor:
    column, row = screen.cursor
    for at, line in enumerate(screen.lines):
        height = max(1, -(-cells(line) // screen.columns))
        if row < height:
            last = _first_cells(line, row * screen.columns + column)
            return BeforeCursor((*screen.lines[:at], last))
        row -= height
    return BeforeCursor((*screen.lines, *[""] * (row + 1)))


def _first_cells(line: str, width: int) -> str:
    if line.isascii():
        return line[:width]
    kept = 0
    for at, character in enumerate(line):
        kept += cells(character)
        if kept > width:
            return line[:at]
    return line


def _line_ends(words: str) -> int:
    return words[len(words.rstrip()) :].count("\n")

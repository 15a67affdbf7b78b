"""Repaints as Ink does, line by line in writes of their own, and takes an Enter that comes with other input for text.

What it says is indented behind a bullet and broken between words; a spinner turns while it works.
"""

from __future__ import annotations

import os

from podium.testing.tui_zoo.composer import Composer
from podium.testing.tui_zoo.painting import wrap_lines

_FRAMES = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
_INDENT, _BULLET = "  ", "⏺ "


class Ink(Composer):
    tick_seconds = 0.1

    def __init__(self, record: str, answers: str = "") -> None:
        super().__init__(record, answers)
        self._frame = 0

    def draw(self) -> None:
        self.write(self.erasing())
        lines = "\r\n".join(self.live_lines()).split("\r\n")
        for line in lines[:-1]:
            self.write(f"{line}\r\n")
        self.write(lines[-1])
        self.keep_rows(lines)

    def screen_lines(self) -> list[str]:
        spinner = [f"{_FRAMES[self._frame]} Thinking…"] if self.busy else []
        return [*spinner, *super().screen_lines()]

    def print_lines(self, lines: list[str], *, more: bool = False) -> None:
        columns = os.get_terminal_size(0).columns - len(_INDENT)
        rows = [_INDENT + row for line in lines for row in wrap_lines(line, columns)]
        if not more:
            rows[0] = _BULLET + rows[0].removeprefix(_INDENT)
        super().print_lines(rows, more=more)

    def tick(self) -> None:
        if self.busy:
            self._frame = (self._frame + 1) % len(_FRAMES)
            self.draw()

    def typed(self, data: bytes) -> None:
        super().typed(data if len(data) == 1 else data.replace(b"\r", b"\n"))


def main(record: str, answers: str = "") -> None:
    Ink(record, answers).run()

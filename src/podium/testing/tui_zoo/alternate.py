"""Draws on the second screen, from which nothing scrolls into the history, all of it anew each time."""

from __future__ import annotations

import os

from podium.testing.tui_zoo.composer import Composer
from podium.testing.tui_zoo.painting import rows_of


class Alternate(Composer):
    def __init__(self, record: str, answers: str = "") -> None:
        super().__init__(record, answers)
        self._printed: list[str] = []

    def opening(self) -> str:
        return "\x1b[?1049h" + super().opening()

    def print_lines(self, lines: list[str], *, more: bool = False) -> None:
        self._printed.extend(lines)
        self.draw()

    def draw(self) -> None:
        live = "\r\n".join(self.live_lines()).split("\r\n")
        self.write("\x1b[H\x1b[2J" + "\r\n".join([*self._newest_above(live), *live]))

    def _newest_above(self, live: list[str]) -> list[str]:
        columns, rows = os.get_terminal_size(0)
        free_rows = rows - sum(rows_of(line, columns) for line in live)
        for at in range(len(self._printed) - 1, -1, -1):
            free_rows -= rows_of(self._printed[at], columns)
            if free_rows < 0:
                return self._printed[at + 1 :]
        return self._printed


def main(record: str, answers: str = "") -> None:
    Alternate(record, answers).run()

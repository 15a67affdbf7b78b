"""Breaks every line at 80 columns by itself, however wide the terminal is."""

from __future__ import annotations

from podium.testing.tui_zoo.composer import Composer
from podium.testing.tui_zoo.painting import cut

WIDTH = 80


class Wrapping(Composer):
    def screen_lines(self) -> list[str]:
        lines = "\r\n".join(super().screen_lines()).split("\r\n")
        return [piece for line in lines for piece in cut(line, WIDTH)]

    def print_lines(self, lines: list[str], *, more: bool = False) -> None:
        super().print_lines([piece for line in lines for piece in cut(line, WIDTH)], more=more)


def main(record: str, answers: str = "") -> None:
    Wrapping(record, answers).run()

"""Paints late: what was typed shows only when the hands have rested for a while, and answers come in bit by bit."""

from __future__ import annotations

import time

from podium.testing.tui_zoo.composer import Composer

_PIECE_SECONDS = 0.02


class Slow(Composer):
    tick_seconds = 0.15

    def __init__(self, record: str, answers: str = "") -> None:
        super().__init__(record, answers)
        self._owes_a_picture = False

    def draw(self) -> None:
        self._owes_a_picture = True

    def print_lines(self, lines: list[str], *, more: bool = False) -> None:
        time.sleep(_PIECE_SECONDS)
        super().print_lines(lines, more=more)

    def tick(self) -> None:
        if self._owes_a_picture:
            self._owes_a_picture = False
            super().draw()


def main(record: str, answers: str = "") -> None:
    Slow(record, answers).run()

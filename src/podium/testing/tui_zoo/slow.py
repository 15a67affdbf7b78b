"""Paints late: what was typed shows only when the hands have rested for a while."""

from __future__ import annotations

from podium.testing.tui_zoo.composer import Composer


class Slow(Composer):
    tick_seconds = 0.15

    def __init__(self, record: str) -> None:
        super().__init__(record)
        self._owes_a_picture = False

    def draw(self) -> None:
        self._owes_a_picture = True

    def tick(self) -> None:
        if self._owes_a_picture:
            self._owes_a_picture = False
            super().draw()


def main(record: str) -> None:
    Slow(record).run()

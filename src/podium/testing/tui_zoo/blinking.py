"""Swallows the first Enter, and its composer is not to be seen for a moment then."""

from __future__ import annotations

from podium.testing.tui_zoo.composer import Composer


class Blinking(Composer):
    tick_seconds = 0.02

    def __init__(self, record: str, answers: str = "") -> None:
        super().__init__(record, answers)
        self._blinks = False
        self._presses = 0

    def submit(self) -> None:
        self._presses += 1
        self._blinks = self._presses % 2 == 1
        if not self._blinks:
            super().submit()

    def screen_lines(self) -> list[str]:
        return ["..."] if self._blinks else super().screen_lines()

    def tick(self) -> None:
        if self._blinks:
            self._blinks = False
            self.draw()


def main(record: str, answers: str = "") -> None:
    Blinking(record, answers).run()

"""Redraws a spinner ten times a second for ever, whether it works or not."""

from __future__ import annotations

from podium.testing.tui_zoo.composer import Composer

_FRAMES = "|/-\\"


class Spinning(Composer):
    tick_seconds = 0.1

    def __init__(self, record: str, answers: str = "") -> None:
        super().__init__(record, answers)
        self._turns = 0

    def screen_lines(self) -> list[str]:
        return [f"{_FRAMES[self._turns % 4]} Thinking", *super().screen_lines()]

    def tick(self) -> None:
        self._turns += 1
        self.draw()


def main(record: str, answers: str = "") -> None:
    Spinning(record, answers).run()

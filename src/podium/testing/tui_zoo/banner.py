"""Puts a banner of changing height between what was said and the composer, which moves up and down with it."""

from __future__ import annotations

from podium.testing.tui_zoo.composer import Composer


class Banner(Composer):
    def __init__(self, record: str, answers: str = "") -> None:
        super().__init__(record, answers)
        self._pictures = 0

    def screen_lines(self) -> list[str]:
        self._pictures += 1
        news = ["| Update available: 2.1.9 -> 2.2.0"] * (self._pictures % 4)
        return [*news, *super().screen_lines()]


def main(record: str, answers: str = "") -> None:
    Banner(record, answers).run()

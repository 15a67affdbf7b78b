"""Draws on the second screen, from which nothing scrolls into the history."""

from __future__ import annotations

from podium.testing.tui_zoo.composer import Composer


class Alternate(Composer):
    def opening(self) -> str:
        return "\x1b[?1049h" + super().opening()


def main(record: str) -> None:
    Alternate(record).run()

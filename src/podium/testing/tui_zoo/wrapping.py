"""Breaks every line at 80 columns by itself, however wide the terminal is."""

from __future__ import annotations

from podium.testing.tui_zoo.composer import Composer

WIDTH = 80


class Wrapping(Composer):
    def shown_lines(self) -> list[str]:
        lines = "\r\n".join(super().shown_lines()).split("\r\n")
        return [piece for line in lines for piece in _pieces(line)]


def _pieces(line: str) -> list[str]:
    return [line[at : at + WIDTH] for at in range(0, max(len(line), 1), WIDTH)]


def main(record: str) -> None:
    Wrapping(record).run()

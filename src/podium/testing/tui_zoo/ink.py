"""Repaints as Ink does, line by line in writes of their own, and takes an Enter that comes with other input for text."""

from __future__ import annotations

from podium.testing.tui_zoo.composer import Composer


class Ink(Composer):
    def __init__(self, record: str) -> None:
        super().__init__(record)
        self._drawn = 0

    def draw(self) -> None:
        for _ in range(self._drawn):
            self.write("\x1b[2K\x1b[1A")
        self.write("\x1b[2K\r")
        lines = "\r\n".join(self.shown_lines()).split("\r\n")
        for line in lines:
            self.write(f"{line}\r\n")
        self._drawn = len(lines)

    def typed(self, data: bytes) -> None:
        super().typed(data if len(data) == 1 else data.replace(b"\r", b"\n"))


def main(record: str) -> None:
    Ink(record).run()

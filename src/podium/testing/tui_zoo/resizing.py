"""Draws its lines as wide as the terminal, and all anew whenever that changes."""

from __future__ import annotations

import os
import signal

from podium.testing.tui_zoo.composer import Composer


class Resizing(Composer):
    def run(self) -> None:
        signal.signal(signal.SIGWINCH, lambda *_: self.draw())
        super().run()

    def screen_lines(self) -> list[str]:
        width = os.get_terminal_size(0).columns
        lines = super().screen_lines()
        return ["=" * width if line.startswith("---") else line for line in lines]


def main(record: str, answers: str = "") -> None:
    Resizing(record, answers).run()

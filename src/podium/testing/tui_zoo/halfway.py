"""Takes a message, begins to answer with a block, and dies in the middle of it."""

from __future__ import annotations

from podium.testing.tui_zoo.composer import Composer

EXIT_CODE = 71


class Halfway(Composer):
    def submit(self) -> None:
        super().submit()
        self.write("\x1b[H\x1b[2J<PLAN>\r\n1. begin to")
        self.die(EXIT_CODE)


def main(record: str, answers: str = "") -> None:
    Halfway(record, answers).run()

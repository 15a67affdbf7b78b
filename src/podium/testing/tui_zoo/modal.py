"""Begins with a question that stands where the composer will be, and takes nothing but `y`."""

from __future__ import annotations

from podium.testing.tui_zoo.composer import Composer


class Modal(Composer):
    def __init__(self, record: str) -> None:
        super().__init__(record)
        self._asks = True

    def shown_lines(self) -> list[str]:
        return ["Do you trust this folder? (y/n)"] if self._asks else super().shown_lines()

    def typed(self, data: bytes) -> None:
        if not self._asks:
            super().typed(data)
        elif data == b"y":
            self._asks = False

    def pasted(self, data: bytes) -> None:
        if not self._asks:
            super().pasted(data)


def main(record: str) -> None:
    Modal(record).run()

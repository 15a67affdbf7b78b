"""Takes no notice of the first paste, as a TUI that was just then at something else."""

from __future__ import annotations

from podium.testing.tui_zoo.composer import Composer


class Unheeding(Composer):
    def __init__(self, record: str, answers: str = "") -> None:
        super().__init__(record, answers)
        self._heeds = False

    def pasted(self, data: bytes) -> None:
        if self._heeds:
            super().pasted(data)
        self._heeds = True


def main(record: str, answers: str = "") -> None:
    Unheeding(record, answers).run()

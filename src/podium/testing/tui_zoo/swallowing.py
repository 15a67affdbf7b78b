"""Takes no notice of the first two Enters after a paste, as a TUI that is still busy with it."""

from __future__ import annotations

from podium.testing.tui_zoo.composer import Composer

_DEAF_TO = 2


class Swallowing(Composer):
    def __init__(self, record: str, answers: str = "") -> None:
        super().__init__(record, answers)
        self._presses = 0

    def submit(self) -> None:
        self._presses += 1
        if self._presses > _DEAF_TO:
            self._presses = 0
            super().submit()


def main(record: str, answers: str = "") -> None:
    Swallowing(record, answers).run()

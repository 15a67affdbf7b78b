"""Begins with a question that stands where the composer will be, and takes nothing but `y`."""

from __future__ import annotations

from podium.testing.tui_zoo.composer import ASKING_TEXT, Composer


class Modal(Composer):
    def __init__(self, record: str, answers: str = "") -> None:
        super().__init__(record, answers)
        self.question = f"Do you trust this folder? {ASKING_TEXT}"


def main(record: str, answers: str = "") -> None:
    Modal(record, answers).run()

"""Knows no bracketed paste: every carriage return submits, wherever it comes from."""

from __future__ import annotations

from podium.testing.tui_zoo.composer import Composer


class Unbracketed(Composer):
    takes_brackets = False


def main(record: str, answers: str = "") -> None:
    Unbracketed(record, answers).run()

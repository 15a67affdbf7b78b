"""A plain line program: reads lines from a terminal that echoes them, and knows nothing of screens."""

from __future__ import annotations

import json
import os
import select

from podium.testing.tui_zoo.answers import read_answers
from podium.testing.tui_zoo.brain import Brain

_BREATH_SECONDS = 0.1
"""Lines with shorter pauses are one message."""


class Echo:
    """Prints its answers in between; its state is not visible."""

    question = ""
    busy = False

    def __init__(self, record: str, answers: str) -> None:
        self._record = record
        self._brain = Brain(self, record, read_answers(answers)) if answers else None
        self._lines: list[str] = []

    def run(self) -> None:
        self.print_lines(["ready"])
        if self._brain:
            self._brain.state("ready")
        while self._take_input():
            pass

    def print_lines(self, lines: list[str], *, more: bool = False) -> None:
        data = "".join(f"{line}\n" for line in lines).encode(errors="replace")
        while data:
            data = data[os.write(1, data) :]

    def draw(self) -> None:
        """It has nothing that changes."""

    def _take_input(self) -> bool:
        if not select.select([0], [], [], self._patience())[0]:
            self._go_on()
            return True
        data = os.read(0, 65536)
        for line in data.decode(errors="replace").splitlines():
            self._take_line(line)
        return bool(data)

    def _patience(self) -> float | None:
        if self._lines:
            return _BREATH_SECONDS
        return self._brain.due_seconds() if self._brain else None

    def _take_line(self, line: str) -> None:
        with open(self._record, "a") as file:  # noqa: PTH123 — pathlib loads slowly
            file.write(json.dumps(line) + "\n")
        if self._brain:
            self._lines.append(line)

    def _go_on(self) -> None:
        if self._brain and self._lines:
            self._brain.hear("\n".join(self._lines))
            self._lines.clear()
        elif self._brain:
            self._brain.go_on()


def main(record: str, answers: str = "") -> None:
    Echo(record, answers).run()

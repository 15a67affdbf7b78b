"""Line programs: `echo`, which knows nothing of screens, and `repl`, which has a prompt."""

from __future__ import annotations

import json
import os
import select
import termios
import time
import tty

from podium.testing.fake_tuis.answers import read_answers
from podium.testing.fake_tuis.brain import FakeBrain

_BREATH_SECONDS = 0.1
"""Lines with shorter pauses are one message."""


class Echo:
    """Reads lines from a terminal that echoes them, and prints its answers in between; its state is not visible."""

    question = ""
    busy = False

    def __init__(self, record: str, answers: str) -> None:
        self._record = record
        self._brain = FakeBrain(self, record, read_answers(answers)) if answers else None
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


PROMPT = "> "
THINKING_SECONDS = 0.8

_PASTE_BEGINS, _PASTE_ENDS = b"\x1b[200~", b"\x1b[201~"


class Repl:
    """A small line program with a prompt: shows input as it comes, and thinks for a while without a sign of it.

    Unlike a composer it redraws nothing: a message that it took stays where it was typed, behind the old prompt. An Enter
    alone is a message too, an empty one.
    """

    def __init__(self, record: str, answers: str = "") -> None:
        self._record = record
        self._pasting = False
        self._text = b""

    def run(self) -> None:
        before = termios.tcgetattr(0)
        tty.setcbreak(0)
        self._write(f"\x1b[?2004hready\n{PROMPT}".encode())
        try:
            while data := os.read(0, 65536):
                self._part(data)
        finally:
            termios.tcsetattr(0, termios.TCSADRAIN, before)

    def _part(self, data: bytes) -> None:
        """Within a paste an end of a line is text, else it is Enter."""
        while data:
            piece, delimiter, data = data.partition(_PASTE_ENDS if self._pasting else _PASTE_BEGINS)
            if self._pasting:
                self._show(piece)
            else:
                self._typed(piece)
            if delimiter:
                self._pasting = not self._pasting

    def _typed(self, data: bytes) -> None:
        *lines, rest = data.replace(b"\r", b"\n").split(b"\n")
        for line in lines:
            self._show(line)
            self._take()
        self._show(rest)

    def _show(self, data: bytes) -> None:
        self._text += data
        self._write(data)

    def _take(self) -> None:
        text, self._text = self._text.decode(errors="replace"), b""
        with open(self._record, "a") as file:  # noqa: PTH123 — pathlib loads slowly
            file.write(json.dumps(text) + "\n")
        self._write(b"\n")
        if text:
            time.sleep(THINKING_SECONDS)
            self._write(f"took {len(text)} characters\n".encode())
        self._write(PROMPT.encode())

    @staticmethod
    def _write(data: bytes) -> None:
        while data:
            data = data[os.write(1, data) :]


KINDS: dict[str, type[Echo] | type[Repl]] = {"echo": Echo, "repl": Repl}

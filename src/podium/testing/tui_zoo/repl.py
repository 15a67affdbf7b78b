"""A small line program with a prompt: shows what it is given as it comes, and thinks for a while without a sign of it.

Unlike a composer it draws nothing anew: a message that it took stays where it was typed, behind the old prompt. An Enter
alone is a message too, an empty one.
"""

from __future__ import annotations

import json
import os
import termios
import time
import tty

PROMPT = "> "
THINKING_SECONDS = 0.8

_PASTE_BEGINS, _PASTE_ENDS = b"\x1b[200~", b"\x1b[201~"


class Repl:
    def __init__(self, record: str) -> None:
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


def main(record: str, answers: str = "") -> None:
    Repl(record).run()

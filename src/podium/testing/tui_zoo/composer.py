"""A program with a composer, as the terminal AIs have one; the others of the zoo misbehave in one way each.

It takes input in raw mode, draws `> ` and what was typed or pasted, and on Enter adds one JSON string to
its record, byte for byte what it was given. Many lines are shown by a stand-in, as the real ones do it.
"""

from __future__ import annotations

import json
import os
import select
import termios
import tty

PROMPT = "> "
STAND_IN = "[Pasted text +{lines} lines]"
MOST_LINES_SHOWN = 3

_PASTE_BEGINS, _PASTE_ENDS = b"\x1b[200~", b"\x1b[201~"


class Composer:
    """The well-behaved one."""

    takes_brackets = True
    tick_seconds: float | None = None
    """How often `tick` is called while nothing is typed. None: never."""

    def __init__(self, record: str) -> None:
        self.record = record
        self.text = b""
        self.said: list[str] = []
        self._pasting = False

    def run(self) -> None:
        """Take input until Ctrl-C or the end of the terminal."""
        before = termios.tcgetattr(0)
        tty.setraw(0)
        try:
            self.write(self.opening())
            self.draw()
            while self._take_input():
                pass
        finally:
            self.write("\x1b[?2004l")
            termios.tcsetattr(0, termios.TCSADRAIN, before)

    def opening(self) -> str:
        return "\x1b[?2004h" if self.takes_brackets else ""

    def draw(self) -> None:
        """Paint everything anew, in one write."""
        self.write("\x1b[H\x1b[2J" + "\r\n".join(self.shown_lines()))

    def shown_lines(self) -> list[str]:
        return [*self.said[-10:], "-" * 20, PROMPT + self.shown_text(), "-" * 20]

    def shown_text(self) -> str:
        lines = self.text.decode(errors="replace").split("\n")
        if len(lines) > MOST_LINES_SHOWN:
            return STAND_IN.format(lines=len(lines))
        return "\r\n  ".join(lines)

    def submit(self) -> None:
        """Enter: the text is a message now."""
        text = self.text.decode(errors="replace")
        self.text = b""
        with open(self.record, "a") as file:  # noqa: PTH123 — pathlib loads slowly
            file.write(json.dumps(text) + "\n")
        self.said.append(f"* took {len(text)} characters")

    def tick(self) -> None:
        """Some time passed."""

    def typed(self, data: bytes) -> None:
        """What came in one read, outside of a paste."""
        for byte in data:
            if byte == 0x03:
                raise KeyboardInterrupt
            if byte == 0x0D:
                self.submit()
            elif byte == 0x7F:
                self.text = self.text[:-1]
            elif byte != 0x1B:
                self.text += bytes([byte])

    def pasted(self, data: bytes) -> None:
        self.text += data.replace(b"\r", b"\n")

    @staticmethod
    def write(text: str) -> None:
        data = text.encode()
        while data:
            data = data[os.write(1, data) :]

    def _take_input(self) -> bool:
        if not select.select([0], [], [], self.tick_seconds)[0]:
            self.tick()
            return True
        data = os.read(0, 65536)
        if not data:
            return False
        try:
            self._part(data)
        except KeyboardInterrupt:
            return False
        self.draw()
        return True

    def _part(self, data: bytes) -> None:
        """Tell what is pasted from what is typed."""
        while data:
            ends = _PASTE_ENDS if self._pasting else _PASTE_BEGINS
            piece, found, data = data.partition(ends)
            if piece:
                self.pasted(piece) if self._pasting else self.typed(piece)
            if found:
                self._pasting = not self._pasting


def main(record: str) -> None:
    Composer(record).run()

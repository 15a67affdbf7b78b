"""A program with a composer, as the terminal agents have one; the variants misbehave in one way each.

It takes input in raw mode, draws `> ` and what was typed or pasted, and on Enter adds one JSON string to
its record, byte for byte what it was given. Many lines are shown by a stand-in, as the real ones do it.
"""

from __future__ import annotations

import json
import os
import select
import termios
import time
import tty
from typing import NoReturn
from unicodedata import combining, east_asian_width

from podium.testing.fake_tuis.answers import read_answers
from podium.testing.fake_tuis.brain import FakeBrain


def width_of(text: str) -> int:
    """Return the width in columns."""
    if text.isascii():
        return len(text)
    return sum(
        0 if combining(character) else 1 + (east_asian_width(character) in "WF")
        for character in text
    )


def rows_of(line: str, columns: int) -> int:
    return max(1, -(-width_of(line) // columns))


def wrap_lines(line: str, columns: int) -> list[str]:
    """Wrap between words where that is possible, as Ink breaks lines."""
    rows, row = [], ""
    for number, word in enumerate(line.split(" ")):
        longer = f"{row} {word}" if number else word
        if width_of(longer) <= columns:
            row = longer
            continue
        if row.strip():
            rows.append(row)
            longer = word
        *full, row = cut(longer, columns)
        rows.extend(full)
    return [*rows, row]


def cut(line: str, columns: int) -> list[str]:
    """Cut wherever the row is full."""
    rows, row = [], ""
    for character in line:
        if width_of(row + character) > columns:
            rows.append(row)
            row = ""
        row += character
    return [*rows, row]


PROMPT = "> "
STAND_IN = "[Pasted text +{lines} lines]"
MAX_INPUT_LINES = 3
BUSY_TEXT = "(esc to interrupt)"
ASKING_TEXT = "(y/n)"

_PASTE_BEGINS, _PASTE_ENDS = b"\x1b[200~", b"\x1b[201~"
_ESCAPE, _CONTROL_C, _ENTER, _BACKSPACE = 0x1B, 0x03, 0x0D, 0x7F


class Composer:
    """The well-behaved one."""

    takes_brackets = True
    tick_seconds: float | None = None
    """Interval of `tick` while nothing is typed. None: never."""

    def __init__(self, record: str, answers: str = "") -> None:
        self.record = record
        self.text = b""
        self.busy = False
        self.question = ""
        self._answers = read_answers(answers) if answers else None
        self._brain = FakeBrain(self, record, self._answers) if self._answers else None
        self._pasting = False
        self._enters = 0
        self._rows = 0
        self._next_tick = 0.0

    def run(self) -> None:
        """Take input until Ctrl-C or the end of the terminal."""
        before = termios.tcgetattr(0)
        tty.setraw(0)
        try:
            self._begin()
            while self._take_input():
                pass
        finally:
            self.write("\x1b[?2004l")
            termios.tcsetattr(0, termios.TCSADRAIN, before)

    def opening(self) -> str:
        return "\x1b[?2004h" if self.takes_brackets else ""

    def draw(self) -> None:
        """Paint the lower part anew, in one write."""
        lines = self.live_lines()
        self.write(self.erasing() + "\r\n".join(lines))
        self.keep_rows(lines)

    def print_lines(self, lines: list[str], *, more: bool = False) -> None:
        """Put lines above the lower part. They scroll up into the history."""
        self.write(self.erasing() + "".join(f"{line}\r\n" for line in lines))
        self._rows = 0
        self.draw()

    def erasing(self) -> str:
        """Return the escape sequence that erases the lower part."""
        up = f"\x1b[{self._rows - 1}A" if self._rows > 1 else ""
        return f"\r{up}\x1b[J"

    def keep_rows(self, lines: list[str]) -> None:
        """Remember how high the lower part is."""
        columns = os.get_terminal_size(0).columns
        self._rows = sum(rows_of(line, columns) for line in "\r\n".join(lines).split("\r\n"))

    def live_lines(self) -> list[str]:
        """The lower part: what it is at, and the composer, or a question in its place."""
        return [self.question] if self.question else self.screen_lines()

    def screen_lines(self) -> list[str]:
        working = [f"* Working {BUSY_TEXT}"] if self.busy else []
        return [*working, "-" * 20, PROMPT + self.input_text(), "-" * 20]

    def input_text(self) -> str:
        lines = self.text.decode(errors="replace").split("\n")
        if len(lines) > MAX_INPUT_LINES:
            return STAND_IN.format(lines=len(lines))
        return "\r\n  ".join(lines)

    def submit(self) -> None:
        """Enter: the text is a message now."""
        text = self.text.decode(errors="replace")
        self.text = b""
        with open(self.record, "a") as file:  # noqa: PTH123 — pathlib loads slowly
            file.write(json.dumps(text) + "\n")
        self.print_lines([f"* took {len(text)} characters"])
        if self._brain:
            self._brain.hear(text, self._enters)
        self._enters = 0

    def tick(self) -> None:
        """Some time passed."""

    def die(self, exit_code: int) -> NoReturn:
        """Crash."""
        if self._brain:
            self._brain.die()
        os._exit(exit_code)

    def typed(self, data: bytes) -> None:
        """Take the input of one read, outside of a paste."""
        if self.question:
            self._answered(data)
            return
        for byte in data:
            if byte == _CONTROL_C and not self._interrupt():
                raise KeyboardInterrupt
            if byte == _ENTER:
                self._enters += 1
                self.submit()
            elif byte == _BACKSPACE:
                self.text = self.text[:-1]
            elif byte not in (_ESCAPE, _CONTROL_C):
                self.text += bytes([byte])

    def pasted(self, data: bytes) -> None:
        if not self.question:
            self.text += data.replace(b"\r", b"\n")

    @staticmethod
    def write(text: str) -> None:
        data = text.encode(errors="replace")
        while data:
            data = data[os.write(1, data) :]

    def _begin(self) -> None:
        if self._brain and self._answers:
            self._brain.state("starting")
            time.sleep(self._answers.start_seconds)
        self.write(self.opening())
        self.print_lines(["* Welcome"])
        if self._brain:
            self._brain.state("asking" if self.question else "ready")

    def _answered(self, data: bytes) -> None:
        if data != b"y":
            return
        self.question = ""
        if self._brain and not self.busy:
            self._brain.state("ready")

    def _interrupt(self) -> bool:
        return self._brain is not None and self._brain.interrupt()

    def _take_input(self) -> bool:
        if not select.select([0], [], [], self._patience())[0]:
            self._go_on()
            return True
        data = os.read(0, 65536)
        self._next_tick = time.monotonic() + (self.tick_seconds or 0)
        if not data:
            return False
        try:
            self._part(data)
        except KeyboardInterrupt:
            return False
        self.draw()
        return True

    def _patience(self) -> float | None:
        """Seconds until something is due by itself."""
        due = [self._brain.due_seconds() if self._brain else None]
        if self.tick_seconds is not None:
            due.append(max(0.0, self._next_tick - time.monotonic()))
        return min((seconds for seconds in due if seconds is not None), default=None)

    def _go_on(self) -> None:
        if self._brain and self._brain.due_seconds() == 0:
            self._brain.go_on()
        if self.tick_seconds is not None and time.monotonic() >= self._next_tick:
            self._next_tick = time.monotonic() + self.tick_seconds
            self.tick()

    def _part(self, data: bytes) -> None:
        """Separate pasted from typed input, and Escape from both."""
        if data == bytes([_ESCAPE]) and not self._pasting:
            self._interrupt()
            return
        while data:
            ends = _PASTE_ENDS if self._pasting else _PASTE_BEGINS
            piece, delimiter, data = data.partition(ends)
            if piece:
                self.pasted(piece) if self._pasting else self.typed(piece)
            if delimiter:
                self._pasting = not self._pasting

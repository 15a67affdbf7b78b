"""Variants of the composer that misbehave in one way each."""

from __future__ import annotations

import os
import signal
import time

from podium.testing.fake_tuis.composer import ASKING_TEXT, Composer, cut, rows_of, wrap_lines


class Alternate(Composer):
    """Draws on the second screen, from which nothing scrolls into the history, all of it anew each time."""

    def __init__(self, record: str, answers: str = "") -> None:
        super().__init__(record, answers)
        self._printed: list[str] = []

    def opening(self) -> str:
        return "\x1b[?1049h" + super().opening()

    def print_lines(self, lines: list[str], *, more: bool = False) -> None:
        self._printed.extend(lines)
        self.draw()

    def draw(self) -> None:
        live = "\r\n".join(self.live_lines()).split("\r\n")
        self.write("\x1b[H\x1b[2J" + "\r\n".join([*self._newest_above(live), *live]))

    def _newest_above(self, live: list[str]) -> list[str]:
        columns, rows = os.get_terminal_size(0)
        free_rows = rows - sum(rows_of(line, columns) for line in live)
        for at in range(len(self._printed) - 1, -1, -1):
            free_rows -= rows_of(self._printed[at], columns)
            if free_rows < 0:
                return self._printed[at + 1 :]
        return self._printed


class Banner(Composer):
    """Puts a banner of changing height between what was said and the composer, which moves up and down with it."""

    def __init__(self, record: str, answers: str = "") -> None:
        super().__init__(record, answers)
        self._pictures = 0

    def screen_lines(self) -> list[str]:
        self._pictures += 1
        news = ["| Update available: 2.1.9 -> 2.2.0"] * (self._pictures % 4)
        return [*news, *super().screen_lines()]


class Blinking(Composer):
    """Swallows the first Enter, and its composer is not to be seen for a moment then."""

    tick_seconds = 0.02

    def __init__(self, record: str, answers: str = "") -> None:
        super().__init__(record, answers)
        self._blinks = False
        self._presses = 0

    def submit(self) -> None:
        self._presses += 1
        self._blinks = self._presses % 2 == 1
        if not self._blinks:
            super().submit()

    def screen_lines(self) -> list[str]:
        return ["..."] if self._blinks else super().screen_lines()

    def tick(self) -> None:
        if self._blinks:
            self._blinks = False
            self.draw()


CRASHING_EXIT_CODE = 70


class Crashing(Composer):
    """Dies at the first paste, with last words that scroll by."""

    def pasted(self, data: bytes) -> None:
        self.write("".join(f"trace {number}\r\n" for number in range(50)))
        self.write("fatal: out of memory\r\n")
        self.die(CRASHING_EXIT_CODE)


HALFWAY_EXIT_CODE = 71


class Halfway(Composer):
    """Takes a message, begins to answer with a block, and dies in the middle of it."""

    def submit(self) -> None:
        super().submit()
        self.write("\x1b[H\x1b[2J<PLAN>\r\n1. begin to")
        self.die(HALFWAY_EXIT_CODE)


_INK_FRAMES = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
_INDENT, _BULLET = "  ", "⏺ "


class Ink(Composer):
    """Repaints as Ink does, line by line in writes of their own, and takes an Enter that comes with other input for text.

    What it says is indented behind a bullet and broken between words; a spinner turns while it works.
    """

    tick_seconds = 0.1

    def __init__(self, record: str, answers: str = "") -> None:
        super().__init__(record, answers)
        self._frame = 0

    def draw(self) -> None:
        self.write(self.erasing())
        lines = "\r\n".join(self.live_lines()).split("\r\n")
        for line in lines[:-1]:
            self.write(f"{line}\r\n")
        self.write(lines[-1])
        self.keep_rows(lines)

    def screen_lines(self) -> list[str]:
        spinner = [f"{_INK_FRAMES[self._frame]} Thinking…"] if self.busy else []
        return [*spinner, *super().screen_lines()]

    def print_lines(self, lines: list[str], *, more: bool = False) -> None:
        columns = os.get_terminal_size(0).columns - len(_INDENT)
        rows = [_INDENT + row for line in lines for row in wrap_lines(line, columns)]
        if not more:
            rows[0] = _BULLET + rows[0].removeprefix(_INDENT)
        super().print_lines(rows, more=more)

    def tick(self) -> None:
        if self.busy:
            self._frame = (self._frame + 1) % len(_INK_FRAMES)
            self.draw()

    def typed(self, data: bytes) -> None:
        super().typed(data if len(data) == 1 else data.replace(b"\r", b"\n"))


class Modal(Composer):
    """Begins with a question that stands where the composer will be, and takes nothing but `y`."""

    def __init__(self, record: str, answers: str = "") -> None:
        super().__init__(record, answers)
        self.question = f"Do you trust this folder? {ASKING_TEXT}"


class Resizing(Composer):
    """Draws its lines as wide as the terminal, and all anew whenever that changes."""

    def run(self) -> None:
        signal.signal(signal.SIGWINCH, lambda *_: self.draw())
        super().run()

    def screen_lines(self) -> list[str]:
        width = os.get_terminal_size(0).columns
        lines = super().screen_lines()
        return ["=" * width if line.startswith("---") else line for line in lines]


_PIECE_SECONDS = 0.02


class Slow(Composer):
    """Paints late: what was typed shows only when the hands have rested for a while, and answers come in bit by bit."""

    tick_seconds = 0.15

    def __init__(self, record: str, answers: str = "") -> None:
        super().__init__(record, answers)
        self._owes_a_picture = False

    def draw(self) -> None:
        self._owes_a_picture = True

    def print_lines(self, lines: list[str], *, more: bool = False) -> None:
        time.sleep(_PIECE_SECONDS)
        super().print_lines(lines, more=more)

    def tick(self) -> None:
        if self._owes_a_picture:
            self._owes_a_picture = False
            super().draw()


_SPINNING_FRAMES = "|/-\\"


class Spinning(Composer):
    """Redraws a spinner ten times a second for ever, whether it works or not."""

    tick_seconds = 0.1

    def __init__(self, record: str, answers: str = "") -> None:
        super().__init__(record, answers)
        self._turns = 0

    def screen_lines(self) -> list[str]:
        return [f"{_SPINNING_FRAMES[self._turns % 4]} Thinking", *super().screen_lines()]

    def tick(self) -> None:
        self._turns += 1
        self.draw()


_DEAF_TO = 2


class Swallowing(Composer):
    """Takes no notice of the first two Enters after a paste, as a TUI that is still busy with it."""

    def __init__(self, record: str, answers: str = "") -> None:
        super().__init__(record, answers)
        self._presses = 0

    def submit(self) -> None:
        self._presses += 1
        if self._presses > _DEAF_TO:
            self._presses = 0
            super().submit()


class Unbracketed(Composer):
    """Knows no bracketed paste: every carriage return submits, wherever it comes from."""

    takes_brackets = False


class Unheeding(Composer):
    """Takes no notice of the first paste, as a TUI that was just then at something else."""

    def __init__(self, record: str, answers: str = "") -> None:
        super().__init__(record, answers)
        self._heeds = False

    def pasted(self, data: bytes) -> None:
        if self._heeds:
            super().pasted(data)
        self._heeds = True


WRAPPING_WIDTH = 80


class Wrapping(Composer):
    """Breaks every line at 80 columns by itself, however wide the terminal is."""

    def screen_lines(self) -> list[str]:
        lines = "\r\n".join(super().screen_lines()).split("\r\n")
        return [piece for line in lines for piece in cut(line, WRAPPING_WIDTH)]

    def print_lines(self, lines: list[str], *, more: bool = False) -> None:
        super().print_lines(
            [piece for line in lines for piece in cut(line, WRAPPING_WIDTH)], more=more
        )


KINDS: dict[str, type[Composer]] = {
    "composer": Composer,
    "alternate": Alternate,
    "banner": Banner,
    "blinking": Blinking,
    "crashing": Crashing,
    "halfway": Halfway,
    "ink": Ink,
    "modal": Modal,
    "resizing": Resizing,
    "slow": Slow,
    "spinning": Spinning,
    "swallowing": Swallowing,
    "unbracketed": Unbracketed,
    "unheeding": Unheeding,
    "wrapping": Wrapping,
}

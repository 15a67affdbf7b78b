"""What is shown: answers on stdout, all else on stderr; plain when piped, JSON when asked for."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from textwrap import fill
from typing import Any, Literal, TextIO

from podium.core.errors import PodiumError
from podium.render.text import coloured_text, escaped_json, safe_line, safe_text

Cells = Sequence[str]

Colour = Literal["green", "yellow", "red"]
_CODES: dict[Colour, int] = {"red": 31, "green": 32, "yellow": 33}

NARROW_COLUMNS = 70
"""On a terminal with fewer columns a table becomes a list."""
MARKDOWN_COLUMNS = 110
"""Lines of a page are not longer than this, however wide the terminal is."""


class AnswerLost(PodiumError):
    """The answer could not be written where it was sent to, such as a full disk."""


class Screen:
    """Prints. Everything that passes through is made safe for a terminal."""

    def __init__(self, *, json: bool = False) -> None:
        self.json = json
        self.reader_gone = False
        """Nobody reads the answer any more. What only prints can stop; what works goes on."""

    def answer(self, record: Mapping[str, Any], human: Callable[[], None]) -> None:
        """Give the command's answer once: as one JSON object, or in words."""
        if self.json:
            self.record(record)
        else:
            human()

    def record(self, record: Mapping[str, Any]) -> None:
        """One JSON object on one line of stdout, at once."""
        self._say(escaped_json(json.dumps(record, ensure_ascii=False, default=str)) + "\n")

    def line(self, text: str = "") -> None:
        """A line of the answer."""
        self._say(safe_text(text) + "\n")

    def marked_line(self, mark: str, colour: Colour, text: str) -> None:
        """A line that begins with a word in colour, where a person looks at it and wants colours."""
        if is_terminal() and not os.environ.get("NO_COLOR"):
            self._say(f"\x1b[{_CODES[colour]}m{safe_text(mark)}\x1b[0m {safe_text(text)}\n")
        else:
            self.line(f"{mark} {text}")

    def pass_on(self, output: bytes) -> None:
        """What a program wrote to its stdout: as it is, but on a terminal nothing may steer that."""
        if sys.stdout.isatty():
            self._say(coloured_text(output.decode(errors="replace")))
        else:
            self._say(output)

    def pass_aside(self, output: bytes) -> None:
        """The same for its stderr."""
        if not sys.stderr.isatty():
            self._beside(output)
        else:
            self._beside(coloured_text(output.decode(errors="replace")))

    def aside(self, text: str) -> None:
        """A line beside the answer, on stderr. When that is broken there is nobody to tell."""
        self._beside(safe_text(text) + "\n")

    def _beside(self, output: str | bytes) -> None:
        try:
            _write(sys.stderr, output)
        except OSError:
            send_nowhere(sys.stderr)

    def table(self, headers: Cells, rows: Sequence[Cells]) -> None:
        """Columns: drawn to the width of a terminal, or whole and plain when piped."""
        safe = [[safe_line(cell) for cell in row] for row in rows]
        if not is_terminal():
            self._say(_plain(headers, safe))
        elif shutil.get_terminal_size().columns < NARROW_COLUMNS:
            self._say(_blocks(headers, safe))
        else:
            self._say(_drawn(headers, safe))

    def facts(self, facts: Sequence[tuple[str, str]]) -> None:
        """Names and values, one to a line; values that are empty are left out."""
        width = max((len(name) for name, _ in facts), default=0)
        for name, value in facts:
            if value:
                self.line(f"{name.ljust(width)}  {value}")

    def markdown(self, text: str) -> None:
        """A page of Markdown: drawn to the width of a terminal, or as it is when piped."""
        self._say(_drawn_markdown(text) if is_terminal() else safe_text(text))

    def _say(self, text: str | bytes) -> None:
        """Put out a part of the answer, at once."""
        if self.reader_gone:
            return
        try:
            _write(sys.stdout, text)
        except BrokenPipeError:
            # As with `| head`: the reader has enough, and how the command ends is its own affair.
            self.reader_gone = True
            send_nowhere(sys.stdout)
        except OSError as error:
            send_nowhere(sys.stdout)
            raise AnswerLost(f"the answer could not be written: {error.strerror}") from None


def _write(stream: TextIO, output: str | bytes) -> None:
    """At once. Bytes pass by the stream's own coding."""
    if isinstance(output, str):
        stream.write(output)
    else:
        stream.flush()
        stream.buffer.write(output)
    stream.flush()


def send_nowhere(stream: TextIO) -> None:
    """Let go of a broken stream, whose buffer Python would else complain about at its exit."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    with suppress(OSError):
        os.dup2(nowhere, stream.fileno())
    os.close(nowhere)


def is_terminal() -> bool:
    """Whether stdout is a terminal that a person looks at."""
    return sys.stdout.isatty() and os.environ.get("TERM") != "dumb"


def error_record(error: BaseException, message: str, code: int) -> dict[str, Any]:
    """An error as JSON answers carry it under `error`."""
    return {"kind": type(error).__name__, "message": message, "exit_code": code}


def _plain(headers: Cells, rows: Sequence[Cells]) -> str:
    widths = [max(map(len, column)) for column in zip(headers, *rows, strict=True)]
    lines = (
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in (headers, *rows)
    )
    return "\n".join(lines) + "\n"


def _blocks(headers: Cells, rows: Sequence[Cells]) -> str:
    """Each row as lines of `name: value`, folded between words; nothing is cut."""
    width = max(20, shutil.get_terminal_size().columns)
    blocks = (
        "".join(
            fill(f"{header.lower()}: {cell}", width, subsequent_indent="  ", break_on_hyphens=False)
            + "\n"
            for header, cell in zip(headers, row, strict=True)
            if cell
        )
        for row in rows
    )
    return "\n".join(blocks)


def _drawn(headers: Cells, rows: Sequence[Cells]) -> str:
    # Rich is only worth its start-up time where somebody sees it.
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    style = "" if os.environ.get("NO_COLOR") else "bold"
    table = Table(box=None, pad_edge=False, header_style=style)
    for header in headers:
        table.add_column(Text(header), overflow="fold")
    for row in rows:
        table.add_row(*(Text(cell) for cell in row))
    console = Console(width=shutil.get_terminal_size().columns, highlight=False, markup=False)
    with console.capture() as drawn:
        console.print(table)
    return drawn.get()


def _drawn_markdown(text: str) -> str:
    from rich.console import Console
    from rich.markdown import Markdown

    width = min(shutil.get_terminal_size().columns, MARKDOWN_COLUMNS)
    console = Console(width=width)
    with console.capture() as drawn:
        console.print(Markdown(safe_text(text), code_theme="ansi_dark", hyperlinks=False))
    return drawn.get()

"""Output: answers on stdout, all else on stderr; plain when piped, JSON on request."""

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
"""Maximum line length of a page, however wide the terminal is."""


class AnswerLost(PodiumError):
    """The answer could not be written where it was sent to, such as a full disk."""


class Screen:
    """Prints output, made safe for a terminal."""

    def __init__(self, *, json: bool = False) -> None:
        self.json = json
        self.reader_gone = False
        """The reader closed stdout. Commands that only print can stop; work continues."""

    def answer(self, record: Mapping[str, Any], human: Callable[[], None]) -> None:
        """Print the command's answer once: as one JSON object, or as text."""
        if self.json:
            self.record(record)
        else:
            human()

    def record(self, record: Mapping[str, Any]) -> None:
        """Print one JSON object on one line of stdout, at once."""
        self._stdout(escaped_json(json.dumps(record, ensure_ascii=False, default=str)) + "\n")

    def line(self, text: str = "") -> None:
        """Print a line of the answer."""
        self._stdout(safe_text(text) + "\n")

    def marked_line(self, label: str, colour: Colour, text: str) -> None:
        """Print a line with a coloured label, where the terminal supports colours."""
        if is_terminal() and not os.environ.get("NO_COLOR"):
            self._stdout(f"\x1b[{_CODES[colour]}m{safe_text(label)}\x1b[0m {safe_text(text)}\n")
        else:
            self.line(f"{label} {text}")

    def pass_on(self, output: bytes) -> None:
        """Pass on a program's stdout unchanged; on a terminal without control sequences."""
        if sys.stdout.isatty():
            self._stdout(coloured_text(output.decode(errors="replace")))
        else:
            self._stdout(output)

    def pass_on_stderr(self, output: bytes) -> None:
        """Pass on a program's stderr likewise."""
        if not sys.stderr.isatty():
            self._stderr(output)
        else:
            self._stderr(coloured_text(output.decode(errors="replace")))

    def stderr_line(self, text: str) -> None:
        """Print a line on stderr; ignored when stderr is broken."""
        self._stderr(safe_text(text) + "\n")

    def _stderr(self, output: str | bytes) -> None:
        try:
            _write(sys.stderr, output)
        except OSError:
            redirect_to_null(sys.stderr)

    def table(self, headers: Cells, rows: Sequence[Cells]) -> None:
        """Print a table: fitted to the terminal's width, or plain and complete when piped."""
        safe = [[safe_line(cell) for cell in row] for row in rows]
        if not is_terminal():
            self._stdout(_plain(headers, safe))
        elif shutil.get_terminal_size().columns < NARROW_COLUMNS:
            self._stdout(_blocks(headers, safe))
        else:
            self._stdout(_drawn(headers, safe))

    def facts(self, facts: Sequence[tuple[str, str]]) -> None:
        """Print names and values, one per line; empty values are left out."""
        width = max((len(name) for name, _ in facts), default=0)
        for name, value in facts:
            if value:
                self.line(f"{name.ljust(width)}  {value}")

    def markdown(self, text: str) -> None:
        """Print Markdown: fitted to the terminal's width, or as it is when piped."""
        self._stdout(_drawn_markdown(text) if is_terminal() else safe_text(text))

    def _stdout(self, text: str | bytes) -> None:
        """Write a part of the answer, at once."""
        if self.reader_gone:
            return
        try:
            _write(sys.stdout, text)
        except BrokenPipeError:
            # As with `| head`: the reader has enough, and how the command ends is its own affair.
            self.reader_gone = True
            redirect_to_null(sys.stdout)
        except OSError as error:
            redirect_to_null(sys.stdout)
            raise AnswerLost(f"the answer could not be written: {error.strerror}") from None


def _write(stream: TextIO, output: str | bytes) -> None:
    """Write at once. Bytes bypass the stream's encoding."""
    if isinstance(output, str):
        stream.write(output)
    else:
        stream.flush()
        stream.buffer.write(output)
    stream.flush()


def redirect_to_null(stream: TextIO) -> None:
    """Redirect a broken stream to the null device, so that Python does not complain at exit."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    with suppress(OSError):
        os.dup2(nowhere, stream.fileno())
    os.close(nowhere)


def is_terminal() -> bool:
    """True when stdout is a terminal."""
    return sys.stdout.isatty() and os.environ.get("TERM") != "dumb"


def error_record(error: BaseException, message: str, code: int) -> dict[str, Any]:
    """Build the `error` part of a JSON answer."""
    return {"kind": type(error).__name__, "message": message, "exit_code": code}


def _plain(headers: Cells, rows: Sequence[Cells]) -> str:
    widths = [max(map(len, column)) for column in zip(headers, *rows, strict=True)]
    lines = (
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in (headers, *rows)
    )
    return "\n".join(lines) + "\n"


def _blocks(headers: Cells, rows: Sequence[Cells]) -> str:
    """Format each row as lines of `name: value`, wrapped between words; nothing is cut."""
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

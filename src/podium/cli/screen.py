"""What is shown: answers on stdout, all else on stderr; plain when piped, JSON when asked for."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any

from podium.cli.untrusted import safe_line, safe_text

Cells = Sequence[str]


class Screen:
    """Prints. Everything that passes through is made safe for a terminal."""

    def __init__(self, *, json: bool = False) -> None:
        self.json = json

    def answer(self, record: Mapping[str, Any], human: Callable[[], None]) -> None:
        """Give the command's answer once: as one JSON object, or in words."""
        if self.json:
            self.record(record)
        else:
            human()

    def record(self, record: Mapping[str, Any]) -> None:
        """One JSON object on one line of stdout, at once."""
        sys.stdout.write(json.dumps(record, ensure_ascii=False, default=str) + "\n")
        sys.stdout.flush()

    def line(self, text: str = "") -> None:
        """A line of the answer."""
        sys.stdout.write(safe_text(text) + "\n")
        sys.stdout.flush()

    def aside(self, text: str) -> None:
        """A line beside the answer, on stderr."""
        sys.stderr.write(safe_text(text) + "\n")
        sys.stderr.flush()

    def table(self, headers: Cells, rows: Sequence[Cells]) -> None:
        """Columns: drawn to the width of a terminal, or whole and plain when piped."""
        safe = [[safe_line(cell) for cell in row] for row in rows]
        if is_terminal():
            _drawn(headers, safe)
        else:
            _plain(headers, safe)

    def facts(self, facts: Sequence[tuple[str, str]]) -> None:
        """Names and values, one to a line; values that are empty are left out."""
        width = max((len(name) for name, _ in facts), default=0)
        for name, value in facts:
            if value:
                self.line(f"{name.ljust(width)}  {value}")


def is_terminal() -> bool:
    """Whether stdout is a terminal that a person looks at."""
    return sys.stdout.isatty() and os.environ.get("TERM") != "dumb"


def moment(at: datetime | None) -> str:
    """A point in time as the person's own clock shows it."""
    return at.astimezone().strftime("%Y-%m-%d %H:%M:%S") if at else ""


def _plain(headers: Cells, rows: Sequence[Cells]) -> None:
    widths = [max(map(len, column)) for column in zip(headers, *rows, strict=True)]
    for row in (headers, *rows):
        cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        sys.stdout.write("  ".join(cells).rstrip() + "\n")
    sys.stdout.flush()


def _drawn(headers: Cells, rows: Sequence[Cells]) -> None:
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
    width = shutil.get_terminal_size().columns
    Console(width=max(20, width), highlight=False, markup=False).print(table)

"""Progress of long work: live on a terminal, plain lines when piped."""

from __future__ import annotations

import os
import shutil
from contextlib import ExitStack
from types import TracebackType
from typing import TextIO

from podium.cli.screen import send_nowhere
from podium.cli.untrusted import safe_text


class Progress:
    """Lines as they come; on a terminal with a sign of life beneath them."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._live = stream.isatty() and os.environ.get("TERM") != "dumb"
        self._open = ExitStack()

    @property
    def width(self) -> int:
        """Characters that fit on a line; 0 when nothing is to be cut."""
        return max(20, shutil.get_terminal_size().columns) if self._live else 0

    def __enter__(self) -> Progress:
        if self._live:
            # Rich is only worth its start-up time where somebody sees it.
            from rich.console import Console

            console = Console(file=self._stream, markup=False, highlight=False)
            self._open.enter_context(console.status("working"))
            self._print = console.print
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._open.close()

    def line(self, text: str) -> None:
        """Show a line at once."""
        if self._live:
            self._print(safe_text(text), soft_wrap=True)
            return
        try:
            self._stream.write(safe_text(text) + "\n")
            self._stream.flush()
        except OSError:
            send_nowhere(self._stream)

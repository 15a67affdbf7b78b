"""A trace, told as it is read: first rows at once, the rest by the page, until the reader has enough."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable

from podium.cli.screen import Screen, is_terminal
from podium.cli.trace_folding import Data, Folding, Row, Totals, Wanted
from podium.cli.trace_words import Timeline, totals_line
from podium.cli.untrusted import shown_json
from podium.domain.model import Json
from podium.journal.trace_reading import Traced

FIRST_PAGE = 20
LATER_PAGE = 500
"""Rows are put out together: a write for each would take longer than reading the trace."""


class Telling:
    """Shows events as somebody wants them, in words or as JSON."""

    def __init__(
        self,
        screen: Screen,
        wanted: Wanted,
        *,
        every_event: bool = False,
        limit: int = 0,
        at_once: bool = False,
        json_lines: bool = False,
    ) -> None:
        """`limit` is how many rows are shown; 0 for all. `at_once` is for what comes slowly; with
        `json_lines` each event is an object of its own instead of all being one."""
        self.totals = Totals()
        self.shown = 0
        self._screen = screen
        self._wanted = wanted
        self._limit = limit
        self._folding = Folding(every_event=every_event or screen.json)
        self._timeline = Timeline(shutil.get_terminal_size().columns if is_terminal() else 0)
        self._page: list[str] = []
        self._page_rows = 1 if at_once else FIRST_PAGE
        self._at_once = at_once
        self._json_lines = json_lines

    @property
    def enough(self) -> bool:
        """Whether nothing more is to be shown."""
        return self._screen.reader_gone or 0 < self._limit <= self.shown

    def begin(self) -> None:
        if not self._screen.json:
            self._page.append(self._timeline.header())
        elif not self._json_lines:
            self._page.append('{"events": [')

    def read(self, events: Iterable[Traced]) -> None:
        """Tell what is in a trace."""
        for data, line in events:
            self._tell(data, line)
            if self.enough:
                break
        self.flush()

    def watch(self) -> None:
        """From now on everything is shown at once."""
        self._at_once = self._folding.live = True

    def tell(self, data: Data) -> None:
        """Tell one event that has just happened."""
        self._tell(data, "")

    def end(self, **beside: Json) -> None:
        """Tell what is left over, and the totals; in JSON with these beside them."""
        if not self._screen.json:
            self._show_all(self._folding.rest())
            self._page.append(totals_line(self.totals))
        elif not self._json_lines:
            record = {**beside, "totals": self.totals.record()}
            self._page.append("], " + shown_json(json.dumps(record, ensure_ascii=False))[1:])
        self.flush()

    def flush(self) -> None:
        if self._page:
            self._screen.line("\n".join(self._page))
            self._page.clear()

    def _tell(self, data: Data, line: str) -> None:
        self.totals.add(data)
        self._timeline.begins(data)
        rows = self._folding.rows(data, len(line))
        if self._screen.json:
            self._show_json(rows, line)
        else:
            self._show_all(rows)

    def _show_all(self, rows: Iterable[Row]) -> None:
        for row in rows:
            if self._wanted.fits(row) and not self.enough:
                self._put(self._timeline.lines(row, self.totals))

    def _show_json(self, rows: Iterable[Row], line: str) -> None:
        for row in rows:
            if not self._wanted.fits(row):
                continue
            text = shown_json(line.strip() or json.dumps(row.data, ensure_ascii=False, default=str))
            self._put(text if self._json_lines or not self.shown else f", {text}")

    def _put(self, text: str) -> None:
        self.shown += 1
        self._page.append(text)
        if self._at_once or len(self._page) >= self._page_rows:
            self.flush()
            self._page_rows = LATER_PAGE

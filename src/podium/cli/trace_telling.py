"""A trace, told as it is read: first rows at once, the rest by the page, until the reader has enough."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable
from itertools import chain

from podium.cli.screen import Screen, is_terminal
from podium.cli.trace_folding import BEGUN, Data, Folding, Row, Totals, Wanted
from podium.cli.trace_words import Timeline, totals_line
from podium.domain.model import Json
from podium.journal.trace_reading import TraceReading
from podium.telling.untrusted import shown_json

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
        self.enough = False
        """Whether nothing more is to be shown."""
        self._screen = screen
        self._wanted = wanted
        self._wanted_all = wanted == Wanted()
        self._limit = limit
        self._folding = Folding(every_event=every_event)
        self._timeline = Timeline(shutil.get_terminal_size().columns if is_terminal() else 0)
        self._page: list[str] = []
        self._page_rows = 1 if at_once else FIRST_PAGE
        self._at_once = at_once
        self._json_lines = json_lines

    def read(self, reading: TraceReading, after_seq: int = 0) -> None:
        """Tell what is in a trace. Nothing is said before the first of it could be read."""
        coming = reading.events(after_seq)
        first = next(coming, None)
        if reading.first:
            self._timeline.begins(reading.first.data)
        self._begin()
        for data, line in chain([first] if first else [], coming):
            self._tell(data, line)
            if self.enough:
                break
        self.flush()

    def _begin(self) -> None:
        if not self._screen.json:
            self._page.append(self._timeline.header())
        elif not self._json_lines:
            self._page.append('{"events": [')

    def watch(self) -> None:
        """From now on everything is shown at once, beginning with the calls that go on."""
        self._at_once = self._folding.live = True
        if not self._screen.json:
            self._show_all(row._replace(outcome=BEGUN) for row in self._folding.rest())

    def tell(self, data: Data) -> None:
        """Tell one event that has just happened."""
        self._timeline.begins(data)
        self._tell(data, b"")

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
            # Every row is safe already; to look through all of it again would take longer than reading it.
            self._screen.pass_on("\n".join([*self._page, ""]).encode(errors="backslashreplace"))
            self._page.clear()
            self.enough = self.enough or self._screen.reader_gone

    def _tell(self, data: Data, line: bytes) -> None:
        self.totals.add(data)
        if not self._screen.json:
            if rows := self._folding.rows(data, len(line)):
                self._show_all(rows)
        elif self._wanted.fits(data):
            text = _json_line(data, line)
            self._put(text if self._json_lines or not self.shown else f", {text}")

    def _show_all(self, rows: Iterable[Row]) -> None:
        for row in rows:
            if (self._wanted_all or self._wanted.fits(row.data)) and not self.enough:
                self._put(self._timeline.lines(row, self.totals))

    def _put(self, text: str) -> None:
        self.shown += 1
        self.enough = self.shown == self._limit or self.enough
        self._page.append(text)
        if self._at_once or len(self._page) >= self._page_rows:
            self.flush()
            self._page_rows = LATER_PAGE


def _json_line(data: Data, line: bytes) -> str:
    """The event as the trace has it, with what cannot be seen written out."""
    if not line:
        return shown_json(json.dumps(data, ensure_ascii=False, default=str))
    text = line.decode().strip()
    # No other control character may stand in JSON.
    return text if text.isascii() and "\x7f" not in text else shown_json(text)

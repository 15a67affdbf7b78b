"""Reader of an `execution_trace.jsonl`, line by line, and no further than asked; loads the event models.

A trace may be torn at its end, damaged in its middle, or no trace at all: what can be read is given,
and what cannot is counted and named.
"""

from __future__ import annotations

import json
import os
import re
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, NamedTuple, NoReturn

from pydantic_core import from_json

from podium.core.errors import BadInput
from podium.core.events import lifted
from podium.core.model import Json
from podium.store.trace import TRACE_NAME

MAX_LINE_BYTES = 16 * 1024 * 1024
"""A longer line is passed over: memory must not depend on what a file holds."""

LINES_TRIED = 100
"""Lines that are tried: when none of them is an event, the file is no trace."""

MAX_PROBLEMS = 5
"""Problems that are named; the others are counted."""

_READ_BYTES = 1 << 16
_LINE_START = re.compile(rb'\{"run": "[^"]*", "seq": ([0-9]{1,18}), ')


class TraceEntry(NamedTuple):
    """An event of a trace: flat, as `Event.line` gives it, and the line that it was read from."""

    data: dict[str, Json]
    line: bytes


class TraceReader:
    """One pass over a trace. What was wrong with it is complete once `events` has ended."""

    def __init__(self, file: BinaryIO, name: str) -> None:
        """`name` is how messages call the file, which the caller closes."""
        self._file = file
        self._name = name
        self._before: tuple[str, int] | None = None
        self.first: TraceEntry | None = None
        """The first event of the trace, also when only those behind another are given."""
        self.problems: list[str] = []
        self.problem_count = 0
        self.torn = False
        """The last line has no end: whoever writes the trace was cut short, or is still at it."""

    def events(self, after_seq: int = 0) -> Iterator[TraceEntry]:
        """Give the events behind `after_seq`, each as soon as it is read.

        Raises `BadInput` when the file does not begin as a trace does.
        """
        for number, line in self._lines():
            if after_seq and self.first and _is_passed(line, after_seq):
                self._before = None
                continue
            event = self._event(number, line)
            if event is not None:
                self.first = self.first or event
                if event.data["seq"] > after_seq:
                    yield event
            elif not self.first and number >= LINES_TRIED:
                break
        if not self.first and self.problem_count:
            self._refuse()

    def _lines(self) -> Iterator[tuple[int, bytes]]:
        """Whole lines with their numbers, and a last one without an end when it is an event all the same."""
        read = self._file.readline
        number = 0
        while line := read(MAX_LINE_BYTES):
            number += 1
            if line[-1] == 10:
                if line != b"\n":
                    yield number, line
            elif len(line) == MAX_LINE_BYTES:
                self._unread(f"line {number} is longer than {MAX_LINE_BYTES // 2**20} MB")
                while line and line[-1] != 10:
                    line = read(_READ_BYTES)
            elif _parsed(line) is not None:
                yield number, line
            else:
                self.torn = True

    def _event(self, number: int, line: bytes) -> TraceEntry | None:
        event = _parsed(line)
        if event is None:
            self._unread(f"line {number} is not an event")
            return None
        # Within a run numbers rise by one; where they do not, something was lost or came twice.
        run, seq = event[0]["run"], event[0]["seq"]
        before, self._before = self._before, (run, seq)
        if before is not None and before[0] == run and seq != before[1] + 1:
            self._note_problem(f"line {number} has event {seq} after event {before[1]}")
        return event

    def _unread(self, problem: str) -> None:
        """Note unreadable text, which may be any number of events: that they are missing is no news."""
        self._before = None
        self._note_problem(problem)

    def _note_problem(self, problem: str) -> None:
        self.problem_count += 1
        if len(self.problems) < MAX_PROBLEMS:
            self.problems.append(f"{self._name}: {problem}")

    def _refuse(self) -> NoReturn:
        raise BadInput(
            f"{self._name} is not a trace: it does not start with events, one JSON object per line; "
            f"the trace of a run is .podium/runs/<run>/{TRACE_NAME}"
        )


def open_trace(path: Path) -> BinaryIO:
    """Open a trace, or the one in a run's folder. Never waits. Raises `BadInput` for what is no plain file."""
    if os.path.isdir(path):  # noqa: PTH112 - unlike the method of a path it answers for any name
        path = path / TRACE_NAME
    try:
        # Without this flag opening a pipe would wait for somebody to write to it.
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
    except (FileNotFoundError, NotADirectoryError):
        raise BadInput(
            f"trace {str(path)!r} does not exist; name a file, or a run from `podium runs`"
        ) from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise BadInput(f"the trace {str(path)!r} cannot be opened: {reason}") from None
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise BadInput(f"{str(path)!r} is not a plain file; pipe its content into `podium trace -`")
    return os.fdopen(handle, "rb", buffering=_READ_BYTES)


def _is_passed(line: bytes, after_seq: int) -> bool:
    """Tell whether this is an event that is not wanted, told without reading all of it."""
    match = _LINE_START.match(line)
    return match is not None and int(match[1]) <= after_seq


def _parsed(line: bytes) -> TraceEntry | None:
    """The event of a line; None when it is none."""
    try:
        data = _json_of(line)
        data = lifted(data)
        whole = (
            type(data["seq"]) is int
            and type(data["run"]) is str
            and type(data["at"]) is str
            and type(data["type"]) is str
        )
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return None
    # Past the class's own `__new__`, which is Python and would take a good part of reading the line.
    return tuple.__new__(TraceEntry, (data, line)) if whole else None


def _json_of(line: bytes) -> Json:
    """Raises ValueError for what is no JSON."""
    try:
        return from_json(line, allow_inf_nan=False, cache_strings="keys")
    except ValueError:
        # Three times slower, but it takes the half surrogate pairs that a journal may hold.
        return _DECODER.decode(line.decode())


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


_DECODER = json.JSONDecoder(parse_constant=_refuse_constant)

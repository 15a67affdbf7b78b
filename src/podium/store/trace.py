"""`execution_trace.jsonl`: events of a run as lines of JSON, derived from the journal, and their reader.

The file may be behind and may end in a torn line; both are mended from the journal the next time
it is brought up to date. Any number of processes may do that at once. The reader gives what can be
read of a file that is torn, damaged or no trace at all, and names what cannot.
"""

from __future__ import annotations

import errno
import json
import os
import re
import stat
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO, NamedTuple, NoReturn, Protocol

from pydantic_core import from_json

from podium.core.errors import BadInput
from podium.core.events import lifted
from podium.core.model import Json
from podium.platform import make_private_folder
from podium.platform.atomic_write import sync
from podium.platform.file_lock import file_lock
from podium.platform.safe_open import open_or_create
from podium.store.transcripts import plain_name

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
            self._unread(f"line {number} is no event")
            return None
        # Within a run numbers rise by one; where they do not, something was lost or came twice.
        run, seq = event[0]["run"], event[0]["seq"]
        before, self._before = self._before, (run, seq)
        if before is not None and before[0] == run and seq != before[1] + 1:
            self._note_problem(f"line {number} has event {seq} behind event {before[1]}")
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
            f"{self._name} is no trace: it does not begin with events, one JSON object a line; "
            f"a run's trace is .podium/runs/<run>/{TRACE_NAME}"
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
            f"there is no trace {str(path)!r}; name a file, or a run of `podium runs`"
        ) from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise BadInput(f"the trace {str(path)!r} cannot be opened: {reason}") from None
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise BadInput(f"{str(path)!r} is no plain file; pipe its content into `podium trace -`")
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


TRACE_NAME = "execution_trace.jsonl"


class Traceable(Protocol):
    """An event, as far as a trace needs it."""

    @property
    def seq(self) -> int: ...
    def line(self) -> dict[str, Json]: ...


ReadAfter = Callable[[int], Sequence[Traceable]]
"""Gives the next events of one run behind this `seq`, in order; nothing when there are no more."""

_BLOCK_BYTES = 8192
_OWN_LINE_START = re.compile(rb'\{"run": "[^"]*", "seq": ([0-9]+), ')


class _TraceEnd(NamedTuple):
    """The end of a trace's complete lines, and the `seq` of the last of them."""

    offset: int
    seq: int


class TraceWriter:
    """Keeps the traces below one folder up with the journal.

    Raises `OSError` when a trace cannot be written; it then ends in a whole line all the same.
    """

    def __init__(self, runs_folder: Path) -> None:
        self._folder = runs_folder

    def path(self, run_id: str) -> Path:
        """The trace file of a run. Raises `BadInput` for an id that is no plain name."""
        return self._folder / plain_name(run_id) / TRACE_NAME

    def catch_up(self, run_id: str, read_after: ReadAfter) -> int:
        """Append the events the trace does not have yet, and give their number.

        Waits while another process does the same; `read_after` is called under that lock.
        """
        with file_lock(self._made(run_id)) as handle:
            end = _end_of(handle)
            if end.offset < os.fstat(handle).st_size:
                os.ftruncate(handle, end.offset)
            return _append_all(handle, end, read_after)

    def rebuild(self, run_id: str, read_after: ReadAfter) -> int:
        """Write the trace anew from the journal and put it in place of the old one, at once.

        Gives the number of events. When this raises, the old trace is untouched.
        """
        path = self._made(run_id)
        with file_lock(path):
            side = path.with_name(f".{TRACE_NAME}.new")
            handle = open_or_create(side, flags=os.O_TRUNC)
            try:
                count = _append_all(handle, _TraceEnd(0, 0), read_after)
                sync(handle)
                side.rename(path)
            except BaseException:
                side.unlink(missing_ok=True)
                raise
            finally:
                os.close(handle)
        return count

    def _made(self, run_id: str) -> Path:
        path = self.path(run_id)
        make_private_folder(self._folder)
        path.parent.mkdir(mode=0o700, exist_ok=True)
        return path


def _append_all(handle: int, end: _TraceEnd, read_after: ReadAfter) -> int:
    count = 0
    while new := [event for event in read_after(end.seq) if event.seq > end.seq]:
        offset = _write_whole(handle, end.offset, b"".join(_line(event) for event in new))
        end = _TraceEnd(offset, new[-1].seq)
        count += len(new)
    return count


def _line(event: Traceable) -> bytes:
    text = json.dumps(event.line(), ensure_ascii=False)
    # Half a surrogate pair has no UTF-8; as `\udXXX` it is what JSON would have written.
    return text.encode(errors="backslashreplace") + b"\n"


def _write_whole(handle: int, offset: int, data: bytes) -> int:
    """Write all of it there and give the offset behind it, or nothing and raise."""
    rest = memoryview(data)
    try:
        while rest:
            written = os.pwrite(handle, rest, offset + len(data) - len(rest))
            if not written:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            rest = rest[written:]
    except OSError:
        with suppress(OSError):  # the next to catch up cuts what is torn
            os.ftruncate(handle, offset)
        raise
    return offset + len(data)


def _end_of(handle: int) -> _TraceEnd:
    """The end of the last line that is whole and ours, found from the back."""
    stop = os.fstat(handle).st_size
    while (newline := _last_newline(handle, stop)) >= 0:
        start = _last_newline(handle, newline) + 1
        line = os.pread(handle, newline - start, start)
        match = _OWN_LINE_START.match(line)
        # A power cut may leave a hole of zeroes in what was never forced to disk.
        if match and line.endswith(b"}") and b"\0" not in line:
            return _TraceEnd(newline + 1, int(match[1]))
        stop = newline
    return _TraceEnd(0, 0)


def _last_newline(handle: int, stop: int) -> int:
    """Offset of the last newline before `stop`, or -1."""
    while stop > 0:
        start = max(0, stop - _BLOCK_BYTES)
        offset = os.pread(handle, stop - start, start).rfind(b"\n")
        if offset >= 0:
            return start + offset
        stop = start
    return -1

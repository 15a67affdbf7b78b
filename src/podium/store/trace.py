"""`execution_trace.jsonl`: events of a run as lines of JSON, derived from the journal.

The file may be behind and may end in a torn line; both are mended from the journal the next time
it is brought up to date. Any number of processes may do that at once.
"""

from __future__ import annotations

import errno
import json
import os
import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple, Protocol

from podium.core.model import Json
from podium.platform import make_private_folder
from podium.platform.atomic_write import sync
from podium.platform.file_lock import file_lock
from podium.platform.safe_open import open_or_create
from podium.store.transcripts import plain_name

TRACE_NAME = "execution_trace.jsonl"


class Traceable(Protocol):
    """An event, as far as a trace needs it."""

    @property
    def seq(self) -> int: ...
    def line(self) -> dict[str, Json]: ...


ReadAfter = Callable[[int], Sequence[Traceable]]
"""Gives the next events of one run behind this `seq`, in order; nothing when there are no more."""

_BLOCK_BYTES = 8192
_LINE_START = re.compile(rb'\{"run": "[^"]*", "seq": ([0-9]+), ')


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
        match = _LINE_START.match(line)
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

"""Where the trace comes from that somebody names: a run, a file, a run's folder, or stdin."""

from __future__ import annotations

import re
import sys
from functools import partial
from pathlib import Path
from typing import BinaryIO

from podium.domain.errors import BadInput
from podium.domain.events import Event
from podium.journal.trace import TraceWriter
from podium.ports import EventQuery, Store, View

STDIN = "-"

_ID = re.compile(r"(run_)?[0-9a-f]{4,32}")


def names_a_file(text: str) -> bool:
    """Whether this is a file rather than a run. What looks like an id is a run; `./` before it helps."""
    if text == STDIN or "/" in text:
        return True
    if _ID.fullmatch(text):
        return False
    try:
        return "." in text or Path(text).exists()
    except (OSError, ValueError):
        return False


def piped_trace() -> BinaryIO:
    """What is piped in. Raises `BadInput` on a terminal, where nobody would type a trace."""
    if sys.stdin is None or sys.stdin.isatty():
        raise BadInput("nothing is piped in; say `podium trace RUN`, or pipe a trace into this")
    return open(sys.stdin.fileno(), "rb", closefd=False)


async def bring_up_to_date(store: Store, runs_folder: Path, run_id: str) -> str:
    """Append to a run's trace what the journal has behind it. Gives the reason when that cannot be done."""
    writer = TraceWriter(runs_folder)
    try:
        await store.read(lambda view: writer.catch_up(run_id, partial(_events, view, run_id)))
    except OSError as error:
        return error.strerror or str(error)
    return ""


def _events(view: View, run_id: str, after_seq: int) -> list[Event]:
    return view.events(EventQuery(run_id=run_id, after_seq=after_seq))

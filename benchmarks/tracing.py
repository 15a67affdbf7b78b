"""Cost of looking into a long trace: its first screen, and all of it."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import redirect_stdout
from datetime import UTC, datetime, timedelta
from pathlib import Path

from benchmarks.figures import Figure, median
from podium.cli.commands.trace import TraceView
from podium.cli.screen import Screen
from podium.core.decisions import Usage
from podium.core.events import (
    AnyEvent,
    Event,
    StepCompleted,
    StepStarted,
    ToolCompleted,
    ToolFailed,
    ToolRequested,
    UsageRecorded,
)
from podium.render.trace_rows import RowFilter
from podium.store import TraceWriter
from podium.store.trace_reader import TraceReader, open_trace

EVENTS = 100_000
SCREENS = 15
SCANS = 7
RUN = "run_01a1e04601e4748793cacb0654d95058"
BEGAN = datetime(2026, 1, 1, tzinfo=UTC)


async def measure() -> list[Figure]:
    return await asyncio.to_thread(_measure)


def _measure() -> list[Figure]:
    with tempfile.TemporaryDirectory() as folder:
        trace = _written(Path(folder), EVENTS)
        short = _written(Path(folder) / "short", 100)
        figures = [_first_screen(trace, short)]
        parsed, scanned, output, printed = _in_turn(
            lambda: _parse(trace),
            lambda: _render(trace, RowFilter(failed=True), as_json=False),
            lambda: _render(trace, RowFilter(), as_json=True),
            lambda: _render(trace, RowFilter(), as_json=False),
            # Whatever else the machine does only ever adds to the time of a processor.
            choose=min,
        )
    return [
        *figures,
        _against(parsed, "trace --failed, 100,000 events", scanned),
        _against(parsed, "trace --json, 100,000 events", output),
        _against(parsed, "trace, every row printed", printed),
    ]


def _against(parsed: float, name: str, taken: float) -> Figure:
    return Figure(name, taken, "ms", parsed, "json.loads of each line", most_ratio=2.0)


def _first_screen(trace: Path, short: Path) -> Figure:
    """From the shell to the first screenful, where the reader goes: against a trace of 100 events."""
    ours, floor = _in_turn(
        lambda: _head(trace), lambda: _head(short), rounds=SCREENS, clock=time.perf_counter
    )
    name = "first screen of 100,000 events, piped to head"
    return Figure(name, ours, "ms", floor, "of 100 events", most_ratio=1.5)


def _head(trace: Path) -> None:
    program = Path(sys.executable).with_name("podium")
    with subprocess.Popen([program, "trace", trace], stdout=subprocess.PIPE) as process:
        assert process.stdout
        for _ in range(24):
            process.stdout.readline()
        process.stdout.close()
        process.wait()


def _parse(trace: Path) -> None:
    with trace.open("rb") as file:
        for line in file:
            json.loads(line)


def _render(trace: Path, wanted: RowFilter, *, as_json: bool) -> None:
    with open(os.devnull, "w") as nowhere, redirect_stdout(nowhere), open_trace(trace) as file:
        rendering = TraceView(Screen(json=as_json), wanted)
        rendering.read(TraceReader(file, trace.name))
        rendering.end()


def _in_turn(
    *works: Callable[[], None],
    rounds: int = SCANS,
    clock: Callable[[], float] = time.process_time,
    choose: Callable[[Sequence[float]], float] = median,
) -> list[float]:
    """Milliseconds of each, the median or another, taken in turn so that all have the same machine."""
    taken: list[list[float]] = [[] for _ in works]
    for _ in range(rounds):
        for work, seconds in zip(works, taken, strict=True):
            began = clock()
            work()
            seconds.append(clock() - began)
    return [choose(item) * 1000 for item in taken]


def _written(folder: Path, count: int) -> Path:
    """A trace as the journal writes it: turns of a few calls, of which one in fifty fails."""
    writer = TraceWriter(folder)
    writer.catch_up(
        RUN, lambda after: [_event(after + 1 + n) for n in range(min(500, count - after))]
    )
    return writer.path(RUN)


def _event(seq: int) -> Event:
    at = BEGAN + timedelta(milliseconds=20 * seq)
    return Event(run_id=RUN, seq=seq, position=seq, at=at, body=_body(seq))


def _body(seq: int) -> AnyEvent:
    turn, place = divmod(seq, 11)
    number = seq - (place % 2 == 0)
    call, tool = f"{RUN}:turn#{turn}:{number:012x}.0", ("read_file", "run_command")[number % 2]
    match place:
        case 0:
            return StepStarted(step=f"turn#{turn}")
        case 9:
            return UsageRecorded(source="agent:model", usage=Usage(input_tokens=900, usd=0.001))
        case 10:
            return StepCompleted(step=f"turn#{turn}", seconds=1.5)
        case 1 | 3 | 5 | 7:
            return ToolRequested(
                call=call,
                tool=tool,
                arguments={"path": f"src/module_{seq}.py", "first_line": 1, "last_line": 200},
                digest=f"sha256:{seq:064x}",
                tier="T0",
                rule="reading-tools",
                reason="reading changes nothing",
            )
    if turn % 12 == 0 and place == 8:
        return ToolFailed(call=call, tool=tool, error="no such file", seconds=0.01, receipt=seq)
    result = {"path": f"src/module_{seq}.py", "text": "def work() -> None:\n    ...\n" * 4}
    return ToolCompleted(call=call, tool=tool, result=result, seconds=0.02, receipt=seq)

"""Speed at which several workers finish what was queued before they began, as recorded in their database."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass

from benchmarks.crew import Member

LOOK_SECONDS = 0.2
MAX_SECONDS = 180.0
MIDDLE = (0.15, 0.85)
"""Between these parts of all steps everybody is at work: nobody starts any more, nobody is done yet."""

Mark = tuple[float, int]
"""Seconds since the beginning, and steps done by then."""


@dataclass(frozen=True)
class Pace:
    """Combined throughput of the workers."""

    steps_per_second: float
    """In the middle."""
    runs_per_second: float
    """From the word to begin until the last run had ended."""


async def pace(url: str, counting: str, runs: int, steps: int, members: Sequence[Member]) -> Pace:
    """Look on until all is done. `counting` is SQL that gives the steps and runs that are.

    Raises `SystemExit` when that takes too long or when a member has ended.
    """
    import psycopg

    began = time.perf_counter()
    marks: list[Mark] = [(0.0, 0)]
    connection = await psycopg.AsyncConnection.connect(url, autocommit=True)
    async with connection:
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            for member in members:
                member.check()
            found = await (await connection.execute(counting.encode())).fetchone()
            done, ended = (int(number) for number in found or (0, 0))
            marks.append((time.perf_counter() - began, done))
            if ended >= runs:
                return Pace(middle_rate(marks, runs * steps), runs / marks[-1][0])
            if marks[-1][0] > MAX_SECONDS:
                raise SystemExit(f"{ended} of {runs} runs were over after {MAX_SECONDS:g} s")


def middle_rate(marks: Sequence[Mark], steps: int) -> float:
    """Steps per second while everybody was at work, or over all when that was too short to see."""
    first, last = (part * steps for part in MIDDLE)
    inside = [mark for mark in marks if first <= mark[1] <= last]
    if len(inside) < 2 or inside[0][0] == inside[-1][0]:
        inside = [marks[0], marks[-1]]
    (start, before), (end, after) = inside[0], inside[-1]
    return (after - before) / (end - start)

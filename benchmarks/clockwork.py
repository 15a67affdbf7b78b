"""Simulated time: processes that take turns, things they queue for, a clock that jumps.

A process is a generator. It yields seconds to let time pass, a `Place` to queue for it, or a `Bell`
to sleep until it rings. Equal moments are served in the order they were asked for, so the same seed
gives the same story.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Generator
from itertools import count

Process = Generator["float | Place | Bell", None, None]


class Clockwork:
    """The clock and what is due."""

    def __init__(self) -> None:
        self.now = 0.0
        self._due: list[tuple[float, int, Process]] = []
        self._number = count()
        self._living: set[Process] = set()

    def start(self, process: Process, after: float = 0.0) -> None:
        self._living.add(process)
        heapq.heappush(self._due, (self.now + after, next(self._number), process))

    def run(self, until: float) -> None:
        """Let time pass until then. What is due later stays due."""
        while self._due and self._due[0][0] <= until:
            self.now, _, process = heapq.heappop(self._due)
            self._turn(process)
        self.now = until

    def end(self) -> None:
        """Close what is not over. Left to the garbage collector, each would be closed at any time."""
        for process in self._living:
            process.close()
        self._living.clear()
        self._due.clear()

    def _turn(self, process: Process) -> None:
        for item in process:
            if isinstance(item, Place):
                if not item.taken_by(process):
                    return
            elif isinstance(item, Bell):
                item.sleepers.append(process)
                return
            else:
                self.start(process, item)
                return
        self._living.discard(process)


class Place:
    """Something that only so many can hold at once: a lock, a processor. First come, first served."""

    def __init__(self, clockwork: Clockwork, room: int = 1) -> None:
        self._clockwork = clockwork
        self._room = room
        self._queue: deque[Process] = deque()
        self._held = 0
        self._counted_from = self._since = clockwork.now
        self._busy = 0.0

    def taken_by(self, process: Process) -> bool:
        """Take it if there is room; else the process is woken when it has been given the place."""
        if self._held >= self._room:
            self._queue.append(process)
            return False
        self._weigh()
        self._held += 1
        return True

    def leave(self) -> None:
        """Give the place to the next in the queue."""
        if self._queue:
            self._clockwork.start(self._queue.popleft())
            return
        self._weigh()
        self._held -= 1

    def use(self, seconds: float) -> Process:
        """Queue for it, hold it for so long, leave."""
        yield self
        yield seconds
        self.leave()

    def forget(self) -> None:
        """Count its use from now on."""
        self._busy = 0.0
        self._counted_from = self._since = self._clockwork.now

    @property
    def share(self) -> float:
        """Return how much of it was in use since the counters were last reset, from 0 to 1."""
        self._weigh()
        passed = self._clockwork.now - self._counted_from
        return self._busy / (self._room * passed) if passed else 0.0

    def _weigh(self) -> None:
        self._busy += self._held * (self._clockwork.now - self._since)
        self._since = self._clockwork.now


class Bell:
    """Wakes whoever sleeps by it."""

    def __init__(self, clockwork: Clockwork) -> None:
        self._clockwork = clockwork
        self.sleepers: list[Process] = []

    def ring(self) -> None:
        woken, self.sleepers = self.sleepers, []
        for process in woken:
            self._clockwork.start(process)

"""What adapters say of programs, held against what the programs know of themselves."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field

from podium.domain.errors import PodiumError
from podium.testing.tui_zoo import Happened
from podium.wiring.bench_duet_stage import ZooPair

SETTLED_SECONDS = 0.4
"""A state counts when it has lasted so long: a program paints a moment after it changed."""
_PAUSE_SECONDS = 0.2

_STARTED_AGAIN = ""

Confusion = Counter[tuple[str, str]]
"""The program's own state and what was seen → how often."""


@dataclass(frozen=True)
class Sighting:
    """What one side looked like at a moment."""

    side: str
    began: float
    ended: float
    seen: str


@dataclass
class Watcher:
    """Asks again and again what the sides of a pair are at, as `podium duet status` does."""

    pair: ZooPair
    sightings: list[Sighting] = field(default_factory=list)

    async def watch(self) -> None:
        while True:
            began = time.monotonic()
            # A server that is not up yet, or just goes.
            with suppress(PodiumError):
                for state in await self.pair.terminals.states():
                    if state.pane:
                        seen = state.status or "dead"
                        self.sightings.append(Sighting(state.name, began, time.monotonic(), seen))
            await asyncio.sleep(_PAUSE_SECONDS)

    def confusion(self) -> Confusion:
        found: Confusion = Counter()
        for seat in self.pair.seats:
            states = states_of(seat.happened())
            for sighting in self.sightings:
                if sighting.side == seat.name and (truth := true_state(states, sighting)):
                    found[truth, sighting.seen] += 1
        return found


@asynccontextmanager
async def watched(pair: ZooPair) -> AsyncIterator[Watcher]:
    watcher = Watcher(pair)
    task = asyncio.get_running_loop().create_task(watcher.watch())
    try:
        yield watcher
    finally:
        task.cancel()
        await asyncio.wait({task})


def states_of(told: Sequence[Happened]) -> list[tuple[float, str]]:
    """When each state of a program began. Dead is one that was not started again: when that was is not known here."""
    marks = [each for each in told if each.what in ("state", "died")]
    names = [_STARTED_AGAIN if each.what == "died" else each.text for each in marks]
    if marks and marks[-1].what == "died":
        names[-1] = "dead"
    return [(each.at, name) for each, name in zip(marks, names, strict=True)]


def true_state(states: Sequence[tuple[float, str]], sighting: Sighting) -> str | None:
    """The state throughout a sighting and for a while before. None: it changed, or is not known."""
    state = None
    for at, name in states:
        if at > sighting.ended:
            break
        state = name if at <= sighting.began - SETTLED_SECONDS else None
    return state or None

"""A block complete in one program until it is submitted in another: against bare ptys and against looking every 0.4 s."""

from __future__ import annotations

import asyncio
import os
import random
import tempfile
from pathlib import Path

from benchmarks.figures import Figure, percentile
from benchmarks.handoff_durable import durable_loop
from benchmarks.handoff_floor import bare_ptys
from benchmarks.handoff_harness import Carrier
from benchmarks.handoff_poll import polling
from benchmarks.handoff_transport import by_screen, by_transcript

HANDOFFS = int(os.environ.get("PODIUM_BENCH_HANDOFFS", "60"))
WARM = 3
_PAUSE_SECONDS = 0.05


async def measure() -> list[Figure]:
    with tempfile.TemporaryDirectory(prefix="ph-", dir=_short()) as folder:
        place = Path(folder)
        carriers: list[Carrier] = []
        try:
            for make in (bare_ptys, by_transcript, by_screen, durable_loop, polling):
                carriers.append(await make(place))
            took = await _shuffled(carriers)
        finally:
            for carrier in carriers:
                await carrier.stop()
    return _figures(took)


async def _shuffled(carriers: list[Carrier]) -> dict[str, list[float]]:
    """All ways in turn, in another order each round, so that the machine's moods fall on all of them."""
    took: dict[str, list[float]] = {carrier.name: [] for carrier in carriers}
    order = random.Random(7)
    for number in range(WARM + HANDOFFS):
        for carrier in order.sample(carriers, len(carriers)):
            # Not in step with whoever looks by the clock.
            await asyncio.sleep(order.uniform(0.0, 2 * _PAUSE_SECONDS))
            seconds = await carrier.handoff(number)
            if number >= WARM:
                took[carrier.name].append(seconds * 1000)
    return took


def _figures(took: dict[str, list[float]]) -> list[Figure]:
    figures = []
    for part, name in ((0.5, "p50"), (0.99, "p99")):
        at = {way: percentile(times, part) for way, times in took.items()}
        floor, polled = (at["floor"], "bare ptys"), (at["polling"], "looking every 0.4 s")
        bounds = (5.0, 0.02, 0.067) if part == 0.5 else (None, None, None)
        transcript, screen, durable = (at[way] for way in ("transcript", "screen", "durable"))
        figures += [
            Figure(f"handoff, by the transcript, {name}", transcript, "ms", *floor, bounds[0]),
            Figure(f"handoff, by the transcript, {name}", transcript, "ms", *polled, bounds[1]),
            Figure(f"handoff, by the screen, {name}", screen, "ms", *floor),
            Figure(f"handoff, by the screen, {name}", screen, "ms", *polled, bounds[1]),
            Figure(f"handoff, durable closed loop, {name}", durable, "ms", *polled, bounds[2]),
        ]
    return figures


def _short() -> str | None:
    """A socket's path must be short."""
    return "/tmp" if Path("/tmp").is_dir() else None


if __name__ == "__main__":
    for figure in asyncio.run(measure()):
        print(figure.line())

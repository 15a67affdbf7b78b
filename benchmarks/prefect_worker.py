"""A process that runs flows of Prefect, by a Python of its own that has nothing of ours: RUNS, ROOM.

Named by its path, so it imports nothing but Prefect.
"""

from __future__ import annotations

import asyncio
import importlib
import sys
from typing import Any

STEPS = 10
BODY = "x" * 200


async def work(runs: int, room: int) -> None:
    prefect: Any = importlib.import_module("prefect")

    async def nothing() -> str:
        return BODY

    async def ten() -> None:
        for _ in range(STEPS):
            await step()

    step, flow = prefect.task(nothing), prefect.flow(ten)

    places = asyncio.Semaphore(room)

    async def one() -> None:
        async with places:
            await flow()

    print('{"ready": true}', flush=True)
    await asyncio.to_thread(sys.stdin.readline)
    await asyncio.gather(*(one() for _ in range(runs)))
    await asyncio.to_thread(sys.stdin.readline)


if __name__ == "__main__":
    asyncio.run(work(int(sys.argv[1]), int(sys.argv[2])))

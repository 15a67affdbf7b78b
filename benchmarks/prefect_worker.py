"""A process that runs flows of Prefect, by a Python of its own that has nothing of ours: RUNS, ROOM.

Named by its path, so it imports nothing but Prefect.
"""

from __future__ import annotations

import asyncio
import sys

STEPS = 10
BODY = "x" * 200


async def work(runs: int, room: int) -> None:
    from prefect import flow, task

    @task
    async def nothing() -> str:
        return BODY

    @flow
    async def ten() -> None:
        for _ in range(STEPS):
            await nothing()

    places = asyncio.Semaphore(room)

    async def one() -> None:
        async with places:
            await ten()

    print('{"ready": true}', flush=True)
    await asyncio.to_thread(sys.stdin.readline)
    await asyncio.gather(*(one() for _ in range(runs)))
    await asyncio.to_thread(sys.stdin.readline)


if __name__ == "__main__":
    asyncio.run(work(int(sys.argv[1]), int(sys.argv[2])))

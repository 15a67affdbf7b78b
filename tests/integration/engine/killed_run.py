"""A process that works on one ten-step run, made to be killed. Starts the run or resumes it."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path
from typing import Any

from podium.core.work import RunStatus
from podium.engine import FlowDefinition, FolderPresence, LocalEngine
from podium.platform.system_clock import SystemClock, SystemIds
from podium.ports import FlowContext, RunQuery, StepContext
from podium.store import SqlStore

STEPS = 10
RUN_ID = "run_0199f3c2a7b87c3e9d1f5a6b7c8d9e0f"


async def ten_steps(ctx: FlowContext, folder: str) -> Any:
    """Each step leaves a mark outside the store, under its idempotency key."""
    total = 0
    for number in range(STEPS):

        async def mark(step: StepContext, number: int = number) -> int:
            await asyncio.to_thread(_append, Path(folder) / "effects", step.idempotency_key)
            return number * number

        total += await ctx.step("mark", mark, index=number)
    return total


def _append(path: Path, line: str) -> None:
    file = os.open(path, os.O_CREAT | os.O_APPEND | os.O_WRONLY, 0o600)
    os.write(file, f"{line}\n".encode())
    os.close(file)


async def main(folder: Path) -> None:
    clock, ids = SystemClock(), SystemIds()
    store = await SqlStore.open(folder / "state", clock=clock, ids=ids)
    engine = LocalEngine(store, clock=clock, ids=ids, presence=FolderPresence(folder / "workers"))
    engine.register(FlowDefinition("ten", ten_steps))
    known = await engine.runs(RunQuery())
    if not known:
        await engine.start("ten", str(folder), run_id=RUN_ID)
    elif known[0].status is not RunStatus.SUCCEEDED:
        await engine.resume(RUN_ID)
    await engine.finish(RUN_ID)
    await engine.close()
    await store.close()


if __name__ == "__main__":
    print("ready", flush=True)
    asyncio.run(main(Path(sys.argv[1])))

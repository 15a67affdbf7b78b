"""A flow that is interrupted halfway and resumes where it stopped, with nothing done twice."""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path
from typing import Any

from podium.engine import FlowDefinition, FolderPresence, LocalEngine
from podium.platform.system_clock import SystemClock, SystemIds
from podium.ports import FlowContext, StepContext
from podium.store import SqlStore

CLOCK, IDS = SystemClock(), SystemIds()


async def bake(ctx: FlowContext, cakes: int) -> Any:
    """Each step is done once and remembered; the oven waits for a person."""

    async def mix(step: StepContext) -> str:
        print(f"  mixing, under the key {step.idempotency_key[-3:]}")
        return f"dough for {cakes}"

    dough = await ctx.step("mix", mix)
    answer = await ctx.wait("oven is hot", seconds=24 * 3600)
    return f"{dough}, baked when {answer.sent_by if answer else 'nobody'} said so"


async def engine_on(store: SqlStore, folder: Path) -> LocalEngine:
    engine = LocalEngine(store, clock=CLOCK, ids=IDS, presence=FolderPresence(folder / "workers"))
    engine.register(FlowDefinition("bake", bake, input_type=int))
    return engine


async def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        store = await SqlStore.open(folder / "state", clock=CLOCK, ids=IDS)

        print("first process:")
        first = await engine_on(store, folder)
        run = await first.start("bake", 3)
        await first.finish(run.id, stop_when_waiting=True)
        await first.abandon()  # as `kill -9` would leave it

        print("second process:")
        second = await engine_on(store, folder)
        await second.resume(run.id)
        await second.signal(run.id, "oven is hot", by="ada")
        print(f"  {(await second.finish(run.id)).result}")
        await second.close()
        await store.close()


if __name__ == "__main__":
    asyncio.run(main())

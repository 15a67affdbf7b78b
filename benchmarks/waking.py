"""From an approval's commit in another process to the run going on, and what waiting costs."""

from __future__ import annotations

import asyncio
import json
import os
import sys
import tempfile
import time
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.figures import Figure, percentile
from podium.app.approvals import approve
from podium.core.decisions import Approval, Tier
from podium.engine import FlowDefinition, FolderPresence, LocalEngine
from podium.platform.system_clock import SystemClock, SystemIds
from podium.ports import FlowContext, StepContext, Transaction
from podium.store import SqlStore

ROUNDS = 60
IDLE_SECONDS = 5.0


async def measure() -> list[Figure]:
    with tempfile.TemporaryDirectory() as folder:
        host = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "benchmarks.waking",
            folder,
            stdout=asyncio.subprocess.PIPE,
        )
        store = await SqlStore.open(Path(folder), clock=SystemClock(), ids=SystemIds())
        try:
            latencies, idle = await _approve_all(store, host)
        finally:
            await store.close()
            await host.wait()
    milli = 1000.0
    return [
        Figure(
            "approval committed -> run goes on, p50",
            percentile(latencies, 0.5) * milli,
            "ms",
            most=60,
        ),
        Figure("approval committed -> run goes on, p99", percentile(latencies, 0.99) * milli, "ms"),
        Figure("supervisor's CPU while it waits", idle * 100, "%", most=1.0),
    ]


async def _approve_all(
    store: SqlStore, host: asyncio.subprocess.Process
) -> tuple[list[float], float]:
    assert host.stdout is not None
    latencies = []
    idle = 0.0
    for number in range(ROUNDS):
        waiting = json.loads(await host.stdout.readline())
        asked = _approval(waiting["run"], number)
        await store.write(partial(_save, asked))
        if number == 0:
            idle = await _idle_share(host.pid)
        # Approvals come at any time, not in step with the run.
        await asyncio.sleep(0.005 + (number % 7) * 0.011)
        committed = await _approve(store, _approval_id(number))
        went_on = json.loads(await host.stdout.readline())
        latencies.append(max(0.0, went_on["at"] - committed))
    return latencies, idle


def _save(approval: Approval, tx: Transaction) -> None:
    tx.save_approval(approval)


async def _approve(store: SqlStore, approval_id: str) -> float:
    """Say yes as `podium approve` does; gives the moment at which that was committed."""
    await approve(store, SystemClock(), SystemIds(), approval_id, by="ann")
    return time.time()


def _approval(run_id: str, number: int) -> Approval:
    now = SystemClock().now()
    return Approval(
        id=_approval_id(number),
        run_id=run_id,
        call_key=f"{run_id}:step:{number}",
        digest=f"sha256:{number}",
        tool="write_file",
        summary="write a file",
        tier=Tier.T2,
        requested_at=now,
        deadline=now + timedelta(days=1),
    )


def _approval_id(number: int) -> str:
    return f"apr_{number:032x}"


async def _idle_share(pid: int) -> float:
    await asyncio.sleep(1.0)
    before = _cpu_seconds(pid)
    await asyncio.sleep(IDLE_SECONDS)
    return (_cpu_seconds(pid) - before) / IDLE_SECONDS


def _cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


async def _host(folder: Path) -> None:
    """The other side: a run that waits for one approval after the other."""
    store = await SqlStore.open(folder, clock=SystemClock(), ids=SystemIds())
    engine = LocalEngine(
        store, clock=SystemClock(), ids=SystemIds(), presence=FolderPresence(folder / "workers")
    )

    async def nothing(step: StepContext) -> None:
        return None

    async def flow(ctx: FlowContext, _: Any) -> None:
        for number in range(ROUNDS):
            await ctx.step("between", nothing, index=number)
            _say({"run": ctx.run.id})
            await ctx.wait(f"approval:{_approval_id(number)}", seconds=60)
            _say({"at": time.time()})

    engine.register(FlowDefinition("waiting", flow))
    run = await engine.start("waiting")
    await engine.finish(run.id)
    await engine.close()
    await store.close()


def _say(line: dict[str, object]) -> None:
    print(json.dumps(line), flush=True)


if __name__ == "__main__":
    asyncio.run(_host(Path(sys.argv[1])))

"""From an approval to the run going on in another process, on PostgreSQL, and what an idle worker costs.

`--foreground` and `--serve` are the other processes: one that hosts a run which waits, and a worker whose
runs were unloaded while they wait and are claimed again.
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.crew import Member, crew, module, read_line, say
from benchmarks.figures import Figure, percentile
from benchmarks.idle_worker import idle_shares
from benchmarks.machine_costs import opened_engine, opened_store
from benchmarks.server import durable_server
from podium.app.approvals import approve
from podium.core.decisions import Approval, Tier
from podium.core.work import QueueSpec
from podium.engine import FlowDefinition
from podium.platform.system_clock import SystemClock, SystemIds
from podium.ports import Engine, FlowContext, StepContext, Store, Transaction

ROUNDS = 200
QUICK_ROUNDS = 8
IDLE_SECONDS = 30.0
QUICK_IDLE_SECONDS = 2.0
QUEUE = "bench"
ROOM = 4
PARKED_SECONDS = 120.0


@dataclass(frozen=True)
class Woken:
    """Time that a run took to continue, in seconds."""

    since_asked: float
    """Since the person's yes was handed in."""
    since_kept: float
    """Since it was durable."""


async def measure(quick: bool = False) -> list[Figure]:
    rounds = QUICK_ROUNDS if quick else ROUNDS
    with durable_server() as server, tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        hosted = await _foreground(server.url(server.create_database()), place, rounds)
        unloaded = await _unloaded(server.url(server.create_database()), place, rounds)
        seconds = QUICK_IDLE_SECONDS if quick else IDLE_SECONDS
        worker, database = await idle_shares(server, place, seconds)
    return [
        *_figures("hosted run", hosted),
        *_figures("unloaded run", unloaded),
        Figure("idle worker of 2 queues, of a core", worker * 100, "%", most=6.0),
        Figure("PostgreSQL meanwhile, of a core", database * 100, "%"),
    ]


def _figures(name: str, woken: Sequence[Woken]) -> list[Figure]:
    asked = [item.since_asked * 1000 for item in woken]
    kept = [item.since_kept * 1000 for item in woken]
    return [
        Figure(f"approve -> {name} goes on, p50", percentile(asked, 0.5), "ms", most=20.0),
        Figure(f"approve -> {name} goes on, p99", percentile(asked, 0.99), "ms"),
        Figure(f"the same since its commit, {name}, p50", percentile(kept, 0.5), "ms"),
    ]


# --- a run that a process hosts while it waits -------------------------------------------------


async def _foreground(url: str, folder: Path, rounds: int) -> list[Woken]:
    await _migrated(url)
    command = module("waking_many", "--foreground", url, str(folder), str(rounds))
    async with opened_store(url, folder) as store, crew(command, 1) as [host]:
        host.send_line("begin")
        woken = []
        for number in range(rounds):
            run_id = str((await host.hear())["run"])
            await store.write(partial(_save, _approval(run_id, number)))
            woken.append(await _approved(store, host, number))
        return woken


async def _host(url: str, folder: Path, rounds: int) -> None:
    async def flow(ctx: FlowContext, _: Any) -> None:
        for number in range(rounds):
            await ctx.step("between", _nothing, index=number)
            say(run=ctx.run.id)
            await ctx.wait(f"approval:{_approval_id(number)}", seconds=120)
            say(at=time.time())

    async def work(engine: Engine) -> None:
        run = await engine.start("waiting")
        await engine.finish(run.id)
        await read_line()

    await _as_member(url, folder, FlowDefinition("waiting", flow), work)


# --- runs of a queue that are unloaded while they wait -----------------------------------------


async def _unloaded(url: str, folder: Path, rounds: int) -> list[Woken]:
    await _migrated(url)
    command = module("waking_many", "--serve", url, str(folder), str(rounds))
    async with (
        opened_store(url, folder) as store,
        opened_engine(store, url) as engine,
        crew(command, 1) as [worker],
    ):
        engine.register(FlowDefinition("parking", _park))
        worker.send_line("begin")
        runs = [await engine.start("parking", number, queue=QUEUE) for number in range(rounds)]
        async with asyncio.timeout(PARKED_SECONDS):
            for number, run in enumerate(runs):
                await store.write(partial(_save, _approval(run.id, number)))
                await engine.finish(run.id, stop_when_waiting=True)
        return [await _approved(store, worker, number) for number in range(rounds)]


async def _park(ctx: FlowContext, number: int) -> None:
    await ctx.step("before", _nothing)
    await ctx.wait(f"approval:{_approval_id(number)}", seconds=600)
    say(at=time.time())
    await ctx.step("after", _nothing)


async def _serve(url: str, folder: Path, rounds: int) -> None:
    async def work(engine: Engine) -> None:
        async with engine.serve([QueueSpec(name=QUEUE, worker_concurrency=ROOM)]):
            await read_line()

    await _as_member(url, folder, FlowDefinition("parking", _park), work)


# --- both ----------------------------------------------------------------------------------------


async def _approved(store: Store, host: Member, number: int) -> Woken:
    """Say yes as `podium approve` does, and hear when the run went on."""
    # Approvals come at any time, not in step with the run.
    await asyncio.sleep(0.005 + (number % 7) * 0.011)
    asked = time.time()
    approval_id = _approval_id(number)
    await approve(store, SystemClock(), SystemIds(), approval_id, by="ann")
    kept = time.time()
    went_on = float((await host.hear())["at"])
    return Woken(went_on - asked, max(0.0, went_on - kept))


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


def _save(approval: Approval, tx: Transaction) -> None:
    tx.save_approval(approval)


async def _nothing(step: StepContext) -> None:
    return None


async def _migrated(url: str) -> None:
    from podium.engine.distributed.database import migrate

    await asyncio.to_thread(migrate, url)


async def _as_member(
    url: str, folder: Path, flow: FlowDefinition, work: Callable[[Engine], Any]
) -> None:
    async with opened_store(url, folder) as store, opened_engine(store, url) as engine:
        engine.register(flow)
        say(ready=True)
        await read_line()
        await work(engine)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.waking_many")
    parser.add_argument("--quick", action="store_true", help="few rounds")
    side = {"nargs": 3, "metavar": ("URL", "FOLDER", "ROUNDS"), "help": argparse.SUPPRESS}
    parser.add_argument("--foreground", **side)  # type: ignore[arg-type]
    parser.add_argument("--serve", **side)  # type: ignore[arg-type]
    chosen = parser.parse_args(arguments)
    for given, act in ((chosen.foreground, _host), (chosen.serve, _serve)):
        if given:
            asyncio.run(act(given[0], Path(given[1]), int(given[2])))
            return
    for figure in asyncio.run(measure(chosen.quick)):
        print(figure.line())


if __name__ == "__main__":
    main()

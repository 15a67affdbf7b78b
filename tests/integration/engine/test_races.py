"""Two processes reach for one thing at the same instant: exactly one gets it, every time."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from multiprocessing import get_context
from multiprocessing.synchronize import Barrier
from pathlib import Path

import pytest

from podium.app.approvals import approve
from podium.core.decisions import Approval, Tier
from podium.core.errors import LockHeld, NotPossibleNow
from podium.core.work import QueueSpec, Run
from podium.engine import FlowDefinition, FolderPresence, LocalEngine
from podium.platform.system_clock import SystemClock, SystemIds
from podium.ports import FlowContext, Store, Transaction
from podium.store import SqlStore

CLOCK, IDS = SystemClock(), SystemIds()
QUEUE = QueueSpec(name="work", worker_concurrency=1)

Reach = Callable[[Store, LocalEngine, str], Awaitable[bool]]
"""Try to get one thing; True when it was had."""


def test_one_run_is_taken_by_one_of_two_processes(tmp_path: Path) -> None:
    _race(tmp_path, _take_run, rounds=60)


def test_one_approval_is_granted_once(tmp_path: Path) -> None:
    _race(tmp_path, _approve, rounds=150)


def test_one_queued_run_is_claimed_once(tmp_path: Path) -> None:
    _race(tmp_path, _claim, rounds=150)


@pytest.mark.soak
@pytest.mark.parametrize("reach", ["_take_run", "_approve", "_claim"])
def test_ten_thousand_races_all_have_one_winner(tmp_path: Path, reach: str) -> None:
    _race(tmp_path, globals()[reach], rounds=10_000)


async def _take_run(store: Store, engine: LocalEngine, name: str) -> bool:
    try:
        await engine.resume(name)
    except LockHeld:
        return False
    return True


async def _approve(store: Store, engine: LocalEngine, name: str) -> bool:
    try:
        await approve(store, CLOCK, IDS, name, by=engine.worker_id)
    except NotPossibleNow:
        return False
    return True


async def _claim(store: Store, engine: LocalEngine, name: str) -> bool:
    queue = QUEUE.model_copy(update={"name": name})
    claimed = await store.write(lambda tx: tx.claim(engine.worker_id, queue, ["park"], CLOCK.now()))
    return claimed is not None


def _race(folder: Path, reach: Reach, *, rounds: int) -> None:
    names = asyncio.run(_prepare(folder, reach, rounds))
    context = get_context("fork")
    barrier = context.Barrier(2)
    pipes = [context.Pipe(duplex=False) for _ in range(2)]
    racers = [
        context.Process(target=_racer, args=(folder, reach, names, barrier, sender))
        for _, sender in pipes
    ]
    for racer in racers:
        racer.start()
    won = [receiver.recv() for receiver, _ in pipes]
    for racer in racers:
        racer.join()
    winners = [sum(item) for item in zip(*won, strict=True)]
    assert winners == [1] * rounds
    print(f"{rounds} races, won {sum(won[0])} : {sum(won[1])}")


def _racer(folder: Path, reach: Reach, names: list[str], barrier: Barrier, sender) -> None:  # type: ignore[no-untyped-def]  # a pipe's end
    sender.send(asyncio.run(_run_all(folder, reach, names, barrier)))


async def _run_all(folder: Path, reach: Reach, names: list[str], barrier: Barrier) -> list[bool]:
    store = await _open(folder)
    engine = await _engine(store, folder)
    results = []
    for name in names:
        await asyncio.to_thread(barrier.wait)
        results.append(await reach(store, engine, name))
    await asyncio.to_thread(barrier.wait)
    await engine.close()
    await store.close()
    return results


async def _prepare(folder: Path, reach: Reach, rounds: int) -> list[str]:
    store = await _open(folder)
    runs = [
        Run(
            id=IDS.new("run"),
            flow="park",
            created_at=CLOCK.now(),
            queue=f"work{number}" if reach is _claim else None,
        )
        for number in range(rounds)
    ]
    approvals = [_approval(run) for run in runs]

    def fill(tx: Transaction) -> None:
        for run, approval in zip(runs, approvals, strict=True):
            tx.add_run(run)
            if reach is _approve:
                tx.save_approval(approval)

    await store.write(fill)
    await store.close()
    if reach is _approve:
        return [approval.id for approval in approvals]
    return [run.queue or run.id for run in runs]


def _approval(run: Run) -> Approval:
    return Approval(
        id=IDS.new("appr"),
        run_id=run.id,
        call_key=f"{run.id}:step:0",
        digest="sha256:0",
        tool="send",
        summary="send it",
        tier=Tier.T3,
        requested_at=CLOCK.now(),
        deadline=CLOCK.now().replace(year=CLOCK.now().year + 1),
    )


async def _open(folder: Path) -> SqlStore:
    return await SqlStore.open(folder / "state", clock=CLOCK, ids=IDS)


async def _engine(store: Store, folder: Path) -> LocalEngine:
    async def park(ctx: FlowContext, _: object) -> None:
        await ctx.wait("never")

    engine = LocalEngine(store, clock=CLOCK, ids=IDS, presence=FolderPresence(folder / "workers"))
    engine.register(FlowDefinition("park", park))
    return engine

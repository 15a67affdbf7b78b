"""Values that every `Store` refuses: keys that no index can hold, and data too large for others to wait for."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import timedelta

import pytest

from podium.core.errors import BadInput
from podium.core.record_limits import MAX_JSON, MAX_KEY_BYTES
from podium.core.work import QueueSpec, RunStatus, Schedule, WorkerHeartbeat
from podium.ports import EventQuery, Store, Transaction
from tests.unit.contract.nouns import (
    NOON,
    a_call,
    a_note,
    a_queued_run,
    a_run,
    a_signal,
    a_step,
    an_approval,
)

LONG = "k" * (MAX_KEY_BYTES + 201)
HEAVY = "word " * (MAX_JSON // 4)


def a_schedule(name: str, queue: str = "work") -> Schedule:
    return Schedule(name=name, flow="greet", queue=queue, every_seconds=60.0, next_at=NOON)


def a_heartbeat(worker_id: str) -> WorkerHeartbeat:
    return WorkerHeartbeat(id=worker_id, host="h", pid=1, started_at=NOON, beat_at=NOON)


LONG_KEYS: dict[str, Callable[[Transaction], object]] = {
    "a run's dedup key": lambda tx: tx.add_run(a_queued_run(dedup_key=LONG)),
    "a run's queue": lambda tx: tx.add_run(a_run(queue=LONG)),
    "a run's flow": lambda tx: tx.add_run(a_run(flow=LONG)),
    "a step's key": lambda tx: tx.save_step(a_step("run_1", LONG)),
    "a signal's name": lambda tx: tx.add_signal(a_signal("run_1", LONG)),
    "a call's key": lambda tx: tx.save_call(a_call("run_1", LONG)),
    "an approval's digest": lambda tx: tx.save_approval(an_approval("run_1", digest=LONG)),
    "a counter": lambda tx: tx.count(LONG, NOON),
    "a schedule's name": lambda tx: tx.save_schedule(a_schedule(LONG)),
    "a schedule's queue": lambda tx: tx.save_schedule(a_schedule("nightly", LONG)),
    "a worker's id": lambda tx: tx.save_worker(a_heartbeat(LONG)),
}


@pytest.mark.parametrize("work", LONG_KEYS.values(), ids=LONG_KEYS.keys())
async def test_a_key_that_no_index_can_hold_is_refused(
    store: Store, work: Callable[[Transaction], object]
) -> None:
    with pytest.raises(BadInput, match="bytes, and the maximum is 1,") as caught:
        await store.write(work)
    assert len(str(caught.value)) < 200


async def test_keys_are_counted_in_bytes_and_the_longest_ones_are_kept(store: Store) -> None:
    run = a_queued_run(dedup_key="ж" * (MAX_KEY_BYTES // 2), queue="q" * MAX_KEY_BYTES)
    name = "🙂" * (MAX_KEY_BYTES // 4)

    def keep(tx: Transaction) -> None:
        tx.add_run(run)
        tx.add_signal(a_signal(run.id, name))
        tx.save_step(a_step(run.id, f"wait:{name}"))
        tx.save_call(a_call(run.id, f"{run.id}:wait:{name}:0"))
        tx.save_schedule(a_schedule(name))
        tx.count(name, NOON)

    await store.write(keep)
    assert await store.read(lambda view: view.untaken_signals([run.id])) == {(run.id, name)}
    with pytest.raises(BadInput, match="signal's name"):
        await store.write(lambda tx: tx.add_signal(a_signal(run.id, name + "🙂")))


async def test_one_overlong_key_costs_nobody_else_a_write(store: Store) -> None:
    run = a_run()
    await store.write(lambda tx: tx.add_run(run))

    def sending(name: str) -> Callable[[Transaction], None]:
        return lambda tx: tx.add_signal(a_signal(run.id, name))

    names = [*(f"n{number}" for number in range(5)), LONG, *(f"m{number}" for number in range(20))]
    outcomes = await asyncio.gather(
        *(store.write(sending(name)) for name in names), return_exceptions=True
    )
    assert [type(outcome) for outcome in outcomes if outcome is not None] == [BadInput]
    assert len(await store.read(lambda view: view.untaken_signals([run.id]))) == 25


HEAVY_NOUNS: dict[str, Callable[[Transaction], object]] = {
    "run": lambda tx: tx.add_run(a_run(input=HEAVY)),
    "run with a result": lambda tx: tx.save_run(a_run(result=HEAVY, status=RunStatus.SUCCEEDED)),
    "signal": lambda tx: tx.add_signal(a_signal("run_1", "go", payload=HEAVY)),
    "step": lambda tx: tx.save_step(a_step("run_1", "s", output=HEAVY)),
    "event": lambda tx: tx.append("run_1", a_note(HEAVY)),
}


@pytest.mark.parametrize("work", HEAVY_NOUNS.values(), ids=HEAVY_NOUNS.keys())
async def test_what_weighs_too_much_belongs_in_a_file(
    store: Store, work: Callable[[Transaction], object]
) -> None:
    with pytest.raises(BadInput, match="put its content into a file and pass the path"):
        await store.write(work)


async def test_what_was_let_in_can_be_passed_on_and_brought_to_its_end(store: Store) -> None:
    child = a_queued_run(input="x" * (MAX_JSON - 2_000), settings={"more": "y"})
    await store.write(lambda tx: tx.add_run(child))
    claimed = await store.write(lambda tx: tx.claim("w", QueueSpec(name="work"), ["greet"], NOON))
    assert claimed is not None
    ended = claimed.model_copy(update={"status": RunStatus.SUCCEEDED, "task": "t" * 4_000})

    def end(tx: Transaction) -> None:
        tx.save_run(ended)
        output = a_signal("run_parent", "child", payload=ended.model_dump(mode="json"))
        tx.add_signal(output)
        tx.save_step(a_step("run_parent", "child", output=output.model_dump(mode="json")))

    await store.write(end)
    assert await store.read(lambda view: view.run(child.id)) == ended


async def test_a_note_that_weighs_too_much_holds_up_nothing(store: Store) -> None:
    store.note("run_1", a_note("before"))
    store.note("run_1", a_note(HEAVY))
    store.note("run_1", a_note("after"))
    await store.write(lambda tx: tx.count("c", NOON + timedelta(seconds=1)))
    events = await store.read(lambda view: view.events(EventQuery(run_id="run_1")))
    assert [event.body.model_dump()["text"] for event in events] == ["before", "after"]

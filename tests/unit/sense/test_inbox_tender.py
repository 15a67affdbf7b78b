"""The inbox is tended: whatever lies there becomes a run, once, whoever dies or races in between."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import yaml

from podium.core.errors import NotPossibleNow
from podium.core.work import RunStatus
from podium.jobs.sense import WORK_ORDER
from podium.jobs.sense.composition import inbox_of, sense_options
from podium.jobs.sense.orders.inbox_tender import MAX_AT_ONCE
from podium.jobs.sense.orders.worker import inbox_tender
from podium.jobs.sense.testing import MemoryInbox
from podium.testing import retry_until
from tests.unit.sense.sense_harness import CLAIMED, DONE, INBOX, PARKED, Post, Station

LONG_AGO = "run_018f0000000070008000000000000000"


def dropped(station: Station, name: str) -> None:
    op = {"op": "append", "path": "logs/all.log", "content": f"{name}\n"}
    order = {"id": name, "title": f"order {name}", "ops": [op]}
    station.write(f"{INBOX}/{name}.yaml", yaml.safe_dump(order))


def claimed(post: Post, file: str, worker: str, run_id: str = "") -> str:
    """Take a file as a worker does that dies before it could start the run, whose id is given."""
    inbox = inbox_of(post.podium, sense_options(post.podium))
    claim = inbox.claim(file, run_id=run_id or post.podium.ids.new("run"), worker=worker)
    assert claim
    return claim.run_id


async def test_every_order_becomes_one_run_under_the_id_of_its_claim(tmp_path: Path) -> None:
    station = Station(tmp_path, settings={"mode": "autonomous"})
    for number in range(3):
        dropped(station, f"WO-{number}")
    async with station.open() as post:
        assert await post.tend() == 3
        assert await post.tend() == 0
        runs = await post.runs(WORK_ORDER)
    assert sorted(run.task for run in runs) == ["order WO-0", "order WO-1", "order WO-2"]
    assert sorted(name.split("--")[0] for name in station.files(CLAIMED)) == [run.id for run in runs]  # fmt: skip
    assert {run.status for run in runs} == {RunStatus.QUEUED}


async def test_so_many_are_taken_at_once_and_no_more(tmp_path: Path) -> None:
    station = Station(tmp_path)
    for number in range(MAX_AT_ONCE + 1):
        dropped(station, f"WO-{number}")
    async with station.open() as post:
        assert await post.tend() == MAX_AT_ONCE
        assert len(station.files(INBOX)) == 1


async def test_workers_that_race_lose_no_order_and_do_none_twice(tmp_path: Path) -> None:
    station = Station(tmp_path, settings={"mode": "autonomous"})
    names = [f"WO-{number}" for number in range(12)]
    for name in names:
        dropped(station, name)
    async with station.open() as one, station.open() as other:
        for post in (one, other):
            await post.serve()
        await asyncio.gather(one.tend(), other.tend(), one.tend(), other.tend())
        runs = await one.at_rest(WORK_ORDER)
    assert sorted(run.task for run in runs) == sorted(f"order {name}" for name in names)
    assert [run.status for run in runs] == [RunStatus.SUCCEEDED] * len(names)
    assert sorted(station.read("logs/all.log").split()) == sorted(names)
    assert len(station.files(DONE)) == len(names)


async def test_what_a_dead_worker_took_and_did_not_start_is_started_under_its_id(
    tmp_path: Path,
) -> None:
    station = Station(tmp_path, settings={"mode": "autonomous"})
    async with station.open() as post:
        await post.tend()
        dropped(station, "WO-1")
        run_id = claimed(post, "WO-1.yaml", "wrk_of_the_dead")
        [run] = await post.work()
        assert await post.tend() == 0
    assert (run.id, run.status) == (run_id, RunStatus.SUCCEEDED)
    assert station.read("logs/all.log") == "WO-1\n"


async def test_what_a_living_worker_took_is_left_to_it(tmp_path: Path) -> None:
    station = Station(tmp_path)
    dropped(station, "WO-1")
    async with station.open() as one, station.open() as other:
        await other.serve()
        claimed(one, "WO-1.yaml", (await other.podium.hosting_engine()).worker_id)
        assert await one.tend() == 0
        assert await one.runs(WORK_ORDER) == []


async def test_two_that_find_it_left_behind_start_one_run(tmp_path: Path) -> None:
    station = Station(tmp_path)
    async with station.open() as one, station.open() as other:
        await one.tend()
        dropped(station, "WO-1")
        run_id = claimed(one, "WO-1.yaml", "wrk_of_the_dead")
        await asyncio.gather(one.tend(), other.tend())
        [run] = await one.runs(WORK_ORDER)
    assert run.id == run_id


async def test_what_was_taken_under_a_record_that_is_gone_is_parked_and_not_done_again(
    tmp_path: Path,
) -> None:
    station = Station(tmp_path)
    dropped(station, "WO-1")
    async with station.open() as one, station.open() as other:
        claimed(one, "WO-1.yaml", "wrk_of_the_dead", LONG_AGO)
        assert sum(await asyncio.gather(one.tend(), other.tend())) == 0
        assert await one.runs(WORK_ORDER) == []
    order, reason = station.files(PARKED)
    assert order.startswith("WO-1.")
    assert "the record of its run is lost" in station.read(f"{PARKED}/{reason}")


async def test_an_order_whose_run_was_cancelled_is_answered_parked_and_may_be_sent_again(
    tmp_path: Path,
) -> None:
    station = Station(tmp_path, settings={"mode": "autonomous"})
    text = yaml.safe_dump({"id": "WO-1", "title": "words", "tasks": ["do it"]})
    station.write(f"{INBOX}/WO-1.yaml", text)
    async with station.open() as post:
        [run] = await post.work()
        assert run.status is RunStatus.NEEDS_HUMAN
        engine = await post.podium.hosting_engine()
        await engine.cancel(run.id, by="ann")

        async def cancelled() -> bool:
            return (await post.run(run.id)).status is RunStatus.CANCELLED

        await retry_until(cancelled)
        assert await post.tend() == 0
        ack = station.ack("WO-1")
        assert (ack.status, ack.run_id, ack.worker) == ("parked", run.id, engine.worker_id)
        assert "was cancelled" in ack.error
        assert station.files(CLAIMED) == []
        _, reason = station.files(PARKED)
        assert ack.error in station.read(f"{PARKED}/{reason}")
        dropped(station, "WO-1")
        await post.tend()
        await post.at_rest(WORK_ORDER)
    assert station.ack("WO-1").status == "done"


class _Locked(MemoryInbox):
    """Cannot be read for a while."""

    def __init__(self) -> None:
        super().__init__()
        self.looks = 0

    def waiting(self) -> Sequence[str]:
        self.looks += 1
        if self.looks < 3:
            raise NotPossibleNow("the folder cannot be read")
        return super().waiting()


async def test_unusable_inbox_is_reported_once_and_tried_again(tmp_path: Path) -> None:
    station = Station(tmp_path)
    messages: list[str] = []
    stop = asyncio.Event()
    async with station.open() as post:
        inbox = _Locked()
        tender = replace(await inbox_tender(post.podium), inbox=inbox, notify=messages.append)
        tending = asyncio.create_task(tender.serve(stop))
        await retry_until(lambda: inbox.looks >= 3)
        stop.set()
        await tending
    assert messages == ["inbox: the folder cannot be read"]

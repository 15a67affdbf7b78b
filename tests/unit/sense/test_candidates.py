"""A candidate: weighed by the gate, filed and delivered once, whoever dies in between."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
import yaml

from podium.jobs.sense import CANDIDATE
from podium.jobs.sense.orders.work_order import WorkOrder, order_text
from tests.soaking import in_soak
from tests.unit.sense.process_death import Death, When
from tests.unit.sense.sense_harness import CANDIDATES, INBOX, REPORT, Station, item, plan

SAFE = [{"op": "mkdir", "path": "g/docs/new"}, {"op": "append", "path": "logs/a.log", "content": "x"}]  # fmt: skip


async def first_candidate(tmp_path: Path, *ops: dict[str, Any], **options: Any) -> Any:
    """Return the status of the candidate of these operations after its first tick."""
    station = Station(tmp_path, [plan(item("FIX-A", *ops))], mode="supervised", **options)
    station.write("g/docs/a.md", "alpha\n")
    station.write("g/reports/old.md", "old\n")
    async with station.open() as post:
        [status] = (await post.tick()).candidates
        approvals = await post.approvals(status.run_id)
    filed = station.files(CANDIDATES)
    order = yaml.safe_load(station.read(f"{CANDIDATES}/{filed[0]}")) if filed else {}
    return status, order, approvals


@pytest.mark.sample(2)
@pytest.mark.parametrize(
    ("ops", "tier", "zones"),
    [
        ([REPORT], "T1", ["g/reports"]),
        in_soak(SAFE, "T1", ["g/docs", "logs"]),
        ([{"op": "trash", "path": "g/reports/old.md"}], "T2", ["g/reports"]),
        ([{"op": "move", "path": "g/docs/a.md", "to": "logs/a.md"}], "T1", ["g/docs", "logs"]),
        in_soak([{"op": "copy", "path": "g/docs/a.md", "to": "logs/a.md"}], "T1", ["logs"]),
        in_soak(
            [{"op": "session", "session": "SESSION-DEMO-001", "values": {"a": 1}}], "T1", ["state"]
        ),
        ([{"op": "write", "path": f"{INBOX}/WO-X.yaml", "content": "x"}], "T2", ["bridge"]),
        in_soak([], "T2", ["words"]),
    ],
)
async def test_an_order_weighs_what_its_operations_add_up_to(
    tmp_path: Path, ops: list[dict[str, Any]], tier: str, zones: list[str]
) -> None:
    status, order, [approval] = await first_candidate(tmp_path, *ops)
    assert status.state == "waiting"
    assert (order["tier"], order["zones"]) == (tier, zones)
    assert str(approval.tier) == tier
    assert order["provenance"] == ["planner:planner", "health", "acks", "sessions"]


@pytest.mark.parametrize(
    "op",
    [
        {"op": "write", "path": "CLC/x", "content": "x"},
        {"op": "write", "path": "g/docs/../../CLS/x", "content": "x"},
        in_soak({"op": "append", "path": "g/core/engine.py", "content": "x"}),
        in_soak({"op": "tool", "tool": "no.such_tool"}),
        {"op": "tool", "tool": "deliver_order", "arguments": {}},
    ],
)
async def test_what_the_gate_would_never_let_pass_is_refused_before_anybody_is_asked(
    tmp_path: Path, op: dict[str, Any]
) -> None:
    status, order, approvals = await first_candidate(tmp_path, REPORT, op)
    assert status.state == "refused"
    assert status.why.startswith("op 2 (")
    assert (order, approvals) == ({}, [])


async def test_an_order_in_the_inbox_is_the_one_that_was_reviewed(tmp_path: Path) -> None:
    station = Station(tmp_path, [plan(item("FIX-A", REPORT))], mode="supervised")
    async with station.open() as post:
        [status] = (await post.tick()).candidates
        await post.say_yes(status.approval_id)
        await post.status(status.run_id)
    name = f"{status.wo_id}.yaml"
    text = station.read(f"{INBOX}/{name}")
    order = WorkOrder.model_validate(yaml.safe_load(text))
    assert text == station.read(f"{CANDIDATES}/{name}") == order_text(order)
    assert order.delivered_by == status.run_id
    assert order.created_at == station.clock.now()


STEPS = ["weigh", "file", "deliver", "answer", "deliver", "trust"]
TIMESTAMPS = [
    pytest.param(number, when, id=f"{name}-{number}-{when}", marks=_marks)
    for when in ("acted", "recorded")
    for number, name in enumerate(STEPS, start=1)
    for _marks in [
        ()
        if when == "acted" and number in (1, len(STEPS) // 2, len(STEPS))
        else (pytest.mark.soak,)
    ]
]


@pytest.mark.sample(1)
@pytest.mark.parametrize(("number", "when"), TIMESTAMPS)
async def test_whenever_the_loop_dies_a_candidate_is_asked_about_and_delivered_once(
    tmp_path: Path, number: int, when: When
) -> None:
    station = Station(tmp_path, [plan(item("FIX-A", REPORT))], mode="supervised")
    death = Death(number, when)
    asked_before = STEPS.index("deliver") + 1 < number
    async with station.open({CANDIDATE: death}) as post:
        if asked_before:
            [status] = (await post.tick()).candidates
            await post.say_yes(status.approval_id)
            await post.dies_with(death)
        else:
            await _dies_in_a_tick(post, death)
    assert death.steps == STEPS[:number]
    async with station.open() as post:
        await post.serve()
        [run] = await post.at_rest(CANDIDATE)
        if not asked_before:
            [asked] = await post.waiting_approvals()
            await post.say_yes(asked.id)
        ended = await post.status(run.id)
        receipts = await post.receipts(run.id)
        approvals = await post.approvals(run.id)
        entries = post.trust.entries()
    assert ended.state == "delivered"
    assert station.files(INBOX) == station.files(CANDIDATES) == [f"{ended.wo_id}.yaml"]
    done = [receipt.tool for receipt in receipts if receipt.status == "completed"]
    assert done == ["file_candidate", "deliver_order"]
    assert len(approvals) == 1
    assert [entry.kind for entry in entries] == ["agreed"]


async def _dies_in_a_tick(post: Any, death: Death) -> None:
    ticking = asyncio.create_task(post.tick())
    await post.dies_with(death)
    ticking.cancel()
    await asyncio.gather(ticking, return_exceptions=True)


async def test_a_worker_that_took_the_order_meanwhile_gets_it_no_second_time(
    tmp_path: Path,
) -> None:
    station = Station(tmp_path, [plan(item("FIX-A", REPORT))], mode="supervised")
    death = Death(5, "acted")
    async with station.open({CANDIDATE: death}) as post:
        [status] = (await post.tick()).candidates
        await post.say_yes(status.approval_id)
        await post.dies_with(death)
    taken = station.root / INBOX / f"{status.wo_id}.yaml"
    taken.rename(station.root / "taken.yaml")
    async with station.open() as post:
        await post.serve()
        assert (await post.status(status.run_id)).state == "delivered"
    assert station.files(INBOX) == []

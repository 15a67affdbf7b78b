"""Execution of an order exactly as approved at delivery: these operations, by one run, and nothing else."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from podium.core.decisions import Approval, Tier
from podium.core.work import Run, RunStatus
from podium.jobs.sense import WORK_ORDER
from podium.jobs.sense.trust import TrustEntry
from tests.soaking import in_soak
from tests.unit.sense.process_death import Death
from tests.unit.sense.sense_harness import ACKS, DONE, INBOX, Post, Station, item, plan

TRASH = {"op": "trash", "path": "g/reports/old.md"}
OTHER_TRASH = {"op": "trash", "path": "g/reports/kept.md"}


def with_old_files(
    tmp_path: Path, *ops: dict[str, str], mode: str = "supervised", **options: Any
) -> Station:
    plans = [plan(item("TIDY", *ops))]
    station = Station(tmp_path, plans, {"mode": "autonomous"}, mode=mode, **options)
    station.write("g/reports/old.md", "old")
    station.write("g/reports/kept.md", "kept")
    return station


async def delivered(post: Post) -> Path:
    """The order in the inbox, after a yes."""
    [status] = (await post.tick(manual=True)).candidates
    assert status.tier == "T2"
    await post.say_yes(status.approval_id)
    assert (await post.status(status.run_id)).state == "delivered"
    return post.station.root / INBOX / f"{status.wo_id}.yaml"


def promoted(post: Post, kind: str = "promoted", tier: Tier = Tier.T2) -> None:
    payload = {"kind": kind, "target": "api", "zone": "g/reports", "tier": tier, "by": "ann"}
    post.trust.add(TrustEntry.model_validate({**payload, "at": post.podium.clock.now()}))


async def asked_by(post: Post, run: Run) -> list[Approval]:
    """Return the approvals that this run waits for."""
    return [approval for approval in await post.waiting_approvals() if approval.run_id == run.id]


async def test_a_yes_at_delivery_covers_the_operations_and_nobody_is_asked_again(
    tmp_path: Path,
) -> None:
    station = with_old_files(tmp_path, TRASH)
    async with station.open() as post:
        order = await delivered(post)
        [run] = await post.work()
        [receipt] = await post.receipts(run.id)
        [approval] = await post.approvals(run.id)
    assert run.status is RunStatus.SUCCEEDED
    assert station.files("g/reports") == ["kept.md", "wo_candidates"]
    assert (receipt.tool, receipt.approval_id, receipt.approved_by) == ("trash_file", approval.id, ("ann",))  # fmt: skip
    assert approval.reason == "approved when the order was delivered"
    assert station.ack(order.stem).status == "done"


def _another_place(order: dict[str, Any]) -> None:
    order["ops"] = [OTHER_TRASH]


def _one_more(order: dict[str, Any]) -> None:
    order["ops"] = [OTHER_TRASH, *order["ops"]]


def _another_id(order: dict[str, Any]) -> None:
    order["id"] = "WO-OTHER"


def _another_deliverer(order: dict[str, Any]) -> None:
    order["delivered_by"] = "run_0199f3c2a7b87c3e9d1f5a6b7c8d9e10"


def _lower_tier(order: dict[str, Any]) -> None:
    order["tier"] = "T0"


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    "change",
    [_another_place, _lower_tier, *map(in_soak, (_one_more, _another_id, _another_deliverer))],
)
async def test_a_yes_does_not_cover_a_file_that_was_edited(tmp_path: Path, change: Any) -> None:
    station = with_old_files(tmp_path, TRASH)
    async with station.open() as post:
        file = await delivered(post)
        order = yaml.safe_load(file.read_text())
        change(order)
        station.write(f"{INBOX}/{file.name}", yaml.safe_dump(order, sort_keys=False))
        [run] = await post.work()
        [asked] = await asked_by(post, run)
    assert run.status is RunStatus.WAITING
    assert asked.tool == "trash_file"
    assert {"old.md", "kept.md"} <= set(station.files("g/reports"))


@pytest.mark.soak
async def test_a_yes_covers_one_run_of_the_order_and_no_second_one(tmp_path: Path) -> None:
    impossible = {"op": "edit", "path": "g/reports/kept.md", "find": "not there", "replace": "x"}
    station = with_old_files(tmp_path, TRASH, impossible, most_tries=1)
    async with station.open() as post:
        file = await delivered(post)
        text = file.read_text()
        [first] = await post.work()
        assert first.status is RunStatus.FAILED
        station.write("g/reports/old.md", "a new one that nobody spoke of")
        station.write(f"{INBOX}/{file.name}", text)
        await post.tend()
        _, second = await post.at_rest(WORK_ORDER)
        assert len(await asked_by(post, second)) == 1
    assert second.status is RunStatus.WAITING
    assert station.read("g/reports/old.md") == "a new one that nobody spoke of"


async def test_an_order_that_was_done_is_not_done_again_although_its_answer_is_gone(
    tmp_path: Path,
) -> None:
    station = with_old_files(tmp_path, TRASH)
    async with station.open() as post:
        file = await delivered(post)
        text = file.read_text()
        await post.work()
        station.write("g/reports/old.md", "a new one that nobody spoke of")
        (station.root / ACKS / f"{file.stem}.ack.json").unlink()
        station.write(f"{INBOX}/{file.name}", text)
        await post.tend()
        _, second = await post.at_rest(WORK_ORDER)
    assert second.status is RunStatus.FAILED
    assert station.read("g/reports/old.md") == "a new one that nobody spoke of"


async def test_an_order_that_somebody_else_put_there_asks_for_itself(tmp_path: Path) -> None:
    station = with_old_files(tmp_path)
    order = {"id": "WO-HAND", "title": "by hand", "ops": [TRASH]}
    station.write(f"{INBOX}/WO-HAND.yaml", yaml.safe_dump(order))
    async with station.open() as post:
        [run] = await post.work()
        assert len(await asked_by(post, run)) == 1
    assert run.status is RunStatus.WAITING


async def test_granted_autonomy_covers_what_it_delivered_unasked(tmp_path: Path) -> None:
    station = with_old_files(tmp_path, TRASH, mode="autonomous")
    async with station.open() as post:
        promoted(post)
        [status] = (await post.tick(manual=True)).candidates
        assert status.state == "delivered"
        [run] = await post.work()
        [receipt] = await post.receipts(run.id)
    assert run.status is RunStatus.SUCCEEDED
    assert receipt.approved_by == ("ann (autonomy)",)


@pytest.mark.sample(1)
@pytest.mark.parametrize("kind", ["incident", "demoted"])
async def test_autonomy_that_was_taken_back_meanwhile_covers_nothing(
    tmp_path: Path, kind: str
) -> None:
    station = with_old_files(tmp_path, TRASH, mode="autonomous")
    async with station.open() as post:
        promoted(post)
        [status] = (await post.tick(manual=True)).candidates
        assert status.state == "delivered"
        promoted(post, kind)
        [run] = await post.work()
        assert len(await asked_by(post, run)) == 1
    assert run.status is RunStatus.WAITING


@pytest.mark.sample(1)
@pytest.mark.parametrize("number", [3, 4], ids=["release", "call"])
async def test_a_crash_neither_loses_a_yes_nor_doubles_it(tmp_path: Path, number: int) -> None:
    station = with_old_files(tmp_path, TRASH)
    death = Death(number, "acted")
    async with station.open({WORK_ORDER: death}) as post:
        await delivered(post)
        await post.serve()
        await post.tend()
        await post.dies_with(death)
    async with station.open() as post:
        [run] = await post.work()
        assert run.status is RunStatus.SUCCEEDED
        assert len(await post.approvals(run.id)) == 1
        assert [receipt.status for receipt in await post.receipts(run.id)] == ["completed"]
    assert len(station.files(DONE)) == 1

"""`kill -9` between the act and its receipt, and many people who approve at the same instant."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import pytest

from podium.app.app import Podium
from podium.app.approvals import approve
from podium.app.run_control import resolve_call
from podium.core.decisions import CallStatus
from podium.core.errors import LockHeld, NotPossibleNow
from podium.jobs.operator.models import OperatorAnswer
from podium.jobs.operator.testing import sure
from podium.ports import Engine, RunQuery
from podium.testing import retry_until
from tests.unit.operator.core.shop import Shop, operator_for, receipts_of

READINGS = {
    "add a lamp": sure(("things.add", {"name": "lamp"})),
    "mail bob": sure(("mail.send", {"to": "bob@example.com", "text": "hello"})),
}
PROGRAM = """
import asyncio, sys
from pathlib import Path
from tests.unit.operator.core.shop import operator_for
from tests.integration.operator.core.test_crashes import READINGS, shop_at

async def main():
    shop = shop_at(Path(sys.argv[1]))
    async with shop.podium() as podium:
        operator = operator_for(podium, READINGS)
        await operator.process(sys.argv[2], "execute", explicit_approval=True)

asyncio.run(main())
"""
ROOT = Path(__file__).parents[4]


def shop_at(folder: Path) -> Shop:
    """The shop that was built there before."""
    shop = Shop.__new__(Shop)
    shop.project, shop.home = folder / "project", folder / "home"
    shop.pack_folder = shop.project / "packs" / "shop"
    return shop


def killed_while(folder: Path, message: str, tool: str) -> Shop:
    """A shop in which `message` was acted on, and Podium killed before the receipt."""
    shop = Shop(folder)
    shop.state.mkdir(parents=True)
    (shop.project / ".podium").chmod(0o700)
    (shop.state / f"die-in-{tool}").touch()
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(folder), message],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == -9, done.stderr
    return shop


async def test_a_send_that_was_cut_off_is_in_doubt_and_not_repeated(tmp_path: Path) -> None:
    shop = killed_while(tmp_path, "mail bob", "mail.send")
    async with shop.podium() as podium:
        run_id = await _only_run(podium)
        engine, store = await podium.hosting_engine(), await podium.store()
        await _taken_over(engine, run_id)
        run = await engine.finish(run_id, stop_when_waiting=True)
        assert run.status == "needs_human"
        (record,) = await store.read(lambda view: view.calls(run_id))
        assert record.status is CallStatus.IN_DOUBT
        assert shop.kept()["sent"] == [["bob@example.com", "hello"]]
        await resolve_call(store, podium.clock, record.key, happened=True, by="ann")
        await engine.resume(run_id)
        ended = await engine.finish(run_id)
        answer = OperatorAnswer(
            mode=None, status="succeeded", message="", exit_code=0, run_id=run_id
        )
        receipts = await receipts_of(podium, answer)
    assert ended.status == "succeeded"
    assert shop.kept()["sent"] == [["bob@example.com", "hello"]]
    assert [receipt.status for receipt in receipts] == ["in_doubt", "completed"]
    assert receipts[1].approved_by == ("ann",)


@pytest.mark.soak
async def test_a_send_that_a_person_says_did_not_happen_is_sent_after_all(tmp_path: Path) -> None:
    shop = killed_while(tmp_path, "mail bob", "mail.send")
    async with shop.podium() as podium:
        run_id = await _only_run(podium)
        engine, store = await podium.hosting_engine(), await podium.store()
        await _taken_over(engine, run_id)
        await engine.finish(run_id, stop_when_waiting=True)
        (record,) = await store.read(lambda view: view.calls(run_id))
        await resolve_call(store, podium.clock, record.key, happened=False, by="ann")
        await engine.resume(run_id)
        ended = await engine.finish(run_id)
        calls = await store.read(lambda view: view.calls(run_id))
    assert ended.status == "succeeded"
    assert [call.key.rpartition(".")[2] for call in calls] == ["0", "1"]
    assert len(shop.kept()["sent"]) == 2


@pytest.mark.soak
async def test_an_idempotent_call_that_was_cut_off_recovers_by_itself(tmp_path: Path) -> None:
    shop = killed_while(tmp_path, "add a lamp", "things.add")
    async with shop.podium() as podium:
        run_id = await _only_run(podium)
        engine = await podium.hosting_engine()
        await _taken_over(engine, run_id)
        run = await engine.finish(run_id)
    assert run.status == "succeeded"
    assert list(shop.kept()["things"]) == ["thing_1"]


async def test_of_many_who_approve_at_once_one_counts_and_the_plan_runs_once(
    tmp_path: Path,
) -> None:
    await _raced(tmp_path, people=200)


@pytest.mark.soak
async def test_of_ten_thousand_who_approve_at_once_one_counts(tmp_path: Path) -> None:
    await _raced(tmp_path, people=10_000)


async def _raced(folder: Path, people: int) -> None:
    """Half of them by one connection to the record, half by another."""
    shop = Shop(folder)
    async with shop.podium() as podium, shop.podium("bea") as other:
        halted = await operator_for(podium, READINGS).process("mail bob", "execute")
        assert halted.action_id
        assert halted.run_id
        answers = await asyncio.gather(
            *(
                _received(item, halted.action_id, f"person-{number}")
                for number in range(people // 2)
                for item in (podium, other)
            )
        )
        engine = await podium.hosting_engine()
        run = await engine.finish(halted.run_id)
        receipts = await receipts_of(podium, halted)
    assert answers.count(True) == 1
    assert run.status == "succeeded"
    assert len(shop.kept()["sent"]) == 1
    assert len(receipts) == 1


async def _received(podium: Podium, action_id: str, who: str) -> bool:
    try:
        await approve(await podium.store(), podium.clock, podium.ids, action_id, by=who)
    except NotPossibleNow:
        return False
    return True


async def _taken_over(engine: Engine, run_id: str) -> None:
    """On many machines the dead one is believed alive until its lease is over."""

    async def resumed() -> bool:
        try:
            await engine.resume(run_id)
        except LockHeld:
            return False
        return True

    await retry_until(resumed)


async def _only_run(podium: Podium) -> str:
    store = await podium.store()
    (run,) = await store.read(lambda view: view.runs(RunQuery()))
    return run.id

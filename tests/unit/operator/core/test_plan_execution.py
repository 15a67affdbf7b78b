"""From words to receipts: what runs, what halts, what is refused, and what is proved."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from podium.app.app import Podium
from podium.app.approvals import approve, reject
from podium.app.packs import open_pack
from podium.app.receipts import find_undoable
from podium.core.decisions import ApprovalStatus
from podium.core.errors import NotPossibleNow
from podium.jobs.operator import Operator
from podium.jobs.operator.models import OperatorAnswer, OperatorMode
from podium.jobs.operator.testing import sure
from tests.unit.operator.core.shop import Shop, cli_for, operator_for, receipts_of

ADD = {"add a lamp": sure(("things.add", {"name": "lamp"}))}
BOTH = {
    "add and publish": sure(("things.publish", {}), ("things.add", {"name": "lamp"})),
    "publish thing_1": sure(("things.publish", {"thing_id": "thing_1"})),
    "burn thing_1": sure(("things.burn", {"thing_id": "thing_1"})),
    "mail bob": sure(("mail.send", {"to": "bob@example.com", "text": "hello"})),
    **ADD,
}


async def test_a_t1_plan_runs_at_once_and_its_receipt_holds_the_proof(tmp_path: Path) -> None:
    shop = Shop(tmp_path)
    async with shop.podium() as podium:
        answer = await operator_for(podium, ADD).process("add a lamp", "execute")
        (receipt,) = await receipts_of(podium, answer)
    assert (answer.status, answer.exit_code) == ("succeeded", 0)
    assert shop.kept()["things"] == {"thing_1": {"name": "lamp", "status": "draft"}}
    assert receipt.fields["thing_id"] == "thing_1"
    (check,) = receipt.fields["verification"]
    assert (check["ok"], check["table"]) == (True, "things")


async def test_a_t2_plan_halts_until_its_action_is_approved_and_then_runs_once(
    tmp_path: Path,
) -> None:
    shop = Shop(tmp_path)
    async with shop.podium() as podium:
        operator = operator_for(podium, BOTH)
        halted = await operator.process("add and publish", "execute")
        assert (halted.status, halted.exit_code) == ("awaiting_approval", 3)
        assert not shop.state.exists()
        done = await operator.process(f"APPROVE: {halted.action_id}")
        again = await operator.process(f"APPROVE: {halted.action_id}")
        receipts = await receipts_of(podium, done)
        store = await podium.store()
        (approval,) = await store.read(lambda view: view.approvals(run_id=done.run_id))
    assert (done.status, done.exit_code) == ("succeeded", 0)
    assert [receipt.tool for receipt in receipts] == ["things.add", "things.publish"]
    assert shop.kept()["things"] == {"thing_1": {"name": "lamp", "status": "public"}}
    assert all(receipt.approved_by == ("ann",) for receipt in receipts)
    assert approval.status is ApprovalStatus.CONSUMED
    assert (again.status, again.exit_code) == ("error", 4)


async def test_a_yes_that_came_along_releases_that_plan(tmp_path: Path) -> None:
    shop = Shop(tmp_path)
    async with shop.podium() as podium:
        operator = operator_for(podium, BOTH)
        answer = await operator.process("add and publish", "execute", explicit_approval=True)
    assert answer.status == "succeeded"
    assert answer.grants[0].by == "ann"


async def test_a_yes_that_came_along_is_worth_nothing_in_a_chain_of_approvers(
    tmp_path: Path,
) -> None:
    shop = Shop(tmp_path)
    async with shop.podium() as podium:
        operator = operator_for(podium, BOTH)
        await operator.process("add a lamp", "execute")
        halted = await operator.process("burn thing_1", "execute", explicit_approval=True)
        assert halted.status == "awaiting_approval"
        assert halted.grants == ()
        assert "does not replace a chain of approvals: ops, then owner" in halted.reason
        with pytest.raises(NotPossibleNow, match="ops"):
            await _say_yes(podium, halted, "oscar")
        await _say_yes(podium, halted, "olga")
        with pytest.raises(NotPossibleNow, match="already"):
            await _say_yes(podium, halted, "olga")
        assert shop.kept()["things"]["thing_1"]["status"] == "draft"
        await _say_yes(podium, halted, "oscar")
        engine = await podium.hosting_engine()
        assert halted.run_id is not None
        await engine.finish(halted.run_id)
        (receipt,) = await receipts_of(podium, halted)
    assert receipt.approved_by == ("olga", "oscar")
    assert shop.kept()["things"]["thing_1"]["status"] == "ash"


async def test_a_rejected_plan_never_runs(tmp_path: Path) -> None:
    shop = Shop(tmp_path)
    async with shop.podium() as podium:
        halted = await operator_for(podium, BOTH).process("mail bob", "execute")
        store, engine = await podium.store(), await podium.hosting_engine()
        assert halted.action_id
        assert halted.run_id
        await reject(
            store, podium.clock, podium.ids, halted.action_id, by="ann", why="not like this"
        )
        run = await engine.finish(halted.run_id)
    assert run.failure is not None
    assert (run.failure.exit_code, "not like this" in run.failure.message) == (4, True)
    assert not (shop.state / "shop.json").exists()


async def test_a_failing_call_ends_the_plan_and_the_rest_is_not_begun(tmp_path: Path) -> None:
    readings = {
        "both": sure(
            ("things.publish", {"thing_id": "nothing"}),
            ("mail.send", {"to": "bob@example.com", "text": "done"}),
        )
    }
    shop = Shop(tmp_path)
    async with shop.podium() as podium:
        operator = operator_for(podium, readings)
        answer = await operator.process("both", "execute", explicit_approval=True)
    assert (answer.status, answer.exit_code) == ("failed", 1)
    assert [result.status for result in answer.results] == ["failed", "skipped"]
    assert "there is no thing 'nothing'" in answer.reason


@pytest.mark.parametrize("mode", ["analyze", "plan"])
async def test_looking_leaves_no_trace(tmp_path: Path, mode: str) -> None:
    shop = Shop(tmp_path)
    async with shop.podium() as podium:
        answer = await operator_for(podium, BOTH).process("mail bob", mode)
    assert answer.exit_code == 0
    assert answer.plan is not None
    assert answer.plan.requires_approval
    assert not (shop.project / ".podium").exists()


async def test_more_calls_than_allowed_are_refused_before_anybody_is_asked(tmp_path: Path) -> None:
    shop = Shop(tmp_path)
    async with shop.podium() as podium:
        operator = operator_for(podium, BOTH, max_tool_calls=1)
        answer = await operator.process("add and publish", "execute", explicit_approval=True)
    assert (answer.status, answer.exit_code) == ("quality_gate_failed", 4)
    assert "at most 1" in answer.reason
    assert not shop.state.exists()


async def test_an_undo_is_gated_linked_and_done_once(tmp_path: Path) -> None:
    shop = Shop(tmp_path)
    async with shop.podium() as podium:
        operator = operator_for(podium, BOTH)
        done = await operator.process("add and publish", "execute", explicit_approval=True)
        name = f"{done.run_id}#2"
        receipt = await find_undoable(await podium.store(), name)
        halted = await operator.undo(receipt, OperatorMode.EXECUTE, False)
        assert halted.status == "awaiting_approval"
        undone = await operator.process(f"APPROVE: {halted.action_id}")
        (proof,) = await receipts_of(podium, undone)
        with pytest.raises(NotPossibleNow, match="undone already"):
            await find_undoable(await podium.store(), name)
    assert undone.status == "succeeded"
    assert proof.fields["undoes"] == name
    assert shop.kept()["things"]["thing_1"]["status"] == "draft"


async def test_two_people_who_undo_the_same_thing_undo_it_once(tmp_path: Path) -> None:
    shop = Shop(tmp_path)
    async with shop.podium() as podium:
        operator = operator_for(podium, BOTH)
        done = await operator.process("add and publish", "execute", explicit_approval=True)
        receipt = await find_undoable(await podium.store(), f"{done.run_id}#2")
        first = await operator.undo(receipt, OperatorMode.EXECUTE, False)
        second = await operator.undo(receipt, OperatorMode.EXECUTE, False)
        one = await operator.process(f"APPROVE: {first.action_id}")
        other = await operator.process(f"APPROVE: {second.action_id}")
    assert (one.status, other.status) == ("succeeded", "refused")
    assert "has already been undone" in other.reason


async def test_of_many_who_undo_the_same_thing_at_once_one_does(tmp_path: Path) -> None:
    shop = Shop(tmp_path)
    async with shop.podium() as podium:
        operator = operator_for(podium, BOTH)
        done = await operator.process("add and publish", "execute", explicit_approval=True)
        receipt = await find_undoable(await podium.store(), f"{done.run_id}#2")
        answers = await asyncio.gather(
            *(operator.undo(receipt, OperatorMode.EXECUTE, True) for _ in range(5))
        )
    statuses = sorted(answer.status for answer in answers)
    assert statuses.count("succeeded") == 1
    assert all("undone" in answer.reason for answer in answers if answer.status != "succeeded")


async def test_approval_of_a_plan_is_valid_once_per_call(tmp_path: Path) -> None:
    """A retry does again what was done: about that somebody is asked again."""
    mail = ("mail.send", {"to": "bob@example.com", "text": "hello"})
    readings = {"mail, then fail": sure(mail, ("things.publish", {"thing_id": "nothing"}))}
    shop = Shop(tmp_path)
    async with shop.podium() as podium:
        answer = await operator_for(podium, readings).process(
            "mail, then fail", "execute", explicit_approval=True
        )
        engine = await podium.hosting_engine()
        assert answer.run_id
        await engine.retry(answer.run_id, from_step="call#1", by="mallory")
        run = await engine.finish(answer.run_id, stop_when_waiting=True)
    assert run.status == "waiting"
    assert len(shop.kept()["sent"]) == 1


async def test_an_approval_is_not_taken_from_strangers(tmp_path: Path) -> None:
    shop = Shop(tmp_path)
    async with shop.podium() as podium:
        operator = operator_for(podium, BOTH)
        halted = await operator.process("mail bob", "execute")
        words = f"APPROVE: {halted.action_id}"
        answer = await operator.process(words, "execute", provenance=("web form",))
    assert (answer.status, answer.exit_code) == ("error", 4)
    assert not (shop.state / "shop.json").exists()


async def test_a_pack_by_its_folder_can_be_run_too(tmp_path: Path) -> None:
    shop = Shop(tmp_path)
    moved = tmp_path / "elsewhere" / "shop"
    moved.parent.mkdir()
    shop.pack_folder.rename(moved)
    shop.pack_folder = moved
    shop.trust()
    async with shop.podium() as podium:
        pack = open_pack(podium, str(moved))
        cli = replace(cli_for(podium, pack, ADD), pack_folder=pack.folder)
        answer = await Operator(cli).process("add a lamp", "execute")
    assert answer.status == "succeeded"


async def test_what_cannot_be_undone_is_reported_before_anybody_approves(tmp_path: Path) -> None:
    shop = Shop(tmp_path)
    async with shop.podium() as podium:
        answer = await operator_for(podium, BOTH).process("mail bob", "plan")
    assert answer.plan is not None
    assert answer.plan.irreversible == ("mail.send",)


async def test_a_pack_that_was_edited_after_the_approval_runs_nothing(tmp_path: Path) -> None:
    shop = Shop(tmp_path)
    async with shop.podium() as podium:
        halted = await operator_for(podium, BOTH).process("mail bob", "execute")
    handlers = shop.pack_folder / "handlers.py"
    handlers.write_text(handlers.read_text() + "\n# edited\n")
    shop.trust()
    async with shop.podium() as podium:
        answer = await operator_for(podium, BOTH).process(f"APPROVE: {halted.action_id}")
    assert (answer.status, answer.exit_code) == ("refused", 4)
    assert "changed after the plan was made" in answer.reason
    assert not (shop.state / "shop.json").exists()


async def _say_yes(podium: Podium, halted: OperatorAnswer, who: str) -> None:
    assert halted.action_id is not None
    groups = podium.settings.approvers
    await approve(
        await podium.store(), podium.clock, podium.ids, halted.action_id, by=who, groups=groups
    )

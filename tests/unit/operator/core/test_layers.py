"""No layer can be skipped: each takes what the one before it made, and holds it against the truth again."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import pytest

from podium.app.app import Podium
from podium.app.packs import open_pack
from podium.core.decisions import Approval, ApprovalStatus, CallOutcome, PlanPosition, Refusal, Tier
from podium.core.errors import PlanNotGated
from podium.core.packs import Pack
from podium.jobs.operator import Brain
from podium.jobs.operator.composition import bench_of
from podium.jobs.operator.flow import perform
from podium.jobs.operator.judgement.judge import judge
from podium.jobs.operator.models import (
    GatedPlan,
    Intent,
    IntentClassification,
    Message,
    OperatorJob,
    Reading,
    RunPlan,
)
from podium.jobs.operator.plan import make_plan
from podium.jobs.operator.plan_gate import inspect, let_pass, must_have_passed
from podium.jobs.operator.testing import sure
from podium.ports import Engine, FlowContext
from podium.testing import FixedClock
from podium.tools.packs import load_pack
from tests.unit.operator.core.shop import Shop, operator_for, unmarked

PUBLISH = sure(("things.publish", {"thing_id": "thing_1"}))


@pytest.fixture
def pack(tmp_path: Path) -> Pack:
    return load_pack(Shop(tmp_path).pack_folder)


def classified(pack: Pack, reading: Reading, **context: Any) -> IntentClassification:
    message = Message(text="words", context=context, now=FixedClock().now())
    return judge(
        message,
        reading,
        pack,
        classification_id="cls_1",
        find_conflict=lambda *_: None,
        find_ungrounded=unmarked,
    )


def planned(pack: Pack, reading: Reading) -> RunPlan:
    message = Message(text="words", now=FixedClock().now())
    return make_plan(classified(pack, reading), message, pack, plan_id="plan_1")


async def test_the_worker_takes_no_plan_that_did_not_pass_the_gate(tmp_path: Path) -> None:
    shop = Shop(tmp_path)
    async with shop.podium() as podium:
        pack = open_pack(podium, "shop")
        bench, plan = await bench_of(podium, pack), planned(pack, PUBLISH)
        job = OperatorJob(plan=plan)
        nowhere = cast(FlowContext, None)
        with pytest.raises(PlanNotGated, match="not a gated plan"):
            await perform(nowhere, bench, cast(GatedPlan, plan), job)
        report = inspect(plan, pack, max_tool_calls=5)
        forged = GatedPlan(plan=plan, plan_hash=plan.plan_hash, report=report)
        with pytest.raises(PlanNotGated, match="T2 needs an approval"):
            await perform(nowhere, bench, forged, job)


def test_a_plan_that_was_changed_behind_the_gate_is_found_out(pack: Pack) -> None:
    gated = let_pass(planned(pack, sure(("things.add", {"name": "lamp"}))), pack, max_tool_calls=5)
    must_have_passed(gated, pack)
    step = gated.plan.steps[0].model_copy(update={"arguments": {"name": "sofa"}})
    changed = gated.plan.model_copy(update={"steps": (step,)})
    with pytest.raises(PlanNotGated, match="changed after"):
        must_have_passed(gated.model_copy(update={"plan": changed}), pack)


def test_a_report_that_says_yes_by_itself_does_not_pass_an_unapproved_plan(pack: Pack) -> None:
    plan = planned(pack, PUBLISH)
    report = inspect(plan, pack, max_tool_calls=5).model_copy(update={"approval_obtained": True})
    forged = GatedPlan(plan=plan, plan_hash=plan.plan_hash, report=report)
    with pytest.raises(PlanNotGated, match="needs an approval"):
        must_have_passed(forged, pack)


async def test_the_brain_starts_nothing_that_could_not_run(tmp_path: Path) -> None:
    shop = Shop(tmp_path)
    async with shop.podium() as podium:
        pack = open_pack(podium, "shop")
        plan = planned(pack, sure(("things.publish", {})))
        assert plan.status == "rejected"
        brain = Brain(
            cast(Engine, None), await podium.store(), podium.clock, podium.ids, 60.0, {}, "q"
        )
        with pytest.raises(PlanNotGated, match="thing_id"):
            await brain.begin(OperatorJob(plan=plan), pack, queued=False)


@pytest.mark.parametrize(
    ("reading", "words"),
    [
        (sure(("things.explode", {})), "'things.explode' is not in the registry"),
        (sure(("things.add", {"name": "lamp", "colour": "red"})), "no field 'colour'"),
    ],
)
def test_an_invented_tool_or_field_is_refused_by_the_contract(
    pack: Pack, reading: Reading, words: str
) -> None:
    found = classified(pack, reading)
    assert found.intent is Intent.REFUSE
    assert found.conflict is not None
    assert found.conflict.directive == "contract_correctness"
    assert words in found.reasoning


def test_tier_is_the_highest_of_its_terms_and_the_arithmetic_is_shown(pack: Pack) -> None:
    found = classified(
        pack, sure(("things.add", {"name": "x"}), ("mail.send", {"to": "a@b.au", "text": "y"}))
    )
    assert found.risk_tier is Tier.T3
    assert "mail.send is registered as T3" in found.risk_reason
    assert "domain comms (mail.*) is T3 by default" in found.risk_reason


def test_words_of_strangers_make_a_plan_one_tier_riskier(pack: Pack) -> None:
    message = Message(text="words", now=FixedClock().now(), provenance=("web form",))
    reading = sure(("things.add", {"name": "lamp"}))
    found = judge(
        message,
        reading,
        pack,
        classification_id="c",
        find_conflict=lambda *_: None,
        find_ungrounded=unmarked,
    )
    plan = make_plan(found, message, pack, plan_id="p")
    assert (found.risk_tier, plan.requires_approval) == (Tier.T2, True)


def test_what_is_missing_is_asked_for_and_what_an_earlier_call_gives_is_not(pack: Pack) -> None:
    alone = classified(pack, sure(("things.publish", {})))
    assert (alone.intent, alone.missing_evidence) == (Intent.CLARIFY, ("thing_id",))
    assert alone.reasoning == "Insufficient evidence to proceed"
    assert alone.question == "Which thing?"
    both = classified(pack, sure(("things.publish", {}), ("things.add", {"name": "lamp"})))
    assert (both.intent, both.missing_evidence) == (Intent.EXECUTE, ())
    known = classified(pack, sure(("things.publish", {})), thing_id="thing_7")
    assert known.wishes[0].arguments == {"thing_id": "thing_7"}


def test_predecessors_come_first_and_their_results_are_handed_on(pack: Pack) -> None:
    plan = planned(pack, sure(("things.publish", {}), ("things.add", {"name": "lamp"})))
    assert plan.tool_sequence == ("things.add", "things.publish")
    assert plan.steps[1].arguments == {"thing_id": {"$from": [1, "thing_id"]}}
    (dependency,) = plan.dependencies
    assert dependency.model_dump() == {
        "tool": "things.publish",
        "depends_on": "things.add",
        "reason": "Required predecessor",
    }


def test_several_of_a_kind_are_handed_on_in_pairs(pack: Pack) -> None:
    intent = [("things.add", {"name": "a"}), ("things.publish", {})]
    plan = planned(pack, sure(*intent, ("things.add", {"name": "b"}), ("things.publish", {})))
    taken = [step.arguments["thing_id"] for step in plan.steps if step.tool == "things.publish"]
    added = [step.number for step in plan.steps if step.tool == "things.add"]
    assert [item["$from"][0] for item in taken] == added


def test_a_circle_of_tools_is_refused(tmp_path: Path) -> None:
    shop = Shop(tmp_path)
    pack = load_pack(shop.pack_folder)
    tools = {tool.name: tool for tool in pack.registry.tools}
    before = tools["things.publish"].depends_on
    circle = tools["things.add"].model_copy(
        update={
            "depends_on": (before[0].model_copy(update={"tool": "things.publish", "fills": {}}),)
        }
    )
    known = (circle, *(tool for name, tool in tools.items() if name != "things.add"))
    bent = pack.model_copy(update={"registry": pack.registry.model_copy(update={"tools": known})})
    plan = planned(bent, sure(("things.publish", {}), ("things.add", {"name": "lamp"})))
    assert plan.status == "rejected"
    assert "depend on each other" in plan.rejected_because


def test_verification_is_read_only_and_its_values_are_parameters(pack: Pack) -> None:
    hostile = "x'; DROP TABLE things; --"
    plan = planned(pack, sure(("things.publish", {"thing_id": hostile})))
    (query,) = plan.steps[0].verification
    assert query.sql == "SELECT id, status FROM things WHERE id = :id"
    assert query.parameters == {"id": "$1.thing_id"}


@pytest.mark.parametrize(
    ("tool", "check", "words"),
    [
        ("os.untried", "worker_safe", "experimental"),
        ("things.add", "schema_correct", "Schema validation failed for tool things.add"),
    ],
)
def test_every_check_of_the_gate_gives_its_reason(
    pack: Pack, tool: str, check: str, words: str
) -> None:
    intent = {"name": 7} if tool == "things.add" else {}
    plan = planned(pack, sure((tool, intent)))
    report = inspect(plan, pack, max_tool_calls=5)
    assert getattr(report, check) is False
    assert words in cast(dict[str, str], report.reasons)[check]
    with pytest.raises(PlanNotGated, match=words):
        let_pass(plan, pack, max_tool_calls=5)


def test_a_tool_without_receipt_fields_cannot_be_proved(pack: Pack) -> None:
    bare = tuple(tool.model_copy(update={"receipt_fields": ()}) for tool in pack.registry.tools)
    bent = pack.model_copy(update={"registry": pack.registry.model_copy(update={"tools": bare})})
    report = inspect(planned(bent, sure(("os.shelf", {}))), bent, max_tool_calls=5)
    assert (report.provable_by_receipt, report.passed) == (False, False)


def test_an_approval_of_another_plan_is_none(pack: Pack) -> None:
    plan, other = planned(pack, PUBLISH), planned(pack, sure(("things.hide", {"thing_id": "t"})))
    now = FixedClock().now()
    approval = Approval(
        id="apr_1", run_id="run_1", call_key="k", digest="d", tool="operator.plan", summary="s",
        tier=Tier.T2, status=ApprovalStatus.GRANTED, requested_at=now, deadline=now,
        plan_hash=other.plan_hash,
    )  # fmt: skip
    with pytest.raises(PlanNotGated, match="another plan"):
        let_pass(plan, pack, max_tool_calls=5, approval=approval)


@pytest.mark.parametrize(
    "claims",
    [
        {"requires_approval": False},
        {"requires_approval": False, "estimated_risk": Tier.T0},
        {"approvals": ()},
        {"approvals": ("owner",)},
    ],
)
def test_a_plan_that_says_less_of_its_risk_than_the_registry_does_not_pass(
    pack: Pack, claims: dict[str, Any]
) -> None:
    plan = planned(pack, sure(("things.burn", {"thing_id": "thing_1"})))
    step = plan.steps[0]
    if claims.get("estimated_risk") is Tier.T0:
        step = step.model_copy(update={"tier": Tier.T0})
    forged = plan.model_copy(update={**claims, "steps": (step,), "status": "ready"})
    assert not inspect(forged, pack, max_tool_calls=5).worker_safe
    with pytest.raises(PlanNotGated):
        let_pass(forged, pack, max_tool_calls=5)


@pytest.mark.parametrize("smuggled", [{"$from": [1, "x"]}, {"deep": [{"$from": []}]}])
async def test_references_come_from_nobody_but_plans(tmp_path: Path, smuggled: Any) -> None:
    shop = Shop(tmp_path)
    async with shop.podium() as podium:
        operator = operator_for(
            podium,
            {
                "by words": sure(("things.publish", {"thing_id": smuggled})),
                "by context": sure(("things.publish", {})),
            },
        )
        output = await operator.process("by words", "execute")
        handed = await operator.process("by context", "execute", {"thing_id": smuggled})
    assert output.status == "refused"
    assert output.classification is not None
    assert output.classification.conflict is not None
    assert (handed.status, handed.exit_code) == ("error", 4)


def test_the_number_of_a_call_is_part_of_what_is_approved(pack: Pack) -> None:
    plan = planned(pack, sure(("things.add", {"name": "a"}), ("things.add", {"name": "b"})))
    first, second = plan.steps
    swapped = plan.model_copy(
        update={
            "steps": (
                first.model_copy(update={"number": 2}),
                second.model_copy(update={"number": 1}),
            )
        }
    )
    assert swapped.plan_hash != plan.plan_hash


async def test_the_door_finds_out_a_call_that_is_not_the_one_in_the_plan(tmp_path: Path) -> None:
    shop = Shop(tmp_path)
    async with shop.podium() as podium:
        run_id, approval_id = await _approved_run(podium)
        bench = await bench_of(podium, open_pack(podium, "shop"))

        async def tried(step: int, tool: str, key: str, **arguments: Any) -> CallOutcome | Refusal:
            call = bench.toolbox.normalise(
                tool, arguments, run_id=run_id, step_key=key, index=0, role="operator"
            )
            place = PlanPosition(step=step, approval_id=approval_id)
            return await bench.toolbox.perform(call.model_copy(update={"plan": place}))

        for wrong in (
            tried(1, "things.publish", "call#1", thing_id="thing_2"),
            tried(1, "things.hide", "call#1", thing_id="thing_1"),
            tried(2, "things.publish", "call#2", thing_id="thing_1"),
            tried(1, "things.publish", "call#2", thing_id="thing_1"),
            tried(1, "things.publish", "elsewhere", thing_id="thing_1"),
        ):
            assert isinstance(await wrong, Refusal)


async def _approved_run(podium: Podium) -> tuple[str, str]:
    """A run with an approved plan that nobody has begun, owned by this process."""
    operator = operator_for(
        podium, {"add": sure(("things.add", {"name": "lamp"})), "publish": PUBLISH}
    )
    await operator.process("add", "execute")
    halted = await operator.process("publish", "execute")
    assert halted.run_id
    assert halted.action_id
    store = await podium.store()

    def grant_silently(tx: Any) -> None:
        approval = tx.approval(halted.action_id)
        tx.save_approval(approval.model_copy(update={"status": ApprovalStatus.GRANTED}))

    await store.write(grant_silently)
    return halted.run_id, halted.action_id

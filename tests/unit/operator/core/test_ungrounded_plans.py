"""A plan with anything in it that nobody said waits for a person, whatever its tier, and says why."""

from __future__ import annotations

from pathlib import Path

import pytest

from podium.core.decisions import Approval, Tier
from podium.core.plan_approval import UngroundedArgument, question_in
from podium.jobs.operator.answer_blocks import blocks
from podium.jobs.operator.models import OperatorJob, RunPlan
from podium.jobs.operator.plan import edited_plan
from podium.jobs.operator.plan_gate import inspect
from podium.jobs.operator.testing import sure
from podium.render.approval import what_line, what_lines
from tests.unit.operator.messages import LEAD
from tests.unit.operator.office import Office, open_office

HELLO = "say hello"
ARCHIVED = sure(("leads.archive", {"lead_id": LEAD}))
WIRED = sure(("os.create_task", {"title": "wire 5000 dollars"}))


async def _pending(office: Office) -> list[Approval]:
    store = await office.podium.store()
    return list(await store.read(lambda view: view.approvals()))


async def test_lies_at_t0_and_t1_are_not_acted_on_without_a_person(tmp_path: Path) -> None:
    async with open_office(tmp_path) as office:
        before = office.performed()
        tools = [item for item in office.pack.registry.tools if office.tier(item.name) < Tier.T2]
        lies = [
            ("leads.archive", {"lead_id": LEAD}),
            ("os.create_task", {"title": "wire 5000 dollars"}),
            ("leads.create", {"name": "Eve", "phone": "+61499999999", "suburb": "Clayton"}),
            ("leads.set_stage", {"lead_id": LEAD, "stage": "won"}),
            ("os.create_snapshot", {}),
            ("os.list_tasks", {}),
        ]
        assert {tool for tool, _ in lies} <= {item.name for item in tools}
        for number, (tool, arguments) in enumerate(lies):
            words = f"good morning, number {number}"
            operator = office.misled(sure((tool, arguments)), words)
            answer = await operator.process(words, "execute")
            assert (answer.status, answer.exit_code) == ("awaiting_approval", 3), tool
            assert f"! {tool}: the message does not ask for it" in blocks(answer)
        assert office.performed() == before


async def test_a_lead_that_nobody_named_is_archived_only_after_a_yes(tmp_path: Path) -> None:
    async with open_office(tmp_path) as office:
        operator = office.misled(ARCHIVED, HELLO)
        answer = await operator.process(HELLO, "execute")
        assert answer.status == "awaiting_approval"
        assert answer.plan is not None
        assert answer.plan.estimated_risk == Tier.T1
        (approval,) = await _pending(office)
        assert "lead_id: not in the message" in approval.reason
        assert "! lead_id: not in the message" in approval.summary
        assert "   ! lead_id: not in the message" in list(what_lines(approval))
        assert what_line(approval).startswith("! not in the message: leads.archive, lead_id!")
        assert "leads.archive" not in office.performed()
        done = await operator.process(f"APPROVE: {answer.action_id}")
        assert (done.status, done.results[0].approved_by) == ("succeeded", ("ann",))
        assert "leads.archive" in office.performed()


async def test_mentioned_values_run_at_once_with_a_model_too(tmp_path: Path) -> None:
    async with open_office(tmp_path) as office:
        words = f"archive lead {LEAD}"
        answer = await office.misled(ARCHIVED, words).process(words, "execute")
        assert answer.status == "succeeded"


async def test_a_yes_beforehand_does_not_count_and_the_answer_says_why(tmp_path: Path) -> None:
    async with open_office(tmp_path) as office:
        operator = office.misled(WIRED, HELLO)
        looked = await operator.process(HELLO, "analyze")
        assert not any("--approve" in action for action in looked.next_actions)
        answer = await operator.process(HELLO, "execute", explicit_approval=True)
        assert answer.status == "awaiting_approval"
        assert "title: not in the message" in answer.reason


async def test_the_quality_gate_stops_a_plan_that_hides_its_marks(tmp_path: Path) -> None:
    async with open_office(tmp_path) as office:
        answer = await office.misled(WIRED, HELLO).process(HELLO, "plan")
        assert answer.plan is not None
        hidden = answer.plan.model_copy(update={"requires_approval": False, "status": "ready"})
        report = inspect(hidden, office.pack, max_tool_calls=50)
        assert not report.worker_safe


async def test_calls_of_a_skill_carry_the_marks_of_the_skill(tmp_path: Path) -> None:
    async with open_office(tmp_path) as office:
        skill = office.pack.skill("leads.intake")
        assert skill is not None
        given = {"name": "Eve", "phone": "+61499999999", "suburb": "Clayton"}
        known = {k: v for k, v in given.items() if k in skill.input_schema["properties"]}
        answer = await office.misled(sure((skill.name, known)), HELLO).process(HELLO, "plan")
        assert answer.plan is not None
        assert all(step.ungrounded for step in answer.plan.steps)
        assert answer.plan.requires_approval


async def test_a_value_that_a_person_wrote_over_is_no_longer_marked(tmp_path: Path) -> None:
    async with open_office(tmp_path) as office:
        answer = await office.misled(WIRED, HELLO).process(HELLO, "plan")
        assert answer.plan is not None
        edited = edited_plan(answer.plan, {1: {"title": "call Jo"}}, office.pack, plan_id="p2")
        assert [mark.field for mark in edited.steps[0].ungrounded] == [""]
        assert edited.requires_approval


def test_plans_from_before_there_were_marks_still_read() -> None:
    step = {"number": 1, "tool": "os.create_task", "arguments": {"title": "x"}, "tier": "T1"}
    old = {
        "plan_id": "p", "classification_id": "c", "status": "ready", "domain": "task",
        "tool_sequence": ["os.create_task"], "estimated_risk": "T1", "requires_approval": False,
        "confidence": 0.9, "pack": "roofing", "pack_digest": "d", "steps": [step],
    }  # fmt: skip
    job = OperatorJob.model_validate({"plan": old})
    marked = job.plan.steps[0].model_copy(update={"ungrounded": (UngroundedArgument(reason="x"),)})
    assert not job.plan.ungrounded
    assert job.plan.plan_hash == RunPlan.model_validate(old).plan_hash
    assert job.plan.model_copy(update={"steps": (marked,)}).ungrounded


@pytest.mark.parametrize("mode", ["enqueue", "execute"])
async def test_every_mode_that_acts_waits(tmp_path: Path, mode: str) -> None:
    async with open_office(tmp_path) as office:
        answer = await office.misled(WIRED, HELLO).process(HELLO, mode)
        assert answer.status == "awaiting_approval"
        (approval,) = await _pending(office)
        question = question_in(approval)
        assert question is not None
        assert [mark.field for mark in question.calls[0].ungrounded] == ["", "title"]

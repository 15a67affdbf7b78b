"""Approvals of whole plans: statements to verify them with, and edits that become a plan of their own."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from podium.app.inbox import Card, CardKind, EditField, JobApprovals, Resubmitted
from podium.app.packs import open_pack
from podium.app.resubmission import json_object, readable_json, resubmit
from podium.core.approvals import Approver
from podium.core.errors import BadInput, PlanNotGated, PlanRejected
from podium.core.plan_approval import SqlQuery
from podium.core.work import Run
from podium.jobs.operator.models import OperatorJob, RunPlan
from podium.jobs.operator.plan import edited_plan
from podium.jobs.operator.plan_gate import must_be_sound
from podium.jobs.operator.plan_preview import changes_between
from podium.ports import Transaction

if TYPE_CHECKING:
    from podium.app.app import Podium


class PlanApprovals(JobApprovals):
    """Approvals that the operator's runs ask for."""

    def verifications(self, card: Card) -> Mapping[int, Sequence[SqlQuery]]:
        return {step.number: step.verification for step in _job(card).plan.steps}

    def why_not_editable(self, card: Card) -> str:
        if card.kind is CardKind.PLAN and _job(card).plan.undoes:
            return "it reverses exactly what a receipt records"
        return ""

    def edit_fields(self, card: Card) -> tuple[EditField, ...] | None:
        if card.kind is not CardKind.PLAN:
            return None
        return tuple(
            EditField(
                name=f"call_{step.number}",
                label=f"{step.number}. {step.tool}, as JSON",
                text=readable_json(step.arguments),
            )
            for step in _job(card).plan.steps
        )

    async def resubmit(
        self, podium: Podium, card: Card, texts: Mapping[str, str], by: Approver
    ) -> Resubmitted:
        from podium.jobs.operator.composition import brain_of, preview_plan

        job = _job(card)
        pack = open_pack(podium, job.pack_folder or job.plan.pack)
        arguments = {
            step.number: json_object(texts[name], f"call {step.number}")
            for step in job.plan.steps
            if (name := f"call_{step.number}") in texts
        }
        try:
            plan = edited_plan(
                job.plan,
                arguments,
                pack,
                plan_id=podium.ids.new("plan"),
                provenance=job.provenance,
            )
            must_be_sound(plan, pack, max_tool_calls=job.max_tool_calls)
        except (PlanRejected, PlanNotGated) as error:
            raise BadInput(f"the plan is not valid: {error}") from None
        _refuse_unasked(job.plan, plan)
        plan = await preview_plan(podium, pack, plan)
        plan = plan.model_copy(
            update={
                "changes": changes_between(job.plan, plan),
                "edited_from": card.approval.id,
            }
        )
        edited = job.model_copy(
            update={"plan": plan, "asked_by": by.name, "approver": None, "explicit_approval": False}
        )

        async def begin(run_id: str, along: Callable[[Transaction], None]) -> Run:
            brain = await brain_of(podium)
            run, _ = await brain.begin(edited, pack, queued=True, run_id=run_id, along=along)
            return run

        store, approval = await podium.store(), card.approval.id
        return await resubmit(store, podium.clock, podium.ids, approval, by=by, begin=begin)


def _refuse_unasked(before: RunPlan, plan: RunPlan) -> None:
    if plan.plan_hash == before.plan_hash:
        raise BadInput("nothing was changed; approve it as it is, or change something")
    if not plan.requires_approval:
        raise BadInput(
            "the edited plan needs no approval; send it to the operator as a message instead"
        )


def _job(card: Card) -> OperatorJob:
    if card.run is None:
        raise AssertionError("a plan without its run has no job")
    return OperatorJob.model_validate(card.run.input)

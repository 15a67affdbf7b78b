"""A plan put to people: asked once, waited for, released or not."""

from __future__ import annotations

from datetime import timedelta
from typing import Protocol

from podium.domain.approving import approver_of, grant, mark_expired
from podium.domain.call_events import ApprovalGranted, ApprovalRequested
from podium.domain.errors import PlanNotGated
from podium.domain.gating import Approval, ApprovalStatus, digest_of
from podium.domain.operating import OperatorJob, RunPlan
from podium.domain.plan_question import question_about, why_asked
from podium.flows.operator.kit import OperatorKit
from podium.flows.operator.summary import summary_of
from podium.ports import Clock, FlowContext, Ids, Step, Store, Tx

PLAN_TOOL = "operator.plan"
"""What an approval of a whole plan calls itself."""


class Asking(Protocol):
    """What it takes to ask people about a plan."""

    @property
    def store(self) -> Store: ...
    @property
    def clock(self) -> Clock: ...
    @property
    def ids(self) -> Ids: ...
    @property
    def approval_seconds(self) -> float: ...


async def put_to_people(kit: Asking, job: OperatorJob, run_id: str) -> Approval:
    """Ask, once for each run: asked again, the same question is given back. On return it is durable."""
    return await kit.store.write(lambda tx: _put(tx, kit, job, run_id))


async def released(ctx: FlowContext, kit: OperatorKit, job: OperatorJob) -> Approval | None:
    """The approval that releases the plan; None where it needs none. Raises `PlanNotGated` for a no."""
    if not job.plan.requires_approval:
        return None

    async def put(step: Step) -> Approval:
        return await put_to_people(kit, job, step.run_id)

    approval = await ctx.step("approval", put, returns=Approval)
    if approval.status is ApprovalStatus.PENDING:
        await ctx.wait(f"approval:{approval.id}", until=approval.deadline)

    async def look(step: Step) -> Approval:
        return await kit.store.write(lambda tx: _looked_at(tx, kit, approval))

    answered = await ctx.step("released", look, returns=Approval)
    _must_be_yes(answered)
    return answered


def _put(tx: Tx, kit: Asking, job: OperatorJob, run_id: str) -> Approval:
    """Ask, or find what was asked before a crash. A yes that came along is written with it."""
    digest = digest_of(["plan", job.plan.plan_hash, run_id])
    known = tx.approval_for(digest, tuple(ApprovalStatus))
    if known is not None:
        return known
    approval = _question(kit, job.plan, run_id, digest)
    tx.append(
        run_id,
        ApprovalRequested(
            approval_id=approval.id,
            call=approval.call_key,
            tool=approval.tool,
            summary=approval.summary,
            digest=digest,
            tier=str(approval.tier),
            arithmetic=approval.arithmetic,
            approvers=approval.approvers,
            deadline=approval.deadline,
        ),
    )
    if job.explicit_approval and counts_beforehand(job.plan):
        approver = approver_of(job.approver or job.asked_by)
        approval = grant(approval, approver, kit.clock.now())
        granted = ApprovalGranted(
            approval_id=approval.id, by=approver.name, authentication=approver.authentication
        )
        tx.append(run_id, granted)
    tx.save_approval(approval)
    return approval


def counts_beforehand(plan: RunPlan) -> bool:
    """Whether a yes that was given before the plan was seen releases it.

    A chain asks for several people, and whoever typed the wish is not all of them. What they did not say
    themselves they could not agree to.
    """
    return not plan.approvals and not plan.ungrounded


def _question(kit: Asking, plan: RunPlan, run_id: str, digest: str) -> Approval:
    now = kit.clock.now()
    question = question_about(plan)
    terms = tuple(dict.fromkeys(term for step in plan.steps for term in step.arithmetic))
    return Approval(
        id=kit.ids.new("apr"),
        run_id=run_id,
        call_key=f"{run_id}:plan",
        digest=digest,
        tool=PLAN_TOOL,
        summary=summary_of(question),
        arguments=question.model_dump(mode="json"),
        tier=plan.estimated_risk,
        arithmetic=terms,
        reason=why_asked(plan),
        approvers=plan.approvals,
        requested_at=now,
        deadline=now + timedelta(seconds=kit.approval_seconds),
        plan_hash=plan.plan_hash,
        plan_calls=len(plan.steps),
    )


def _looked_at(tx: Tx, kit: Asking, approval: Approval) -> Approval:
    known = tx.approval(approval.id) or approval
    return mark_expired(tx, known, kit.clock.now())


def _must_be_yes(approval: Approval) -> None:
    match approval.status:
        case ApprovalStatus.REJECTED:
            why = f": {approval.why}" if approval.why else ""
            raise PlanNotGated(f"{approval.rejected_by or 'a person'} rejected the plan{why}")
        case ApprovalStatus.EXPIRED | ApprovalStatus.PENDING:
            raise PlanNotGated(
                f"nobody approved {approval.id} before {approval.deadline.isoformat()}; ask again"
            )
        case _:
            return

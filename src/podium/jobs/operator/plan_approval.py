"""Approval of a plan: requested once with its summary, waited for, released or not."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Protocol

from podium.core.approval_steps import approver_of, grant, store_expired
from podium.core.decisions import Approval, ApprovalStatus, digest_of
from podium.core.errors import PlanNotGated
from podium.core.plan_approval import ApprovedCall, PlanQuestion
from podium.core.run_events import ApprovalGranted, ApprovalRequested
from podium.jobs.operator.deps import OperatorFlowDeps
from podium.jobs.operator.models import OperatorJob, RunPlan, question_about, why_asked
from podium.ports import Clock, FlowContext, Ids, StepContext, Store, Transaction
from podium.render.argument_text import digested, one_line

MAX_SUMMARY = 4_000
_MAX_CALL = 900
_MAX_LIST = 300
_MAX_VALUE = 300
_MAX_NAME = 60


def summary_of(question: PlanQuestion) -> str:
    """Summarize the plan to approve. The approval itself has every argument in full."""
    asked = digested(one_line(question.message), _MAX_VALUE)
    lines = [f"plan of {_counted(len(question.calls), 'call')} for: {asked}"]
    if question.irreversible:
        tools = _as_many(question.irreversible, _MAX_LIST, ", ", "tool")
        lines.append(f"  cannot be undone: {tools}")
    if question.undoes:
        lines.append(f"  reverses receipt {question.undoes}")
    head = "\n".join(lines)
    calls = [_call(call) for call in question.calls]
    return f"{head}\n{_as_many(calls, MAX_SUMMARY - len(head), chr(10), 'call')}"


def _call(call: ApprovedCall) -> str:
    """A call with its arguments, long ones by beginning, end and digest."""
    arguments = [
        f"{_name(name)}={digested(value, _MAX_VALUE)}" for name, value in call.arguments.items()
    ]
    text = f"{call.tool} ({call.tier}) {_as_many(arguments, _MAX_CALL, ', ', 'argument')}"
    ungrounded = "".join(f"\n     ! {one_line(argument.line)}" for argument in call.ungrounded)
    return f"  {call.number}. {text}".rstrip() + ungrounded


def _name(name: str) -> str:
    return name if name.isidentifier() and len(name) <= _MAX_NAME else digested(name, _MAX_NAME)


def _as_many(parts: Sequence[str], longest: int, between: str, what: str) -> str:
    """The first of them, as far as there is room, and how many more there are."""
    taken, space = 0, longest - _MAX_NAME
    for part in parts:
        space -= len(part) + len(between)
        if space < 0:
            break
        taken += 1
    left = len(parts) - taken
    more = (
        [f"and {_counted(left, f'more {what}')}; `podium approvals ID` shows all"] if left else []
    )
    return between.join([*parts[:taken], *more])


def _counted(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


PLAN_TOOL = "operator.plan"
"""Tool name in the approval of a whole plan."""


class Asking(Protocol):
    """Dependencies of a question to people about a plan."""

    @property
    def store(self) -> Store: ...
    @property
    def clock(self) -> Clock: ...
    @property
    def ids(self) -> Ids: ...
    @property
    def approval_seconds(self) -> float: ...


async def put_to_people(deps: Asking, job: OperatorJob, run_id: str) -> Approval:
    """Ask, once for each run: asked again, the same question is given back. On return it is durable."""
    return await deps.store.write(lambda tx: _put(tx, deps, job, run_id))


async def released(ctx: FlowContext, deps: OperatorFlowDeps, job: OperatorJob) -> Approval | None:
    """The approval that releases the plan; None where it needs none. Raises `PlanNotGated` for a no."""
    if not job.plan.requires_approval:
        return None

    async def put(step: StepContext) -> Approval:
        return await put_to_people(deps, job, step.run_id)

    approval = await ctx.step("approval", put, returns=Approval)
    if approval.status is ApprovalStatus.PENDING:
        await ctx.wait(f"approval:{approval.id}", until=approval.deadline)

    async def look(step: StepContext) -> Approval:
        return await deps.store.write(lambda tx: _looked_at(tx, deps, approval))

    answered = await ctx.step("released", look, returns=Approval)
    _must_be_yes(answered)
    return answered


def _put(tx: Transaction, deps: Asking, job: OperatorJob, run_id: str) -> Approval:
    """Ask, or find what was asked before a crash. A yes that came along is written with it."""
    digest = digest_of(["plan", job.plan.plan_hash, run_id])
    existing = tx.approval_for(digest, tuple(ApprovalStatus))
    if existing is not None:
        return existing
    approval = _question(deps, job.plan, run_id, digest)
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
        approval = grant(approval, approver, deps.clock.now())
        granted = ApprovalGranted(
            approval_id=approval.id, by=approver.name, authentication=approver.authentication
        )
        tx.append(run_id, granted)
    tx.save_approval(approval)
    return approval


def counts_beforehand(plan: RunPlan) -> bool:
    """Return whether a yes that was given before the plan was seen releases it.

    A chain asks for several people, and whoever typed the request is not all of them. What they did not say
    themselves they could not agree to.
    """
    return not plan.approvals and not plan.ungrounded


def _question(deps: Asking, plan: RunPlan, run_id: str, digest: str) -> Approval:
    now = deps.clock.now()
    question = question_about(plan)
    arithmetic = tuple(dict.fromkeys(term for step in plan.steps for term in step.arithmetic))
    return Approval(
        id=deps.ids.new("apr"),
        run_id=run_id,
        call_key=f"{run_id}:plan",
        digest=digest,
        tool=PLAN_TOOL,
        summary=summary_of(question),
        arguments=question.model_dump(mode="json"),
        tier=plan.estimated_risk,
        arithmetic=arithmetic,
        reason=why_asked(plan),
        approvers=plan.approvals,
        requested_at=now,
        deadline=now + timedelta(seconds=deps.approval_seconds),
        plan_hash=plan.plan_hash,
        plan_calls=len(plan.steps),
    )


def _looked_at(tx: Transaction, deps: Asking, approval: Approval) -> Approval:
    current = tx.approval(approval.id) or approval
    return store_expired(tx, current, deps.clock.now())


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

"""Gate of plans: five checks between plan and execution, and the question to people about a plan.

A `GatedPlan` comes from here alone. Its receiver checks it against the plan again, so that one made or changed
elsewhere is rejected.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta
from typing import Protocol

from podium.core.approval_steps import approver_of, grant, store_expired
from podium.core.decisions import Approval, ApprovalStatus, digest_of
from podium.core.errors import PlanNotGated
from podium.core.json_schema import validator_for
from podium.core.model import Json
from podium.core.packs import Pack, PackTool
from podium.core.plan_approval import ApprovedCall, Outgoing, PlanQuestion
from podium.core.run_events import ApprovalGranted, ApprovalRequested
from podium.jobs.operator.judgement.tiers import highest, tool_arithmetic
from podium.jobs.operator.models import (
    CheckName,
    GatedPlan,
    GateReport,
    OperatorJob,
    PlanStep,
    RunPlan,
    question_about,
    why_asked,
)
from podium.jobs.operator.plan import asks_a_person
from podium.jobs.operator.ports import OperatorFlowDeps
from podium.ports import Clock, FlowContext, Ids, StepContext, Store, Transaction
from podium.render.argument_text import digested, one_line

_YES = (ApprovalStatus.GRANTED, ApprovalStatus.RESERVED, ApprovalStatus.CONSUMED)
_MAX_PROBLEMS = 10


def inspect(
    plan: RunPlan, pack: Pack, *, max_tool_calls: int, approval: Approval | None = None
) -> GateReport:
    """Run the five checks. Nothing is decided by them yet."""
    schema = "; ".join(_schema_problems(plan, pack))
    proof = "; ".join(_unprovable(plan, pack))
    unsafe = "; ".join((*_unsafe(plan, pack, max_tool_calls), *_understated(plan, pack)))
    unapproved = _unapproved(plan, approval)
    reasons: dict[CheckName, str] = {
        "schema_correct": schema or "every tool exists and its arguments fit its schema",
        "provable_by_receipt": proof or "every tool declares the fields of its receipt",
        "worker_safe": unsafe or "no experimental tools, and within the limit of calls",
        "approval_obtained": unapproved or _approval_text(plan, approval),
        "safer_alternative": plan.safer_alternative or "the registry declares none",
    }
    return GateReport(
        schema_correct=not schema,
        provable_by_receipt=not proof,
        worker_safe=not unsafe,
        approval_obtained=not unapproved,
        safer_alternative=plan.safer_alternative or None,
        reasons=reasons,
    )


def let_pass(
    plan: RunPlan, pack: Pack, *, max_tool_calls: int, approval: Approval | None = None
) -> GatedPlan:
    """The plan as the brain and the worker take it. Raises `PlanNotGated` with the first reason."""
    must_be_sound(plan, pack, max_tool_calls=max_tool_calls)
    report = inspect(plan, pack, max_tool_calls=max_tool_calls, approval=approval)
    if not report.passed:
        raise PlanNotGated(first_problem(report))
    return GatedPlan(
        plan=plan,
        plan_hash=plan.plan_hash,
        report=report,
        approval_id=approval.id if approval else None,
        max_tool_calls=max_tool_calls,
    )


def must_be_sound(plan: RunPlan, pack: Pack, *, max_tool_calls: int) -> None:
    """Raises `PlanNotGated` for a plan that could not run even if everybody agreed."""
    if plan.status == "rejected":
        raise PlanNotGated(f"the plan was rejected: {plan.rejected_because}")
    report = inspect(plan, pack, max_tool_calls=max_tool_calls)
    if not report.sound:
        raise PlanNotGated(first_problem(report))


def must_have_passed(gated: GatedPlan, pack: Pack) -> None:
    """Raises `PlanNotGated` unless this plan, as it is now, passes what it is said to have passed."""
    if not isinstance(gated, GatedPlan):
        raise PlanNotGated(
            f"{type(gated).__name__} is not a gated plan; pass it through the quality gate"
        )
    if gated.plan_hash != gated.plan.plan_hash:
        raise PlanNotGated("the plan was changed after it passed the quality gate")
    if gated.plan.pack_digest != pack.digest:
        raise PlanNotGated(
            f"pack {pack.name!r} was changed after the plan was made; ask again for a new plan"
        )
    today = inspect(gated.plan, pack, max_tool_calls=gated.max_tool_calls)
    if not (today.sound and gated.report.passed):
        raise PlanNotGated(first_problem(today if not today.sound else gated.report))
    if gated.plan.requires_approval and not gated.approval_id:
        raise PlanNotGated("the plan needs an approval and has none")


def first_problem(report: GateReport) -> str:
    """The reason of the first check that failed."""
    checks: tuple[CheckName, ...] = (
        "schema_correct",
        "provable_by_receipt",
        "worker_safe",
        "approval_obtained",
    )
    failed = [name for name in checks if not getattr(report, name)]
    return report.reasons[failed[0]] if failed else ""


def _schema_problems(plan: RunPlan, pack: Pack) -> Iterator[str]:
    for step in plan.steps:
        tool = pack.tool(step.tool)
        if tool is None:
            yield f"tool {step.tool} is not in the registry"
            continue
        problems = list(_argument_problems(tool, step))[:_MAX_PROBLEMS]
        if problems:
            yield f"Schema validation failed for tool {step.tool}: {', '.join(problems)}"


def _argument_problems(tool: PackTool, step: PlanStep) -> Iterator[str]:
    """Validate the arguments of a call, except those that earlier results will give: the tool door validates them then."""
    later = {name for name, value in step.arguments.items() if _has_reference(value)}
    schema = {
        **tool.input_schema,
        "required": [name for name in tool.required if name not in later],
    }
    arguments = {name: value for name, value in step.arguments.items() if name not in later}
    for error in validator_for(schema).iter_errors(arguments):
        path = "/".join(str(part) for part in error.absolute_path)
        yield f"{path}: {error.message}"[:300] if path else error.message[:300]


def _unprovable(plan: RunPlan, pack: Pack) -> Iterator[str]:
    for name in dict.fromkeys(plan.tool_sequence):
        tool = pack.tool(name)
        if tool is None or not tool.receipt_fields:
            yield f"tool {name} declares no receipt_fields, so nothing would prove its call"


def _unsafe(plan: RunPlan, pack: Pack, max_tool_calls: int) -> Iterator[str]:
    for name in dict.fromkeys(plan.tool_sequence):
        tool = pack.tool(name)
        if tool is not None and tool.experimental:
            yield f"tool {name} is experimental"
    if len(plan.steps) > max_tool_calls:
        yield f"the plan has {len(plan.steps)} calls, but at most {max_tool_calls} are allowed"
    if not plan.steps:
        yield "the plan has no calls"


def _understated(plan: RunPlan, pack: Pack) -> Iterator[str]:
    """Find claims of a plan below the registry's own: its risk, and the people to ask."""
    tools = [(step, pack.tool(step.tool)) for step in plan.steps]
    registered = [(step, tool) for step, tool in tools if tool is not None]
    for step, tool in registered:
        computed = highest(tool_arithmetic(tool, step.arguments, pack))
        if step.tier < computed:
            yield f"call {step.number} has tier {step.tier}, but {tool.name} is {computed}"
    tier = max((step.tier for step, _ in registered), default=plan.estimated_risk)
    if plan.estimated_risk < tier or plan.requires_approval != asks_a_person(tier, plan.steps):
        yield f"the plan declares less than tier {tier}"
    groups = tuple(dict.fromkeys(group for _, tool in registered for group in tool.approvals))
    if plan.steps and plan.approvals != groups:
        yield f"the plan asks {', '.join(plan.approvals) or 'nobody'} for approval, its tools {', '.join(groups) or 'nobody'}"


def _unapproved(plan: RunPlan, approval: Approval | None) -> str:
    if not plan.requires_approval:
        return ""
    if approval is None:
        chain = f" by {', then '.join(plan.approvals)}" if plan.approvals else ""
        because = f"; {why_asked(plan)}" if plan.ungrounded else ""
        return f"{plan.estimated_risk} needs an approval{chain}{because}"
    if approval.plan_hash != plan.plan_hash:
        return f"approval {approval.id} is for another plan; any change voids it"
    if approval.status not in _YES:
        return f"approval {approval.id} is {approval.status}"
    return ""


def _approval_text(plan: RunPlan, approval: Approval | None) -> str:
    if not plan.requires_approval:
        return f"{plan.estimated_risk} needs no approval"
    people = ", ".join(grant.by for grant in approval.grants) if approval else ""
    return f"approved by {people}"


def _has_reference(value: Json) -> bool:
    if isinstance(value, Mapping):
        return set(value) == {"$from"} or any(map(_has_reference, value.values()))
    return isinstance(value, list) and any(map(_has_reference, value))


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
    return f"  {call.number}. {text}".rstrip() + _sent(call.outgoing) + ungrounded


def _sent(outgoing: Outgoing | None) -> str:
    if outgoing is None or outgoing.problem:
        return ""
    text = f"{outgoing.subject} {outgoing.text}".strip()
    parts = (outgoing.to, outgoing.amount, *outgoing.attachments)
    about = ", ".join(digested(part, _MAX_VALUE) for part in (*parts, text) if part)
    return f"\n     sends {about}"


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

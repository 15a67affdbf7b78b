"""The quality gate between plan and execution: five checks, each with its reason.

A `GatedPlan` comes from here alone. Whoever is handed one holds it against the plan again, so that
one that was made or changed elsewhere is found out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from podium.core.decisions import Approval, ApprovalStatus
from podium.core.errors import PlanNotGated
from podium.core.json_schema import validator_for
from podium.core.model import Json
from podium.core.packs import Pack, PackTool
from podium.jobs.operator.judgement.tiers import highest, tool_arithmetic
from podium.jobs.operator.models import (
    CheckName,
    GatedPlan,
    GateReport,
    PlanStep,
    RunPlan,
    why_asked,
)
from podium.jobs.operator.skills.plan import asks_a_person

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
        "provable_by_receipt": proof or "every tool names what its receipt will hold",
        "worker_safe": unsafe or "no experimental tool, and within the limit of calls",
        "approval_obtained": unapproved or _approval_text(plan, approval),
        "safer_alternative": plan.safer_alternative or "the registry names none",
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
        raise PlanNotGated(f"{type(gated).__name__} is no gated plan; plans pass the quality gate")
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
            yield f"tool {name} names no receipt_fields, so nothing would prove it"


def _unsafe(plan: RunPlan, pack: Pack, max_tool_calls: int) -> Iterator[str]:
    for name in dict.fromkeys(plan.tool_sequence):
        tool = pack.tool(name)
        if tool is not None and tool.experimental:
            yield f"tool {name} is experimental"
    if len(plan.steps) > max_tool_calls:
        yield f"the plan has {len(plan.steps)} calls and at most {max_tool_calls} are allowed"
    if not plan.steps:
        yield "the plan has no calls"


def _understated(plan: RunPlan, pack: Pack) -> Iterator[str]:
    """Find claims of a plan below the registry's own: its risk, and the people to ask."""
    tools = [(step, pack.tool(step.tool)) for step in plan.steps]
    registered = [(step, tool) for step, tool in tools if tool is not None]
    for step, tool in registered:
        computed = highest(tool_arithmetic(tool, step.arguments, pack))
        if step.tier < computed:
            yield f"call {step.number} says {step.tier} and {tool.name} is {computed}"
    tier = max((step.tier for step, _ in registered), default=plan.estimated_risk)
    if plan.estimated_risk < tier or plan.requires_approval != asks_a_person(tier, plan.steps):
        yield f"the plan says less than {tier} of itself"
    groups = tuple(dict.fromkeys(group for _, tool in registered for group in tool.approvals))
    if plan.steps and plan.approvals != groups:
        yield f"the plan asks {plan.approvals or 'nobody in particular'}, its tools {groups}"


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
        return f"{plan.estimated_risk} needs none"
    people = ", ".join(grant.by for grant in approval.grants) if approval else ""
    return f"approved by {people}"


def _has_reference(value: Json) -> bool:
    if isinstance(value, Mapping):
        return set(value) == {"$from"} or any(map(_has_reference, value.values()))
    return isinstance(value, list) and any(map(_has_reference, value))

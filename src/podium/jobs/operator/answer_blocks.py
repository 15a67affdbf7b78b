"""Five blocks: every answer, refusals included, as text of one fixed shape."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from podium.core.ids import short_id
from podium.core.model import Json
from podium.jobs.operator.judgement.tiers import reason_of
from podium.jobs.operator.models import (
    CallResult,
    CheckName,
    GateReport,
    OperatorAnswer,
    OperatorMode,
    PlanStep,
    RunPlan,
    question_about,
    record_line,
)
from podium.platform.invisible_text import written_out
from podium.render.approval import change_lines, outgoing_lines
from podium.render.argument_text import exactly, in_line, long_values, one_line, short_values

_NO_TOOLS = "No tools involved; nothing was done"
_ENDED = ("succeeded", "failed", "in_doubt", "cancelled")


def blocks(answer: OperatorAnswer) -> str:
    """`[INTENT] [PLAN]`-or-`[RESULT] [TOOL IMPACT] [RISKS / GATES] [NEXT ACTIONS]`, in this order."""
    parts = block_lines(answer)
    return "\n\n".join("\n".join((f"[{title}]", *lines)) for title, lines in parts.items())


def block_lines(answer: OperatorAnswer) -> dict[str, tuple[str, ...]]:
    """Render the lines of each block under its title, in the order of the blocks."""
    second = "RESULT" if _has_result(answer) else "PLAN"
    parts = {
        "INTENT": _intent(answer),
        second: _result(answer) if second == "RESULT" else _plan(answer),
        "TOOL IMPACT": _impact(answer),
        "RISKS / GATES": _risks(answer),
        "NEXT ACTIONS": _next(answer),
    }
    return {title: tuple(map(written_out, lines)) for title, lines in parts.items()}


def _has_result(answer: OperatorAnswer) -> bool:
    return bool(answer.results) and answer.status not in ("awaiting_approval", "enqueued")


def _intent(answer: OperatorAnswer) -> Iterator[str]:
    classification, plan = answer.classification, answer.plan
    if classification is None:
        yield f"Domain: {plan.domain if plan else 'system'}"
        yield "Intent: execute"
        yield f"Confidence: {_percent(plan.confidence if plan else 1.0)}"
        yield f"Reasoning: {_without_reading(answer)}"
        return
    yield f"Domain: {classification.domain}"
    yield f"Intent: {classification.intent}"
    yield f"Confidence: {_percent(classification.confidence)}"
    yield f"Reasoning: {one_line(classification.reasoning)}"
    if classification.not_used:
        parts = ", ".join(repr(one_line(part)) for part in classification.not_used)
        yield f"Not used: {parts}"
    if classification.urgency != "normal":
        yield f"Urgency: {classification.urgency}"
    if answer.reading_usage.turns:
        cost = _cost(answer.reading_usage.usd)
        yield f"Read by: {classification.classifier} ({cost}, {answer.reading_usage.seconds:.1f} s)"


def _without_reading(answer: OperatorAnswer) -> str:
    """Reason for an answer to which no message was read."""
    if answer.plan is None:
        return one_line(answer.reason) or "No message was read"
    if answer.plan.undoes:
        run, _, number = answer.plan.undoes.rpartition("#")
        return f"Reverses receipt {number} of run {short_id(run)}"
    return "The plan shown before"


def _plan(answer: OperatorAnswer) -> Iterator[str]:
    yield f"Status: {answer.status}"
    if answer.reason and answer.classification and answer.reason != answer.classification.reasoning:
        yield f"Reason: {one_line(answer.reason)}"
    if answer.run_id:
        yield f"Run: {answer.run_id}"
    for number, option in enumerate(answer.options, start=1):
        yield f"  {number}. {one_line(option.label) or option.kind} ({option.id})"
    if answer.plan is None or answer.options:
        return
    if answer.plan.summary:
        yield f"In short: {one_line(answer.plan.summary)}"
    yield f"Plan hash: {answer.plan.plan_hash}"
    yield from change_lines(question_about(answer.plan))
    for step in answer.plan.steps:
        yield from _step(answer, step)
    for dependency in answer.plan.dependencies:
        yield f"  {dependency.tool} after {dependency.depends_on}: {one_line(dependency.reason)}"
    if answer.plan.steps:
        yield f"Estimate: {_cost(answer.plan.estimate.usd)}, {answer.plan.estimate.seconds:g} s"


def _step(answer: OperatorAnswer, step: PlanStep) -> Iterator[str]:
    """Render a call of the plan; in full in mode plan and where an approval is requested."""
    call = f"  {step.number}. {step.tool} ({step.tier})"
    if answer.mode is OperatorMode.PLAN or answer.status == "awaiting_approval":
        inline, lines = exactly(step.arguments, indent=7)
        yield f"{call} {inline}".rstrip()
        yield from lines
        yield from outgoing_lines(step.outgoing, indent=5)
    else:
        yield f"{call} {in_line(step.arguments)}".rstrip()
    yield from (f"     = {one_line(record_line(record))}" for record in step.records)
    yield from (f"     ! {one_line(argument.line)}" for argument in step.ungrounded)
    if answer.mode is OperatorMode.PLAN:
        yield from _verification(step)


def _verification(step: PlanStep) -> Iterator[str]:
    for query in step.verification:
        yield f"     verify: {query.sql}"
        yield f"             {in_line(query.parameters)}"


def _result(answer: OperatorAnswer) -> Iterator[str]:
    yield f"Status: {answer.status}"
    if answer.reason:
        yield f"Reason: {one_line(answer.reason)}"
    if answer.run_id:
        yield f"Run: {answer.run_id}"
    for result in answer.results:
        yield _result_line(result)
        yield from long_values(_answer_fields(result), indent=5)
    if answer.plan is not None:
        spent, seconds = sum(e.usd for e in answer.results), sum(e.seconds for e in answer.results)
        foreseen = _cost(answer.plan.estimate.usd)
        yield f"Cost: {_cost(spent)} ({foreseen} estimated), {seconds:.2f} s"


def _result_line(result: CallResult) -> str:
    proof = f"receipt {result.receipt}" if result.receipt is not None else "no receipt"
    checks = result.fields.get("verification") or []
    verified = f", verified by {len(checks)} rows" if len(checks) > 1 else ", verified"
    detail = (
        one_line(result.error) if result.error else in_line(short_values(_answer_fields(result)))
    )
    proved = verified if checks and result.status == "completed" else ""
    return f"  {result.number}. {result.tool}: {result.status} ({proof}{proved}) {detail}".rstrip()


def _answer_fields(result: CallResult) -> dict[str, Json]:
    """Return the fields to show. An empty text says nothing; --json has it."""
    return {
        name: value
        for name, value in result.fields.items()
        if name != "verification" and value != ""
    }


def _impact(answer: OperatorAnswer) -> Iterator[str]:
    plan, classification = answer.plan, answer.classification
    if plan is None or not plan.steps:
        named = ", ".join(classification.tool_candidates) if classification else ""
        yield f"Candidates: {named}" if named else _NO_TOOLS
        return
    if _has_result(answer):
        done = {
            result.number: result.tool for result in answer.results if result.status == "completed"
        }
        yield f"Executed: {', '.join(done.values()) or 'none'}"
        left = [result.tool for result in answer.results if result.status == "skipped"]
        if left:
            yield f"Not started: {', '.join(left)}"
        yield from _ways_back(plan, [step for step in plan.steps if step.number in done])
        return
    yield f"Tools: {', '.join(dict.fromkeys(plan.tool_sequence))}"
    if answer.status == "enqueued":
        yield "Handed to a worker"
    elif answer.status not in _ENDED:
        yield "Nothing has been done yet"
    yield from _ways_back(plan, plan.steps)


def _ways_back(plan: RunPlan, steps: Sequence[PlanStep]) -> Iterator[str]:
    """List the steps that can be undone, done or planned, and those that cannot."""
    undo = {step.tool: step for step in steps if step.undo}
    if undo:
        ways = (f"{tool} with {step.undo}" for tool, step in undo.items())
        yield f"Can be undone: {', '.join(ways)}"
    for tool, step in undo.items():
        if step.undo_until:
            yield f"  {tool}: {one_line(step.undo_until)}"
    for_good = [tool for tool in plan.irreversible if any(step.tool == tool for step in steps)]
    if for_good:
        yield f"Cannot be undone: {', '.join(for_good)}"
    if plan.undoes:
        yield f"Reverses receipt: {plan.undoes}"


def _risks(answer: OperatorAnswer) -> Iterator[str]:
    classification, plan = answer.classification, answer.plan
    if classification is not None and classification.conflict is not None:
        yield f"Conflicting directive: {classification.conflict.directive}"
        yield f"Severity: {classification.conflict.severity}"
    tier = plan.estimated_risk if plan and plan.steps else None
    tier = classification.risk_tier if tier is None and classification else tier
    yield f"Risk tier: {tier if tier is not None else 'T0'}"
    yield _approval(answer)
    if classification is not None:
        yield f"Risk reason: {one_line(classification.risk_reason)}"
    elif plan is not None:
        arithmetic = [term for step in plan.steps for term in step.arithmetic]
        yield f"Risk reason: {one_line(reason_of(arithmetic))}"
    if answer.gate is not None:
        yield from _gate(answer.gate, answer.status == "quality_gate_failed")


def _approval(answer: OperatorAnswer) -> str:
    people = ", ".join(grant.by for grant in answer.grants)
    if answer.action_id:
        until = f" before {answer.deadline:%Y-%m-%d %H:%M} UTC" if answer.deadline else ""
        return f"Approval required: {answer.action_id}{until}{_chain(answer)}"
    if people:
        return f"Approved by: {people}"
    if answer.plan is not None and answer.plan.requires_approval:
        chain = f" by {', then '.join(answer.plan.approvals)}" if answer.plan.approvals else ""
        return f"Approval required: yes{chain}"
    return "Approval required: no"


def _chain(answer: OperatorAnswer) -> str:
    """Render the chain of approvers: those who approved, and the next one."""
    groups = answer.plan.approvals if answer.plan else ()
    if not groups:
        return ""
    so_far = ", ".join(grant.by for grant in answer.grants) or "nobody"
    next_one = groups[min(len(answer.grants), len(groups) - 1)]
    return f", by {', then '.join(groups)} (so far: {so_far}; next: {next_one})"


def _gate(report: GateReport, in_full: bool) -> Iterator[str]:
    checks: dict[str, tuple[bool, CheckName]] = {
        "Schema correct": (report.schema_correct, "schema_correct"),
        "Provable by receipt": (report.provable_by_receipt, "provable_by_receipt"),
        "Worker safe": (report.worker_safe, "worker_safe"),
        "Approval obtained": (report.approval_obtained, "approval_obtained"),
    }
    for title, (holds, name) in checks.items():
        why = "" if holds or not in_full else f" ({one_line(report.reasons.get(name, ''))})"
        yield f"{title}: {'true' if holds else 'false'}{why}"
    if report.safer_alternative:
        yield f"Safer alternative: {one_line(report.safer_alternative)}"


def _next(answer: OperatorAnswer) -> Iterator[str]:
    actions = [*answer.next_actions, *(f"Similar request before: {s}" for s in _others(answer))]
    for number, action in enumerate(actions or ["Nothing more to do"], start=1):
        yield f"  {number}. {one_line(action)}"


def _percent(confidence: float) -> str:
    return f"{confidence:.0%}"


def _cost(usd: float) -> str:
    return f"{usd:.4f} USD" if usd else "no cost"


def _others(answer: OperatorAnswer) -> list[str]:
    """List the suggestions that differ from the plan."""
    chosen = " → ".join(answer.plan.tool_sequence) if answer.plan else None
    return [
        suggestion for suggestion in answer.suggestions if suggestion.partition(" (")[0] != chosen
    ]

"""Answers, one for each way a message can end."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from podium.core.decisions import Approval, ApprovalStatus, Tier
from podium.core.model import Json
from podium.core.work import Run, RunStatus
from podium.jobs.operator import next_steps
from podium.jobs.operator.models import (
    AnswerStatus,
    CallResult,
    GateReport,
    Intent,
    IntentClassification,
    OperatorAnswer,
    OperatorJob,
    OperatorMode,
    RunPlan,
    Urgency,
    why_asked,
)
from podium.jobs.operator.plan_approval import counts_beforehand
from podium.jobs.operator.quality_gate import first_problem

DONE, FAILED, INPUT_NEEDED, REFUSED = 0, 1, 3, 4
_AFTER_THE_GATE = ("Mend what Reason names, then ask again",)


class Answers:
    """Makes answers. None of them stores anything."""

    def __init__(self, pack: str = "") -> None:
        """`pack` is the name of the one whose tools could be meant."""
        self._pack = pack

    def not_understood(self, message: Json, mode: Json, problems: Sequence[str]) -> OperatorAnswer:
        """Answer an input that cannot be read. Nothing was stored."""
        empty = isinstance(message, str) and not message.strip()
        intent = Intent.CLARIFY if empty else Intent.REFUSE
        return OperatorAnswer(
            mode=OperatorMode(mode) if mode in list(OperatorMode) else None,
            status="clarify" if empty else "error",
            message=str(message)[:200],
            exit_code=INPUT_NEEDED if empty else REFUSED,
            classification=_nothing_read(intent, "; ".join(problems)),
            reason="; ".join(problems),
            next_actions=next_steps.to_mend_input(problems),
        )

    def refused(
        self, message: str, mode: OperatorMode, classification: IntentClassification
    ) -> OperatorAnswer:
        return OperatorAnswer(
            mode=mode,
            status="refused",
            message=message,
            exit_code=REFUSED,
            classification=classification,
            reason=classification.reasoning,
            next_actions=next_steps.to_rephrase(classification, self._pack),
        )

    def unclear(
        self,
        message: str,
        mode: OperatorMode,
        classification: IntentClassification,
        plan: RunPlan,
        suggestions: tuple[str, ...],
    ) -> OperatorAnswer:
        return OperatorAnswer(
            mode=mode,
            status="clarify",
            message=message,
            exit_code=INPUT_NEEDED,
            classification=classification,
            plan=plan if plan.steps else None,
            next_actions=next_steps.to_clarify(classification),
            suggestions=suggestions,
        )

    def which_pack(
        self, message: str, mode: OperatorMode, ways: Mapping[str, str], confidence: float
    ) -> OperatorAnswer:
        """A message that tools of several packs fit alike. `ways`: pack → its tool in words."""
        *first, last = ways.values()
        question = f"Which is meant: {', '.join(first)} or {last}?"
        read = _nothing_read(Intent.CLARIFY, "Tools of more than one pack fit about equally")
        return OperatorAnswer(
            mode=mode,
            status="clarify",
            message=message,
            exit_code=INPUT_NEEDED,
            classification=read.model_copy(
                update={"confidence": round(confidence, 4), "question": question}
            ),
            next_actions=(f"Answer: {question}", *next_steps.to_choose_pack(message, ways)),
        )

    def with_other_pack(
        self, answer: OperatorAnswer, message: str, pack: str, tool: str
    ) -> OperatorAnswer:
        """A refusal that names another pack which has a tool for the message."""
        (way,) = next_steps.to_choose_pack(message, [pack])
        named = f"Pack {pack} has {tool} for it: {way.partition(': ')[2]}"
        return answer.model_copy(update={"next_actions": (named, *answer.next_actions)})

    def gate_failed(
        self,
        message: str,
        mode: OperatorMode,
        classification: IntentClassification,
        plan: RunPlan,
        report: GateReport,
    ) -> OperatorAnswer:
        from_gate = "" if plan.status == "rejected" else first_problem(report)
        return OperatorAnswer(
            mode=mode,
            status="quality_gate_failed",
            message=message,
            exit_code=REFUSED,
            classification=classification,
            plan=plan,
            gate=report,
            reason=plan.rejected_because or from_gate,
            next_actions=_AFTER_THE_GATE,
        )

    def looked(
        self,
        message: str,
        mode: OperatorMode,
        classification: IntentClassification | None,
        plan: RunPlan,
        report: GateReport,
        suggestions: tuple[str, ...],
    ) -> OperatorAnswer:
        return OperatorAnswer(
            mode=mode,
            status="planned" if mode is OperatorMode.PLAN else "analyzed",
            message=message,
            exit_code=DONE,
            classification=classification,
            plan=plan,
            gate=report,
            next_actions=(
                *next_steps.to_go_on(message, mode, plan),
                *next_steps.after_lookup(classification),
            ),
            suggestions=suggestions,
        )

    def stopped(
        self,
        job: OperatorJob,
        mode: OperatorMode,
        classification: IntentClassification | None,
        reason: str,
    ) -> OperatorAnswer:
        return OperatorAnswer(
            mode=mode,
            status="quality_gate_failed",
            message=job.plan.message,
            exit_code=REFUSED,
            classification=classification,
            plan=job.plan,
            reason=reason,
            next_actions=_AFTER_THE_GATE,
        )

    def under_way(
        self,
        job: OperatorJob,
        mode: OperatorMode,
        classification: IntentClassification | None,
        run: Run,
        approval: Approval | None,
    ) -> OperatorAnswer:
        """Stored, and either waiting for people or for a worker."""
        pending = approval is not None and approval.status is ApprovalStatus.PENDING
        followed = next_steps.to_follow(run.id)
        actions = next_steps.to_approve(approval, job.plan) if pending and approval else followed
        return OperatorAnswer(
            mode=mode,
            status="awaiting_approval" if pending else "enqueued",
            message=job.plan.message,
            exit_code=INPUT_NEEDED if pending else DONE,
            classification=classification,
            plan=job.plan,
            action_id=approval.id if pending and approval else None,
            deadline=approval.deadline if pending and approval else None,
            grants=approval.grants if approval else (),
            run_id=run.id,
            reason=_not_enough(job) if pending else "",
            next_actions=actions,
        )

    def approved_elsewhere(self, approval: Approval) -> OperatorAnswer:
        """A yes to something that is no plan of the operator."""
        return OperatorAnswer(
            mode=OperatorMode.EXECUTE,
            status="enqueued",
            message=f"APPROVE: {approval.id}",
            exit_code=DONE,
            grants=approval.grants,
            run_id=approval.run_id,
            reason=f"approved {approval.id} of run {approval.run_id}",
            next_actions=next_steps.to_follow(approval.run_id),
        )

    def ended(
        self,
        run: Run,
        plan: RunPlan,
        mode: OperatorMode,
        classification: IntentClassification | None,
        results: Sequence[CallResult],
        approvals: Sequence[Approval],
        *,
        stopped: str = "",
    ) -> OperatorAnswer:
        """`stopped` says why a run that has not ended is hosted no more; it can be resumed."""
        pending = next(
            (approval for approval in approvals if approval.status is ApprovalStatus.PENDING), None
        )
        asked = pending or next((approval for approval in approvals if approval.grants), None)
        status, code = _status(run, results, pending, stopped)
        actions = _next(status, run, plan, results, pending)
        if status == "succeeded" and (then := next_steps.after_lookup(classification)):
            # The lookup is done; what it was for is not.
            code, actions = INPUT_NEEDED, (*then, *actions)
        return OperatorAnswer(
            mode=mode,
            status=status,
            message=plan.message,
            exit_code=code,
            classification=classification,
            plan=plan,
            action_id=pending.id if status == "awaiting_approval" and pending else None,
            deadline=pending.deadline if status == "awaiting_approval" and pending else None,
            grants=asked.grants if asked else (),
            run_id=run.id,
            results=tuple(results),
            reason=stopped or _why(run, status),
            next_actions=next_steps.to_resume(run.id) if stopped else actions,
        )


def _why(run: Run, status: AnswerStatus) -> str:
    if run.failure is not None:
        return run.failure.message
    waits = status == "awaiting_approval"
    return _not_enough(OperatorJob.model_validate(run.input)) if waits else ""


def _not_enough(job: OperatorJob) -> str:
    """Explain why an approval given beforehand did not release the plan."""
    if not job.explicit_approval or counts_beforehand(job.plan):
        return ""
    if not job.plan.approvals:
        return f"a yes given beforehand does not count for what was not said: {why_asked(job.plan)}"
    people = ", then ".join(job.plan.approvals)
    return f"a yes given beforehand counts for no chain: {people} are asked, one after the other"


def _status(
    run: Run, results: Sequence[CallResult], pending: Approval | None, stopped: str
) -> tuple[AnswerStatus, int]:
    if stopped:
        return "failed", FAILED
    if any(result.status == "in_doubt" for result in results):
        return "in_doubt", INPUT_NEEDED
    match run.status:
        case RunStatus.SUCCEEDED:
            return "succeeded", DONE
        case RunStatus.CANCELLED:
            return "cancelled", FAILED
        case RunStatus.FAILED:
            refused = run.failure is not None and run.failure.exit_code == REFUSED
            return ("refused", REFUSED) if refused else ("failed", FAILED)
        case RunStatus.NEEDS_HUMAN:
            return "failed", INPUT_NEEDED
        case _:
            waits = pending is not None
            return ("awaiting_approval", INPUT_NEEDED) if waits else ("enqueued", INPUT_NEEDED)


def _next(
    status: AnswerStatus,
    run: Run,
    plan: RunPlan,
    results: Sequence[CallResult],
    pending: Approval | None,
) -> tuple[str, ...]:
    match status:
        case "succeeded":
            return next_steps.to_prove(run.id, plan, results)
        case "in_doubt":
            return next_steps.to_resolve(run.id)
        case "awaiting_approval" if pending is not None:
            return next_steps.to_approve(pending, plan)
        case "enqueued":
            return next_steps.to_follow(run.id)
        case "refused" | "cancelled":
            return next_steps.to_ask_again(plan.message, plan)
        case _:
            return next_steps.to_mend(run.id, plan, results)


def _nothing_read(intent: Intent, reasoning: str) -> IntentClassification:
    return IntentClassification(
        classification_id="none",
        intent=intent,
        domain="system",
        urgency=Urgency.NORMAL,
        tool_candidates=(),
        required_fields=(),
        missing_evidence=(),
        risk_tier=Tier.T0,
        risk_reason="nothing was read, so nothing would be done",
        confidence=0.0,
        reasoning=reasoning,
    )

"""Answers, one for each way a message can end, with the next steps for a person."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping, Sequence

from podium.core.decisions import Approval, ApprovalStatus, Tier
from podium.core.ids import short_id
from podium.core.model import Json
from podium.core.work import Run, RunStatus
from podium.jobs.operator.models import (
    AnswerStatus,
    CallResult,
    Directive,
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
from podium.jobs.operator.plan_gate import counts_beforehand, first_problem

DONE, FAILED, INPUT_NEEDED, REFUSED = 0, 1, 3, 4
_AFTER_THE_GATE = ("Fix the problem named under Reason, then ask again",)


class Answers:
    """Builds answers. Nothing is stored."""

    def __init__(self, pack: str = "") -> None:
        """`pack` is the name of the pack whose tools may be meant."""
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
            next_actions=to_mend_input(problems),
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
            next_actions=to_rephrase(classification, self._pack),
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
            next_actions=to_clarify(classification),
            options=classification.options,
            suggestions=suggestions,
        )

    def which_pack(
        self, message: str, mode: OperatorMode, ways: Mapping[str, str], confidence: float
    ) -> OperatorAnswer:
        """Ask which pack is meant where tools of several fit equally well. `ways`: pack → description of its tool."""
        *first, last = ways.values()
        question = f"Which one do you mean: {', '.join(first)} or {last}?"
        read = _nothing_read(Intent.CLARIFY, "Tools of more than one pack match equally well")
        return OperatorAnswer(
            mode=mode,
            status="clarify",
            message=message,
            exit_code=INPUT_NEEDED,
            classification=read.model_copy(
                update={"confidence": round(confidence, 4), "question": question}
            ),
            next_actions=(f"Answer: {question}", *to_choose_pack(message, ways)),
        )

    def dropped(self, message: str, request: str) -> OperatorAnswer:
        """Answer `never mind` in a conversation."""
        return OperatorAnswer(
            mode=OperatorMode.EXECUTE,
            status="cancelled",
            message=message,
            exit_code=DONE,
            classification=_nothing_read(Intent.EXECUTE, f"Dropped: {request[:MAX_REPEATED]}"),
            next_actions=("Ask for something else",),
        )

    def already_done(self, message: str, run_id: str) -> OperatorAnswer:
        """Answer a correction of a request that was carried out: words do not undo it."""
        question = "That is done already. What should be done instead, in one whole sentence?"
        read = _nothing_read(Intent.CLARIFY, "The request before was carried out")
        undo = (f"See how to undo it: podium receipts list {short_id(run_id)}",) if run_id else ()
        return OperatorAnswer(
            mode=OperatorMode.EXECUTE,
            status="clarify",
            message=message,
            exit_code=INPUT_NEEDED,
            classification=read.model_copy(update={"question": question}),
            next_actions=(f"Answer: {question}", *undo),
        )

    def with_other_pack(
        self, answer: OperatorAnswer, message: str, pack: str, tool: str
    ) -> OperatorAnswer:
        """Add to a refusal the name of another pack that has a tool for the message."""
        (way,) = to_choose_pack(message, [pack])
        named = f"Pack {pack} has a matching tool, {tool}: {way.partition(': ')[2]}"
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
                *to_go_on(message, mode, plan),
                *after_lookup(classification),
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
        """Answer for a stored run that waits for people or for a worker."""
        pending = approval is not None and approval.status is ApprovalStatus.PENDING
        followed = to_follow(run.id)
        actions = to_approve(approval, job.plan) if pending and approval else followed
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
        """Answer for an approval of something other than a plan of the operator."""
        return OperatorAnswer(
            mode=OperatorMode.EXECUTE,
            status="enqueued",
            message=f"APPROVE: {approval.id}",
            exit_code=DONE,
            grants=approval.grants,
            run_id=approval.run_id,
            reason=f"approved {approval.id} of run {approval.run_id}",
            next_actions=to_follow(approval.run_id),
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
        """Answer for a run that ended. `stopped` says why an unfinished run is no longer hosted; it can be resumed."""
        pending = next(
            (approval for approval in approvals if approval.status is ApprovalStatus.PENDING), None
        )
        asked = pending or next((approval for approval in approvals if approval.grants), None)
        status, code = _status(run, results, pending, stopped)
        actions = _next(status, run, plan, results, pending)
        if status == "succeeded" and (then := after_lookup(classification)):
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
            next_actions=to_resume(run.id) if stopped else actions,
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
        return f"an advance approval does not cover what the message does not say: {why_asked(job.plan)}"
    people = ", then ".join(job.plan.approvals)
    return f"an advance approval does not replace a chain of approvals: {people}"


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
            return to_prove(run.id, plan, results)
        case "in_doubt":
            return to_resolve(run.id)
        case "awaiting_approval" if pending is not None:
            return to_approve(pending, plan)
        case "enqueued":
            return to_follow(run.id)
        case "refused" | "cancelled":
            return to_ask_again(plan.message, plan)
        case _:
            return to_mend(run.id, plan, results)


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
        risk_reason="no message was read, so nothing would be done",
        confidence=0.0,
        reasoning=reasoning,
    )


MAX_REPEATED = 300
"""Characters of a message that is repeated in a command."""
MAX_WAYS_BACK = 3

_RESPECTED = {
    Directive.SAFETY: "safety, confidentiality and the law",
    Directive.CONTRACT: "the limits of the registered tools",
    Directive.CONTINUITY: "the stability of the system",
    Directive.REVENUE: "the stages from lead to payment",
    Directive.BRAND: "the reputation of the business",
    Directive.USER_INTENT: "the request itself",
}


def to_mend_input(problems: Sequence[str]) -> tuple[str, ...]:
    """Suggest a fix for each problem. Most name it themselves, after a semicolon."""
    steps = []
    for problem in problems:
        _, separator, advice = problem.partition("; ")
        steps.append(_as_sentence(advice) if separator else f"Fix this: {problem}")
    return tuple(dict.fromkeys(steps))


def to_clarify(classification: IntentClassification) -> tuple[str, ...]:
    steps = []
    if classification.missing_evidence:
        steps.append(f"Provide missing: {', '.join(classification.missing_evidence)}")
    if classification.question:
        steps.append(f"Answer: {classification.question}")
    if not steps:
        return ("Say exactly what to do, and with which record",)
    if classification.options:
        steps.append(
            "In a session, answer with its number; otherwise send the message again with --context "
            f"{classification.option_field}={classification.options[0].id} or the id of another"
        )
        return tuple(steps)
    fields = set(classification.required_fields)
    to_hand_in = [
        name
        for name in classification.missing_evidence
        if name not in fields and " or " not in name
    ]
    if to_hand_in:
        steps.append(f"Pass {', '.join(to_hand_in)} as JSON with --context-file FILE")
    else:
        steps.append("Send the whole message again, with the answer included")
    return tuple(steps)


def to_choose_pack(message: str, packs: Iterable[str]) -> tuple[str, ...]:
    """Suggest the same message for one pack alone."""
    text = " ".join(message.split())
    command = f"podium ask -m {shlex.quote(text)}"
    if len(text) > MAX_REPEATED:
        command = "the same message with"
    return tuple(f"For pack {pack}: {command} --pack {shlex.quote(pack)}" for pack in packs)


def to_rephrase(classification: IntentClassification, pack: str) -> tuple[str, ...]:
    if classification.conflict is not None:
        _, separator, advice = classification.conflict.because.partition("; ")
        respected = (
            f"Ask for something that respects {_RESPECTED[classification.conflict.directive]}"
        )
        return (
            _as_sentence(advice) if separator else respected,
            "If it must be done, have an authorized person do it outside Podium",
        )
    candidates = ", ".join(classification.tool_candidates[:3])
    first = f"Rephrase the message if you mean one of these: {candidates}" if candidates else ""
    tools = f"See what you can ask for: podium pack show {shlex.quote(pack or 'podium')}"
    return (first, tools) if first else ("Rephrase the message", tools)


def to_go_on(message: str, mode: OperatorMode, plan: RunPlan) -> tuple[str, ...]:
    """Suggest the steps after looking at a plan."""
    steps = []
    if mode is not OperatorMode.PLAN:
        steps.append(f"Show the whole plan: {_again(message, plan, OperatorMode.PLAN)}")
    steps.append(f"Run it: {_again(message, plan, OperatorMode.EXECUTE)}")
    if plan.safer_alternative:
        steps.append(f"Or use the safer alternative: {plan.safer_alternative}")
    return tuple(steps)


def after_lookup(classification: IntentClassification | None) -> tuple[str, ...]:
    """Suggest the message to send once a lookup has shown what was missing."""
    if classification is None or not classification.question:
        return ()
    return (f"Then send the whole message again, with the answer: {classification.question}",)


def to_ask_again(message: str, plan: RunPlan) -> tuple[str, ...]:
    return (f"Ask again if you still want it: {_again(message, plan, OperatorMode.EXECUTE)}",)


def to_approve(approval: Approval, plan: RunPlan) -> tuple[str, ...]:
    """Suggest the message that approves the plan, then the same for a shell."""
    short, who = short_id(approval.id), ""
    if plan.approvals:
        group = plan.approvals[min(len(approval.grants), len(plan.approvals) - 1)]
        who = f", as a member of {group}"
    return (
        f"APPROVE: {approval.id}",
        f"In a shell{who}: podium ask 'APPROVE: {approval.id}'",
        f"See it in full: podium approvals {short}",
        f"Reject it: podium reject {short} --why 'not wanted'",
    )


def to_resume(run_id: str) -> tuple[str, ...]:
    """Suggest how to resume a run that was stopped at its checkpoint."""
    return (f"Resume: podium resume {run_id}",)


def to_follow(run_id: str) -> tuple[str, ...]:
    short = short_id(run_id)
    return (f"Follow it: podium logs -f {short}", f"Cancel it: podium cancel {short}")


def to_prove(run_id: str, plan: RunPlan, results: Sequence[CallResult]) -> tuple[str, ...]:
    proof = f"See the receipts: podium receipts list {short_id(run_id)}"
    return (proof, *_ways_back(run_id, plan, results))


def to_mend(run_id: str, plan: RunPlan, results: Sequence[CallResult]) -> tuple[str, ...]:
    """Suggest the steps after a failed call: earlier calls stay done, and are not repeated."""
    short = short_id(run_id)
    failed = next((result.number for result in results if result.status == "failed"), None)
    steps = [f"See what happened: podium show {short}"]
    if failed is None:
        steps.append(f"Retry: podium retry {short}")
    else:
        steps.append(f"Retry once that is fixed: podium retry {short} --from 'call#{failed}'")
    return (*steps, *_ways_back(run_id, plan, results))


def to_resolve(run_id: str) -> tuple[str, ...]:
    short = short_id(run_id)
    return (
        "Check whether the call happened: Podium cannot tell, and does not repeat it",
        f"See the call, and the command that records what you found: podium show {short}",
        f"Then resume: podium resume {short}",
    )


def _again(message: str, plan: RunPlan, mode: OperatorMode) -> str:
    """Build the command that takes the same message as far as this mode."""
    # A chain of people is not replaced by a yes beforehand, nor is a look at what was not said.
    wants_yes = mode.acts and plan.requires_approval and not plan.approvals and not plan.ungrounded
    approve = " --approve" if wants_yes else ""
    if plan.undoes:
        run, _, number = plan.undoes.rpartition("#")
        only_plan = "" if mode.acts else f" -M {mode}"
        return f"podium undo '{short_id(run)}#{number}'{only_plan}{approve}"
    text = " ".join(message.split())
    if len(text) > MAX_REPEATED:
        return f"the same message with -M {mode}{approve}"
    return f"podium ask -m {shlex.quote(text)} -M {mode}{approve}"


def _ways_back(run_id: str, plan: RunPlan, results: Sequence[CallResult]) -> list[str]:
    undoable = {step.number for step in plan.steps if step.undo}
    return [
        f"Undo {result.tool}: podium undo '{short_id(run_id)}#{result.receipt}'"
        for result in results
        if result.number in undoable and result.status == "completed"
    ][:MAX_WAYS_BACK]


def _as_sentence(text: str) -> str:
    return text[:1].upper() + text[1:]

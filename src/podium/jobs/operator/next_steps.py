"""Next steps for a person, for every way a message can end. Whatever looks like a command is one."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence

from podium.core.decisions import Approval
from podium.core.ids import short_id
from podium.jobs.operator.models import (
    CallResult,
    Directive,
    IntentClassification,
    OperatorMode,
    RunPlan,
)

MAX_REPEATED = 300
"""Longer messages are not said again in a command."""
MAX_WAYS_BACK = 3

_RESPECTED = {
    Directive.SAFETY: "safety, confidentiality and the law",
    Directive.CONTRACT: "what the registered tools can do",
    Directive.CONTINUITY: "that the system keeps running",
    Directive.REVENUE: "the way from lead to payment",
    Directive.BRAND: "the good name of the business",
    Directive.USER_INTENT: "what was asked for",
}


def to_mend_input(problems: Sequence[str]) -> tuple[str, ...]:
    """Suggest a fix for each problem. Most name it themselves, after a semicolon."""
    steps = []
    for problem in problems:
        _, separator, advice = problem.partition("; ")
        steps.append(_as_sentence(advice) if separator else f"Mend this: {problem}")
    return tuple(dict.fromkeys(steps))


def to_clarify(classification: IntentClassification) -> tuple[str, ...]:
    steps = []
    if classification.missing_evidence:
        steps.append(f"Provide missing: {', '.join(classification.missing_evidence)}")
    if classification.question:
        steps.append(f"Answer: {classification.question}")
    if not steps:
        return ("Say more exactly what is to be done, and to which record",)
    fields = set(classification.required_fields)
    to_hand_in = [
        name
        for name in classification.missing_evidence
        if name not in fields and " or " not in name
    ]
    if to_hand_in:
        steps.append(f"Hand in {', '.join(to_hand_in)} as JSON, with --context-file FILE")
    else:
        steps.append("Say the whole message again with that in it")
    return tuple(steps)


def to_choose_pack(message: str, packs: Iterable[str]) -> tuple[str, ...]:
    """The same message for one pack alone."""
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
            "Have a person with the authority do it outside of Podium, if it must be done",
        )
    candidates = ", ".join(classification.tool_candidates[:3])
    first = f"Say it in other words, if one of these was meant: {candidates}" if candidates else ""
    tools = f"See what can be asked for: podium pack show {shlex.quote(pack or 'podium')}"
    return (first, tools) if first else ("Say it in other words", tools)


def to_go_on(message: str, mode: OperatorMode, plan: RunPlan) -> tuple[str, ...]:
    """After looking at a plan."""
    steps = []
    if mode is not OperatorMode.PLAN:
        steps.append(f"See the whole plan: {_again(message, plan, OperatorMode.PLAN)}")
    steps.append(f"Do it: {_again(message, plan, OperatorMode.EXECUTE)}")
    if plan.safer_alternative:
        steps.append(f"Or safer: {plan.safer_alternative}")
    return tuple(steps)


def after_lookup(classification: IntentClassification | None) -> tuple[str, ...]:
    """Suggest the message to send once a lookup has shown what was missing."""
    if classification is None or not classification.question:
        return ()
    return (f"Then say the whole message again with it: {classification.question}",)


def to_ask_again(message: str, plan: RunPlan) -> tuple[str, ...]:
    return (f"Ask again if it is still wanted: {_again(message, plan, OperatorMode.EXECUTE)}",)


def to_approve(approval: Approval, plan: RunPlan) -> tuple[str, ...]:
    """The word that releases it, then the same for a shell."""
    short, who = short_id(approval.id), ""
    if plan.approvals:
        group = plan.approvals[min(len(approval.grants), len(plan.approvals) - 1)]
        who = f", as somebody of {group}"
    return (
        f"APPROVE: {approval.id}",
        f"In a shell{who}: podium ask 'APPROVE: {approval.id}'",
        f"See it in full: podium approvals {short}",
        f"Say no: podium reject {short} --why 'not wanted'",
    )


def to_resume(run_id: str) -> tuple[str, ...]:
    """Suggest how to resume a run that was stopped at its checkpoint."""
    return (f"Go on where it stopped: podium resume {run_id}",)


def to_follow(run_id: str) -> tuple[str, ...]:
    short = short_id(run_id)
    return (f"Follow it: podium logs -f {short}", f"End it: podium cancel {short}")


def to_prove(run_id: str, plan: RunPlan, results: Sequence[CallResult]) -> tuple[str, ...]:
    proof = f"See the proof: podium receipts list {short_id(run_id)}"
    return (proof, *_ways_back(run_id, plan, results))


def to_mend(run_id: str, plan: RunPlan, results: Sequence[CallResult]) -> tuple[str, ...]:
    """After a call failed: what was done before it stays done, and is not done again."""
    short = short_id(run_id)
    failed = next((result.number for result in results if result.status == "failed"), None)
    steps = [f"See what happened: podium show {short}"]
    if failed is None:
        steps.append(f"Try again: podium retry {short}")
    else:
        steps.append(f"Try again, once that is mended: podium retry {short} --from 'call#{failed}'")
    return (*steps, *_ways_back(run_id, plan, results))


def to_resolve(run_id: str) -> tuple[str, ...]:
    short = short_id(run_id)
    return (
        "Find out whether it happened: nobody here can say, and it is not done twice",
        f"See the call and the command that says so: podium show {short}",
        f"Then go on: podium resume {short}",
    )


def _again(message: str, plan: RunPlan, mode: OperatorMode) -> str:
    """The command that takes the same words so far."""
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
        f"Take {result.tool} back: podium undo '{short_id(run_id)}#{result.receipt}'"
        for result in results
        if result.number in undoable and result.status == "completed"
    ][:MAX_WAYS_BACK]


def _as_sentence(text: str) -> str:
    return text[:1].upper() + text[1:]

"""What a person can do next, for every way a message can end."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from podium.domain.ids import short_id
from podium.domain.operating import (
    CallResult,
    IntentClassification,
    OperatorMode,
    RunPlan,
)


def to_clarify(classification: IntentClassification) -> tuple[str, ...]:
    said = []
    if classification.missing_evidence:
        said.append(f"Provide missing: {', '.join(classification.missing_evidence)}")
    if classification.question:
        said.append(f"Answer: {classification.question}")
    return tuple(said) or ("Say more exactly what is to be done, and to which record",)


def to_rephrase(classification: IntentClassification) -> tuple[str, ...]:
    if classification.conflict is not None:
        return (
            f"Ask for something that does not conflict with {classification.conflict.directive}",
            "Have a person with the authority do it outside of Podium, if it must be done",
        )
    known = ", ".join(classification.tool_candidates[:3])
    first = f"Name one of: {known}" if known else "Name what a registered tool does"
    return (first, "See the tools: podium pack show")


def to_go_on(message: str, mode: OperatorMode, plan: RunPlan) -> tuple[str, ...]:
    """After looking at a plan."""
    words = shlex.quote(" ".join(message.split()))
    said = (
        [] if mode is OperatorMode.PLAN else [f"See the whole plan: podium ask -m {words} -M plan"]
    )
    approve = " --approve" if plan.requires_approval and not plan.approvals else ""
    said.append(f"Do it: podium ask -m {words} -M execute{approve}")
    if plan.safer_alternative:
        said.append(f"Or safer: {plan.safer_alternative}")
    return tuple(said)


def to_approve(action_id: str, plan: RunPlan) -> tuple[str, ...]:
    who = f" (as {', then '.join(plan.approvals)})" if plan.approvals else ""
    return (
        f"APPROVE: {action_id}",
        f"Or elsewhere: podium approve {short_id(action_id)}{who}",
        f"Or say no: podium reject {short_id(action_id)}",
    )


def to_follow(run_id: str) -> tuple[str, ...]:
    short = short_id(run_id)
    return (f"Follow it: podium logs -f {short}", f"End it: podium cancel {short}")


def to_prove(run_id: str, plan: RunPlan, results: Sequence[CallResult]) -> tuple[str, ...]:
    said = [f"See the proof: podium receipts list {short_id(run_id)}"]
    undoable = {step.number for step in plan.steps if step.undo}
    said += [
        f"Take {each.tool} back: podium undo {short_id(run_id)}#{each.receipt}"
        for each in results
        if each.number in undoable and each.status == "completed"
    ][:3]
    return tuple(said)


def to_mend(run_id: str) -> tuple[str, ...]:
    short = short_id(run_id)
    return (f"See what happened: podium show {short}", f"Try again: podium retry {short}")


def to_resolve(run_id: str) -> tuple[str, ...]:
    short = short_id(run_id)
    return (
        f"Find out whether it happened, then: podium show {short}",
        "Say so: podium resolve CALL --happened, or --not-happened",
        f"Then: podium resume {short}",
    )

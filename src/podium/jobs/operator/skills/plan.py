"""Plan: drafts in order, with tiers, costs, reversals, and the SQL by which a person can verify the result."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import reduce

from podium.core.decisions import Receipt, Tier
from podium.core.errors import PlanRejected
from podium.core.json_schema import with_defaults
from podium.core.model import Json
from podium.core.packs import Estimate, Pack, PackTool, RowCheck
from podium.core.plan_approval import SqlQuery, UngroundedArgument
from podium.jobs.operator.judgement.judge import domain_of
from podium.jobs.operator.judgement.tiers import ASKS_A_PERSON, highest, raised, tool_arithmetic
from podium.jobs.operator.models import (
    Intent,
    IntentClassification,
    Message,
    PlanStatus,
    PlanStep,
    RunPlan,
    Urgency,
)
from podium.jobs.operator.skills.drafts import Draft, dependencies, drafts_of, joined, ordered


def queries_for(tool: PackTool, arguments: Mapping[str, Json], step: int) -> tuple[SqlQuery, ...]:
    """One read-only statement for each row check. Values are parameters, never text of the statement."""
    return tuple(_query(check, arguments, step) for check in tool.verify)


def _query(check: RowCheck, arguments: Mapping[str, Json], step: int) -> SqlQuery:
    columns = ", ".join(dict.fromkeys((*check.where, *check.columns, *check.expect)))
    conditions = " AND ".join(f"{column} = :{column}" for column in check.where)
    sql = f"SELECT {columns} FROM {check.table} WHERE {conditions}"  # noqa: S608 - names are the registry's, checked when it was loaded
    return SqlQuery(sql=sql, parameters=dict(_parameters(check, arguments, step)))


def _parameters(
    check: RowCheck, arguments: Mapping[str, Json], step: int
) -> Iterator[tuple[str, Json]]:
    for column, value in check.where.items():
        yield column, _meant(value, arguments, step)


def _meant(value: Json, arguments: Mapping[str, Json], step: int) -> Json:
    if not isinstance(value, str):
        return value
    if value.startswith("$result."):
        return f"${step}.{value.removeprefix('$result.')}"
    if not value.startswith("$arg."):
        return value
    argument = arguments.get(value.removeprefix("$arg."))
    if isinstance(argument, dict) and set(argument) == {"$from"}:
        source = argument["$from"]
        return f"${source[0]}.{source[1]}"
    return argument


def make_plan(
    classification: IntentClassification, message: Message, pack: Pack, *, plan_id: str
) -> RunPlan:
    """The plan for what was understood. One that cannot be made is `rejected`, with the reason."""
    reason, drafts = _why_not(classification), list[Draft]()
    try:
        drafts = joined(ordered(drafts_of(classification.wishes, pack, message)))
    except PlanRejected as error:
        reason = str(error)
    steps = _steps(drafts, pack, message.provenance)
    return _plan(classification, message.text, pack, steps, plan_id, reason).model_copy(
        update={"dependencies": dependencies(drafts)}
    )


def undo_plan(
    receipt: Receipt, pack: Pack, *, plan_id: str, classification_id: str, message: str
) -> RunPlan:
    """The plan that reverses what a receipt proves. Raises `PlanRejected` when nothing can."""
    undo = receipt.undo or {}
    tool = pack.tool(str(undo.get("tool", "")))
    if tool is None:
        raise PlanRejected(f"{receipt.tool} cannot be undone: its tool names no inverse")
    draft = Draft("w0", tool, dict(undo.get("arguments") or {}))
    classification = IntentClassification(
        classification_id=classification_id,
        intent=Intent.EXECUTE,
        domain=domain_of(pack, tool.name),
        urgency=Urgency.NORMAL,
        tool_candidates=(tool.name,),
        required_fields=tool.required,
        missing_evidence=(),
        risk_tier=tool.tier,
        risk_reason="",
        confidence=1.0,
        reasoning=f"Reverses receipt {receipt.number} of run {receipt.run_id}",
    )
    plan = _plan(classification, message, pack, _steps([draft], pack, ()), plan_id, "")
    return plan.model_copy(update={"undoes": f"{receipt.run_id}#{receipt.number}"})


def edited_plan(
    plan: RunPlan,
    arguments: Mapping[int, dict[str, Json]],
    pack: Pack,
    *,
    plan_id: str,
    provenance: Sequence[str] = (),
) -> RunPlan:
    """The plan with other arguments for some of its calls, by number: weighed anew, by today's pack.

    Raises `PlanRejected` for a tool that is gone, and for arguments that wait for a later result.
    """
    steps = []
    for step in plan.steps:
        step_arguments = arguments.get(step.number, step.arguments)
        if late := [
            number for number in _waits_for(step_arguments) if number not in range(1, step.number)
        ]:
            raise PlanRejected(f"call {step.number} cannot wait for a result of call {late[0]}")
        ungrounded = _still_marked(step, step_arguments)
        draft = Draft(
            str(step.number), _registered(pack, step.tool), step_arguments, ungrounded=ungrounded
        )
        steps.append(_step(draft, step.number, pack, provenance))
    tier = max(step.tier for step in steps)
    asks = asks_a_person(tier, steps)
    return plan.model_copy(
        update={
            "plan_id": plan_id,
            "pack_digest": pack.digest,
            "status": "awaiting_approval" if asks else "ready",
            "estimated_risk": tier,
            "requires_approval": asks,
            "steps": tuple(steps),
            "estimate": reduce(Estimate.plus, (step.estimate for step in steps), Estimate()),
            "irreversible": _irreversible(steps),
        }
    )


def asks_a_person(tier: Tier, steps: Sequence[PlanStep]) -> bool:
    """Return whether a plan of these calls waits for an approval: by its tier, or by what nobody said."""
    return tier >= ASKS_A_PERSON or any(step.ungrounded for step in steps)


def _still_marked(step: PlanStep, arguments: Mapping[str, Json]) -> tuple[UngroundedArgument, ...]:
    """The marks of a call whose arguments a person went over; what they wrote themselves has none."""
    return tuple(
        argument
        for argument in step.ungrounded
        if not argument.field or arguments.get(argument.field) == step.arguments.get(argument.field)
    )


def _waits_for(value: Json) -> list[Json]:
    """Numbers of the calls whose results stand in these arguments."""
    if isinstance(value, list):
        return [number for item in value for number in _waits_for(item)]
    if not isinstance(value, dict):
        return []
    if set(value) != {"$from"}:
        return [number for item in value.values() for number in _waits_for(item)]
    source = value["$from"]
    references = (
        source if isinstance(source, list) and source and isinstance(source[0], list) else [source]
    )
    return [
        reference[0]
        if isinstance(reference, list) and len(reference) == 2 and isinstance(reference[0], int)
        else None
        for reference in references
    ]


def _why_not(classification: IntentClassification) -> str:
    if classification.missing_evidence:
        return f"Missing evidence: {', '.join(classification.missing_evidence)}"
    return "" if classification.intent is Intent.EXECUTE else classification.reasoning


def _plan(
    classification: IntentClassification,
    message: str,
    pack: Pack,
    steps: Sequence[PlanStep],
    plan_id: str,
    reason: str,
) -> RunPlan:
    tools = [_registered(pack, step.tool) for step in steps]
    tier = max((step.tier for step in steps), default=classification.risk_tier)
    asks = bool(steps) and asks_a_person(tier, steps)
    status: PlanStatus = "rejected" if reason else "awaiting_approval" if asks else "ready"
    return RunPlan(
        plan_id=plan_id,
        classification_id=classification.classification_id,
        status=status,
        domain=classification.domain,
        tool_sequence=tuple(step.tool for step in steps),
        estimated_risk=tier,
        requires_approval=asks,
        required_fields=classification.required_fields,
        missing_evidence=classification.missing_evidence,
        confidence=classification.confidence,
        message=message,
        pack=pack.name,
        pack_digest=pack.digest,
        steps=tuple(steps),
        estimate=reduce(Estimate.plus, (step.estimate for step in steps), Estimate()),
        approvals=tuple(dict.fromkeys(group for tool in tools for group in tool.approvals)),
        irreversible=_irreversible(steps),
        safer_alternative=_safer(tools),
        rejected_because=reason,
    )


def _steps(drafts: Sequence[Draft], pack: Pack, provenance: Sequence[str]) -> list[PlanStep]:
    numbers = {draft.key: number for number, draft in enumerate(drafts, start=1)}
    numbered = [replace(draft, arguments=_numbered(draft.arguments, numbers)) for draft in drafts]
    return [_step(draft, numbers[draft.key], pack, provenance) for draft in numbered]


def _step(draft: Draft, number: int, pack: Pack, provenance: Sequence[str]) -> PlanStep:
    tool = draft.tool
    arguments = with_defaults(tool.input_schema, draft.arguments)
    arithmetic = raised(tool_arithmetic(tool, arguments, pack), provenance)
    return PlanStep(
        number=number,
        tool=tool.name,
        arguments=arguments,
        tier=highest(arithmetic),
        arithmetic=tuple(arithmetic),
        undo=tool.undo,
        idempotent=tool.idempotency_key == "call",
        estimate=tool.cost,
        verification=queries_for(tool, arguments, number),
        ungrounded=draft.ungrounded,
    )


def _numbered(value: Json, numbers: Mapping[str, int]) -> Json:
    """References by number instead of key."""
    if isinstance(value, dict):
        if set(value) == {"$from"}:
            return {"$from": _numbered_references(value["$from"], numbers)}
        return {name: _numbered(inner, numbers) for name, inner in value.items()}
    return [_numbered(inner, numbers) for inner in value] if isinstance(value, list) else value


def _numbered_references(source: Json, numbers: Mapping[str, int]) -> Json:
    if source and isinstance(source[0], list):
        return [_numbered_references(item, numbers) for item in source]
    return [numbers[source[0]], source[1]]


def _irreversible(steps: Sequence[PlanStep]) -> tuple[str, ...]:
    final = (step.tool for step in steps if step.tier >= ASKS_A_PERSON and step.undo is None)
    return tuple(dict.fromkeys(final))


def _safer(tools: Sequence[PackTool]) -> str:
    alternatives = (tool.safer_alternative for tool in tools if tool.safer_alternative is not None)
    first = next(alternatives, None)
    return f"{first.tool}: {first.because}" if first else ""


def _registered(pack: Pack, name: str) -> PackTool:
    tool = pack.tool(name)
    if tool is None:
        raise PlanRejected(f"{name!r} is not in the registry of pack {pack.name!r}")
    return tool

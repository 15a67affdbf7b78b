"""Plan: drafts of calls from what was requested, ordered, with tiers, costs, reversals and verification."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce

from podium.core.decisions import Receipt, Tier
from podium.core.errors import PlanRejected
from podium.core.json_schema import with_defaults
from podium.core.model import Json
from podium.core.packs import Estimate, Pack, PackTool, RowCheck, Skill, SkillStep
from podium.core.plan_approval import SqlQuery, UngroundedArgument
from podium.jobs.operator.judgement.judge import domain_of
from podium.jobs.operator.judgement.tiers import ASKS_A_PERSON, highest, raised, tool_arithmetic
from podium.jobs.operator.models import (
    Intent,
    IntentClassification,
    Message,
    PlannedDependency,
    PlanStatus,
    PlanStep,
    ResolvedRecord,
    RunPlan,
    ToolIntent,
    Urgency,
)
from podium.render.argument_text import value_text

_PATH = re.compile(r"\$([A-Za-z_][A-Za-z0-9_]*)(?:\.([A-Za-z0-9_.]+))?")
_NOTHING = object()


@dataclass(frozen=True)
class Draft:
    """A call before it has its place. References name drafts by their keys."""

    key: str
    tool: PackTool
    arguments: dict[str, Json]
    after: tuple[str, ...] = field(default=())
    """Keys of drafts that must come before, whatever tools declare."""
    ungrounded: tuple[UngroundedArgument, ...] = ()
    records: tuple[ResolvedRecord, ...] = ()


def drafts_of(intents: Sequence[ToolIntent], pack: Pack, message: Message) -> list[Draft]:
    """All drafts, in the order in which things were said. Raises `PlanRejected`."""
    result: list[Draft] = []
    for number, intent in enumerate(intents):
        tool, skill = pack.tool(intent.tool), pack.skill(intent.tool)
        if tool is not None:
            arguments = dict(intent.arguments)
            draft = Draft(f"w{number}", tool, arguments, ungrounded=intent.ungrounded)
            result.append(_with_records(draft, intent.records))
        elif skill is not None:
            drafts = _Unrolling(pack, message, intent.arguments, f"w{number}").drafts(skill)
            result += [
                _with_records(_with_ungrounded(draft, intent), intent.records) for draft in drafts
            ]
        else:
            raise PlanRejected(f"{intent.tool!r} is not in the registry of pack {pack.name!r}")
    return result


def _with_records(draft: Draft, records: Sequence[ResolvedRecord]) -> Draft:
    """The draft with those of the records that it is about."""
    placed = (
        record.model_copy(update={"field": name})
        for record in records
        for name, value in draft.arguments.items()
        if value == record.value
    )
    return replace(draft, records=tuple(placed))


def _with_ungrounded(draft: Draft, intent: ToolIntent) -> Draft:
    """A call of a skill is marked whole where anything of the skill is, and where a marked value went."""
    ungrounded = []
    for argument in intent.ungrounded:
        took = [
            name
            for name, value in draft.arguments.items()
            if argument.field and value == argument.value
        ]
        ungrounded += [argument.model_copy(update={"field": name}) for name in took]
    whole = [
        UngroundedArgument(
            value=draft.tool.name, reason=f"part of {intent.tool}, and {argument.line}"
        )
        for argument in intent.ungrounded
    ]
    return replace(draft, ungrounded=tuple(ungrounded or whole))


class _Unrolling:
    """One skill on its way to drafts."""

    def __init__(
        self, pack: Pack, message: Message, arguments: Mapping[str, Json], key: str
    ) -> None:
        self._pack = pack
        self._sources: dict[str, Json] = {"message": dict(arguments), "context": message.context}
        self._key = key
        self._keys: dict[str, list[str]] = {}
        self._repeated: set[str] = set()

    def drafts(self, skill: Skill) -> list[Draft]:
        result: list[Draft] = []
        for step in skill.steps:
            tool = self._pack.tool(step.tool)
            if tool is None:
                raise PlanRejected(
                    f"skill {skill.name!r} uses {step.tool!r}, which is not registered"
                )
            before = (result[-1].key,) if result else ()
            made = [self._draft(step, tool, element, before) for element in self._elements(step)]
            self._keys[step.id] = [draft.key for draft in made]
            if step.each:
                self._repeated.add(step.id)
            result += made
        return result

    def _elements(self, step: SkillStep) -> list[tuple[int, Json]]:
        """List the elements that the step is planned for: none, one, or each of a list."""
        if step.when and self._value(step.when, None) is _NOTHING:
            return []
        if not step.each:
            return [(0, None)]
        elements = self._value(step.each, None)
        if elements is _NOTHING:
            return []
        if not isinstance(elements, list):
            raise PlanRejected(
                f"{step.each!r} is not a list, so step {step.id!r} cannot iterate over it"
            )
        return list(enumerate(elements))

    def _draft(
        self, step: SkillStep, tool: PackTool, indexed: tuple[int, Json], before: tuple[str, ...]
    ) -> Draft:
        number, element = indexed
        arguments = {}
        for name, template in step.arguments.items():
            value = self._value(template, element)
            if value is not _NOTHING:
                arguments[name] = value
        return Draft(f"{self._key}.{step.id}.{number}", tool, arguments, before)

    def _value(self, template: Json, element: Json) -> Json:
        """The template filled in; what nobody gave is left out."""
        if isinstance(template, dict):
            inner = {name: self._value(item, element) for name, item in template.items()}
            return {name: value for name, value in inner.items() if value is not _NOTHING}
        if isinstance(template, list):
            values = [self._value(item, element) for item in template]
            return [value for value in values if value is not _NOTHING]
        match = _PATH.fullmatch(template) if isinstance(template, str) else None
        return template if match is None else self._looked_up(match[1], match[2] or "", element)

    def _looked_up(self, source: str, path: str, element: Json) -> Json:
        if source in self._keys:
            references = [[key, path] for key in self._keys[source]]
            if source in self._repeated:
                return {"$from": references} if references else []
            return {"$from": references[0]}
        start = element if source == "each" else self._sources.get(source, _NOTHING)
        return _walk(start, path)


def _walk(value: Json, path: str) -> Json:
    for name in filter(None, path.split(".")):
        if not isinstance(value, dict) or name not in value:
            return _NOTHING
        value = value[name]
    return value


def ordered(drafts: Sequence[Draft]) -> list[Draft]:
    """The same drafts, predecessors first. Raises `PlanRejected` for a circle, naming it."""
    waiting, placed = list(drafts), list[Draft]()
    while waiting:
        done = {draft.key for draft in placed}
        ready = next((draft for draft in waiting if _before(draft, drafts) <= done), None)
        if ready is None:
            circle = " → ".join(dict.fromkeys(draft.tool.name for draft in waiting))
            raise PlanRejected(f"these tools depend on each other: {circle}")
        waiting.remove(ready)
        placed.append(ready)
    return placed


def dependencies(drafts: Sequence[Draft]) -> tuple[PlannedDependency, ...]:
    """List the tools that had to come before others, and why."""
    names = {draft.tool.name for draft in drafts}
    reasons = {
        (draft.tool.name, dependency.tool): dependency.reason
        for draft in drafts
        for dependency in draft.tool.depends_on
        if dependency.tool in names and dependency.tool != draft.tool.name
    }
    return tuple(
        PlannedDependency(tool=tool, depends_on=before, reason=reason)
        for (tool, before), reason in reasons.items()
    )


def joined(drafts: Sequence[Draft]) -> list[Draft]:
    """Drafts whose missing arguments are taken from the results of those before them."""
    return [_joined(draft, drafts[:position], drafts) for position, draft in enumerate(drafts)]


def _joined(draft: Draft, earlier: Sequence[Draft], drafts: Sequence[Draft]) -> Draft:
    arguments = dict(draft.arguments)
    for dependency in draft.tool.depends_on:
        sources = [candidate for candidate in earlier if candidate.tool.name == dependency.tool]
        if not sources:
            continue
        source = _partner(draft, sources, drafts)
        for argument, source_field in dependency.fills.items():
            if argument not in arguments:
                reference: Json = {"$from": [source.key, source_field]}
                arguments[argument] = reference
    return replace(draft, arguments=arguments)


def _partner(draft: Draft, sources: Sequence[Draft], drafts: Sequence[Draft]) -> Draft:
    """The first with the first, the second with the second; else the nearest."""
    alike = [other for other in drafts if other.tool.name == draft.tool.name]
    if len(alike) == len(sources):
        return sources[alike.index(draft)]
    return sources[-1]


def _before(draft: Draft, drafts: Sequence[Draft]) -> set[str]:
    predecessors = {dependency.tool for dependency in draft.tool.depends_on}
    declared = {
        other.key for other in drafts if other.tool.name in predecessors and other.key != draft.key
    }
    return declared | set(draft.after)


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
    return _plan(classification, message.shown_text, pack, steps, plan_id, reason).model_copy(
        update={"dependencies": dependencies(drafts)}
    )


def undo_plan(
    receipt: Receipt, pack: Pack, *, plan_id: str, classification_id: str, message: str
) -> RunPlan:
    """The plan that reverses what a receipt proves. Raises `PlanRejected` when nothing can."""
    undo = receipt.undo or {}
    tool = pack.tool(str(undo.get("tool", "")))
    if tool is None:
        raise PlanRejected(f"{receipt.tool} cannot be undone: its tool declares no inverse")
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
            raise PlanRejected(f"call {step.number} cannot use the result of call {late[0]}")
        ungrounded = _still_marked(step, step_arguments)
        draft = Draft(
            str(step.number), _registered(pack, step.tool), step_arguments, ungrounded=ungrounded
        )
        draft = _with_records(draft, step.records)
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
            "summary": _summary(steps, [_registered(pack, step.tool) for step in steps]),
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
        summary=_summary(steps, tools),
        rejected_because=reason,
    )


def _summary(steps: Sequence[PlanStep], tools: Sequence[PackTool]) -> str:
    """Restate the calls in one line: what each tool is for, and with which values."""
    return "; then ".join(_restated(step, tool) for step, tool in zip(steps, tools, strict=True))


def _restated(step: PlanStep, tool: PackTool) -> str:
    act = tool.description.split(". ")[0].split(":")[0].rstrip(".")
    values = [
        f"{name.removesuffix('_id').replace('_', ' ')} {value_text(value)}"
        for name, value in step.arguments.items()
        if not isinstance(value, dict) and value != tool.properties.get(name, {}).get("default")
    ]
    return f"{act} ({', '.join(values)})" if values else act


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
        undo_until=tool.undo_until if tool.undo else "",
        idempotent=tool.idempotency_key == "call",
        estimate=tool.cost,
        verification=queries_for(tool, arguments, number),
        ungrounded=draft.ungrounded,
        records=draft.records,
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

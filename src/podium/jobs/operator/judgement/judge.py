"""Layer 1: a classifier's reading checked against directives and registry, with the evidence each tool needs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile

from podium.core.decisions import Tier, TierTerm
from podium.core.model import Json
from podium.core.packs import Pack, PackTool, Skill, most_specific
from podium.core.plan_approval import UngroundedArgument
from podium.jobs.operator.judgement.embedded.tokens import ACTION_VERBS, READ
from podium.jobs.operator.judgement.ground_check import FindUngrounded
from podium.jobs.operator.judgement.tiers import (
    ASKS_A_PERSON,
    highest,
    intents_arithmetic,
    reason_of,
    tools_of,
)
from podium.jobs.operator.models import (
    Conflict,
    Directive,
    Intent,
    IntentClassification,
    Message,
    Reading,
    ToolIntent,
)


def with_context(intent: ToolIntent, pack: Pack, message: Message) -> ToolIntent:
    """Return the intent with the context's values under the names of its arguments. The context wins."""
    properties = _properties(pack.tool(intent.tool) or pack.skill(intent.tool))
    values = {name: message.context[name] for name in properties if name in message.context}
    if not values:
        return intent
    ungrounded = tuple(argument for argument in intent.ungrounded if argument.field not in values)
    return intent.model_copy(
        update={"arguments": {**intent.arguments, **values}, "ungrounded": ungrounded}
    )


def required_of(intents: Sequence[ToolIntent], pack: Pack) -> tuple[str, ...]:
    """Every field that the intents need, once each, in order."""
    fields: dict[str, None] = {}
    for intent in intents:
        entry = pack.tool(intent.tool) or pack.skill(intent.tool)
        for name in _required(entry):
            fields[name] = None
    return tuple(fields)


def missing_of(intents: Sequence[ToolIntent], pack: Pack, message: Message) -> tuple[str, ...]:
    """List the fields that nobody gave: neither the message, nor the context, nor an earlier tool."""
    tools = {intent.tool for intent in intents}
    fields: dict[str, None] = {}
    for intent in intents:
        for name in _lacking(intent, pack, message, tools):
            fields[name] = None
    return tuple(fields)


def _lacking(intent: ToolIntent, pack: Pack, message: Message, tools: set[str]) -> Iterator[str]:
    tool, skill = pack.tool(intent.tool), pack.skill(intent.tool)
    if skill is not None:
        yield from (name for name in skill.needs_context if name not in message.context)
    filled = _filled(tool, tools) if tool else set()
    for name in _required(tool or skill):
        if name not in intent.arguments and name not in filled:
            yield name
    choice = _one_of(tool or skill)
    if choice and not any(name in intent.arguments or name in filled for name in choice):
        yield " or ".join(choice)


def filled_by_others(
    intent: ToolIntent, intents: Sequence[ToolIntent], pack: Pack
) -> frozenset[str]:
    """Arguments of an intent that the results of the other intents will give."""
    tool = pack.tool(intent.tool)
    return frozenset(_filled(tool, {other.tool for other in intents})) if tool else frozenset()


def _filled(tool: PackTool, tools: set[str]) -> set[str]:
    """Arguments that the results of other tools of the plan will give."""
    return {
        name
        for dependency in tool.depends_on
        if dependency.tool in tools
        for name in dependency.fills
    }


def _required(entry: PackTool | Skill | None) -> tuple[str, ...]:
    return () if entry is None else tuple(entry.input_schema.get("required", ()))


def _one_of(entry: PackTool | Skill | None) -> tuple[str, ...]:
    """Fields of which the schema wants at least one: `anyOf` over single required names."""
    branches = entry.input_schema.get("anyOf", ()) if entry else ()
    alternatives = [branch.get("required", ()) for branch in branches if isinstance(branch, dict)]
    return tuple(names[0] for names in alternatives if len(names) == 1)


def _properties(entry: PackTool | Skill | None) -> dict[str, Json]:
    properties: dict[str, Json] = {} if entry is None else entry.input_schema.get("properties", {})
    return properties


SURE_ENOUGH = 0.55
"""Confidence below which a question is asked."""
FAINTEST = 0.25
"""Confidence below which a message is not understood, and one question would not settle it."""

FindConflict = Callable[[Message, Reading, Pack], Conflict | None]


@dataclass(frozen=True)
class JudgeVerdict:
    """Decision on a reading, with its reason."""

    intent: Intent
    reasoning: str
    conflict: Conflict | None = None
    question: str = ""


def judge(
    message: Message,
    reading: Reading,
    pack: Pack,
    *,
    classification_id: str,
    find_conflict: FindConflict,
    find_ungrounded: FindUngrounded,
    resolved: Sequence[Mapping[str, Json]] = (),
    classifier: str = "",
) -> IntentClassification:
    """Classify a message. Nothing of the reading passes that the registry does not know.

    `resolved` has for each intent the arguments that Podium itself knows; they go before what was read.
    """
    conflict = find_conflict(message, reading, pack) or _contract_conflict(reading, pack)
    pairs = zip(reading.calls, resolved or [{}] * len(reading.calls), strict=True)
    registered = [(intent, more) for intent, more in pairs if _entry(pack, intent.tool) is not None]
    marked = zip(
        registered, find_ungrounded(message, [intent for intent, _ in registered]), strict=True
    )
    intents = tuple(
        with_context(_completed(intent, more, ungrounded), pack, message)
        for (intent, more), ungrounded in marked
    )
    missing = missing_of(intents, pack, message)
    verdict = _verdict(reading, intents, missing, conflict, pack)
    if missing and verdict.question and (lookups := _lookups_before(intents, pack, message)):
        verdict = _looking_up_first(lookups, missing, verdict)
        intents, missing = lookups, ()
    arithmetic = _tier_arithmetic(reading, intents, pack, message.provenance)
    return IntentClassification(
        classification_id=classification_id,
        intent=verdict.intent,
        domain=_domain(reading, intents, pack),
        urgency=reading.urgency,
        tool_candidates=_candidates(reading, intents, pack),
        required_fields=required_of(intents, pack),
        missing_evidence=missing,
        risk_tier=highest(arithmetic),
        risk_reason=reason_of(arithmetic),
        confidence=round(reading.confidence, 4),
        reasoning=verdict.reasoning,
        wishes=intents if verdict.intent is Intent.EXECUTE or missing else (),
        arithmetic=arithmetic,
        question=verdict.question,
        conflict=verdict.conflict,
        classifier=classifier,
        not_used=reading.not_used if verdict.intent is Intent.EXECUTE else (),
    )


def _completed(
    intent: ToolIntent, more: Mapping[str, Json], ungrounded: Sequence[UngroundedArgument]
) -> ToolIntent:
    """Return the intent with the values that Podium knows, and its ungrounded arguments."""
    left = tuple(argument for argument in ungrounded if argument.field not in more)
    return intent.model_copy(update={"arguments": {**intent.arguments, **more}, "ungrounded": left})


def _verdict(
    reading: Reading,
    intents: Sequence[ToolIntent],
    missing: Sequence[str],
    conflict: Conflict | None,
    pack: Pack,
) -> JudgeVerdict:
    if conflict is not None:
        return JudgeVerdict(Intent.REFUSE, f"Directive conflict - {conflict.because}", conflict)
    if reading.intent is Intent.REFUSE:
        return JudgeVerdict(Intent.REFUSE, reading.reasoning or "No registered tool does this")
    if reading.intent is Intent.CLARIFY or reading.confidence < SURE_ENOUGH:
        return _unsure(reading, pack)
    if not intents:
        return JudgeVerdict(Intent.REFUSE, reading.reasoning or "No registered tool does this")
    if missing:
        question = " ".join(_questions(intents, missing, pack))
        return JudgeVerdict(Intent.CLARIFY, "Insufficient evidence to proceed", question=question)
    return JudgeVerdict(Intent.EXECUTE, reading.reasoning)


def _lookups_before(
    intents: Sequence[ToolIntent], pack: Pack, message: Message
) -> tuple[ToolIntent, ...]:
    """The lookups that come before a call which lacks evidence, without the mark that nobody asked for them.

    They read, they were given all they need, and every value was said. Words of strangers look nothing up.
    """
    fitting = takewhile(lambda intent: _looks_up(intent, pack, message), intents)
    return tuple(intent.model_copy(update={"ungrounded": ()}) for intent in fitting)


def _looks_up(intent: ToolIntent, pack: Pack, message: Message) -> bool:
    tool = pack.tool(intent.tool)
    if tool is None or message.provenance or missing_of([intent], pack, message):
        return False
    verb = tool.name.rpartition(".")[2].partition("_")[0]
    reads = ACTION_VERBS.get(verb) == frozenset({READ})
    changes = bool(tool.undo or tool.verify) or tool.tier >= ASKS_A_PERSON
    return reads and not changes and not any(argument.field for argument in intent.ungrounded)


def _looking_up_first(
    lookups: Sequence[ToolIntent], missing: Sequence[str], verdict: JudgeVerdict
) -> JudgeVerdict:
    names = ", ".join(dict.fromkeys(intent.tool for intent in lookups))
    because = f"Looks up {', '.join(missing)} with {names} first; nothing else is done yet"
    return JudgeVerdict(Intent.EXECUTE, because, question=verdict.question)


def _unsure(reading: Reading, pack: Pack) -> JudgeVerdict:
    """A question where one answer settles it, else a no."""
    names = [name for name in _named(reading) if _entry(pack, name) is not None]
    if reading.question or (names and reading.confidence >= FAINTEST):
        question = reading.question or f"Which did you mean: {', '.join(names[:3])}?"
        return JudgeVerdict(
            Intent.CLARIFY, reading.reasoning or "Ambiguous intent", question=question
        )
    return JudgeVerdict(
        Intent.REFUSE, reading.reasoning or "Too unclear for one question to settle"
    )


def _contract_conflict(reading: Reading, pack: Pack) -> Conflict | None:
    """An invented tool, field or domain."""
    for intent in reading.calls:
        entry = _entry(pack, intent.tool)
        if entry is None:
            because = f"{intent.tool!r} is not in the registry of pack {pack.name!r}"
            return Conflict(directive=Directive.CONTRACT, because=because)
        properties = entry.input_schema.get("properties", {})
        invented = [name for name in intent.arguments if name not in properties]
        if invented:
            because = f"{intent.tool} has no field {invented[0]!r}"
            return Conflict(directive=Directive.CONTRACT, because=because)
        if holds_reference(intent.arguments):
            because = (
                f"an argument of {intent.tool} refers to another call, which only plans can do"
            )
            return Conflict(directive=Directive.CONTRACT, because=because)
    return None


def _tier_arithmetic(
    reading: Reading, intents: Sequence[ToolIntent], pack: Pack, provenance: Sequence[str]
) -> tuple[TierTerm, ...]:
    considered = intents or [ToolIntent(tool=name) for name in reading.candidates[:1]]
    arithmetic = intents_arithmetic(considered, pack, provenance)
    if arithmetic:
        return arithmetic
    row = next((row for row in pack.registry.domains if row.name == reading.domain), None)
    if row is not None:
        because = f"default of domain {row.name!r}; no tool is chosen"
        return (TierTerm(tier=row.default_tier, because=because),)
    return (TierTerm(tier=Tier.T0, because="no tool is chosen, so nothing would be done"),)


def _domain(reading: Reading, intents: Sequence[ToolIntent], pack: Pack) -> str:
    """Determine the domain: that of the first tool, or the classifier's where there is none."""
    named = [intent.tool for intent in intents] or list(reading.candidates)
    for name in named:
        if domain := domain_of(pack, name):
            return domain
    domains = {row.name for row in pack.registry.domains}
    return reading.domain if reading.domain in domains else "system"


def domain_of(pack: Pack, name: str) -> str:
    """The domain a tool or skill belongs to; empty when there is none."""
    entry = _entry(pack, name)
    if entry is None:
        return ""
    row = most_specific(pack.registry, name)
    return entry.domain or (row.name if row else "")


def _candidates(reading: Reading, intents: Sequence[ToolIntent], pack: Pack) -> tuple[str, ...]:
    if intents:
        return tuple(tool.name for intent in intents for tool in tools_of(intent, pack))
    return tuple(name for name in reading.candidates if _entry(pack, name) is not None)


def _named(reading: Reading) -> list[str]:
    return list(dict.fromkeys([*(intent.tool for intent in reading.calls), *reading.candidates]))


def _questions(intents: Sequence[ToolIntent], missing: Sequence[str], pack: Pack) -> Iterator[str]:
    for name in missing:
        asks = (_asked(_entry(pack, intent.tool), name) for intent in intents)
        yield next(
            (question for question in asks if question), f"What is the {name.replace('_', ' ')}?"
        )


def _asked(entry: PackTool | Skill | None, name: str) -> str:
    properties: Mapping[str, Json] = entry.input_schema.get("properties", {}) if entry else {}
    shape = properties.get(name)
    return str(shape.get("x-ask", "")) if isinstance(shape, dict) else ""


def holds_reference(value: Json) -> bool:
    """Return whether a name in it begins with `$`: what plans write themselves comes from nobody else."""
    if isinstance(value, Mapping):
        inner = any(map(holds_reference, value.values()))
        return inner or any(str(name).startswith("$") for name in value)
    return isinstance(value, list) and any(map(holds_reference, value))


def _entry(pack: Pack, name: str) -> PackTool | Skill | None:
    return pack.tool(name) or pack.skill(name)

"""Score of messages understood and of the fields read from them, over the corpus of utterances."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from podium.core.decisions import Tier
from podium.core.model import FrozenModel, Json
from podium.core.packs import Pack, Skill
from podium.core.plan_approval import UngroundedArgument
from podium.jobs.operator.bench.cases import UtteranceCase
from podium.jobs.operator.judgement.directives import find_conflict
from podium.jobs.operator.judgement.embedded import EmbeddedClassifier
from podium.jobs.operator.judgement.fields import FieldExtractor
from podium.jobs.operator.judgement.judge import judge
from podium.jobs.operator.judgement.tiers import highest, tool_arithmetic, tools_of
from podium.jobs.operator.models import Intent, IntentClassification, Message, ToolIntent
from podium.jobs.operator.ports import Classifier
from podium.tools.packs import load_pack, shipped_packs

_PUNCTUATION = " .!?;:\"'“”‘’`-"


def calls_of(
    intents: Iterable[ToolIntent], pack: Pack, context: Mapping[str, Json] | None = None
) -> list[ToolIntent]:
    """The intents with each skill as its tools, in order; a step for many elements is one call."""
    return [
        call
        for intent in intents
        for call in _calls(intent, pack.skill(intent.tool), context or {})
    ]


def _calls(
    intent: ToolIntent, skill: Skill | None, context: Mapping[str, Json]
) -> Iterator[ToolIntent]:
    if skill is None:
        yield intent
        return
    sources = {"message": intent.arguments, "context": context}
    for step in skill.steps:
        if all(_at(path, sources) for path in (step.when, step.each) if path):
            values = {name: _at(path, sources) for name, path in step.arguments.items()}
            arguments = {name: value for name, value in values.items() if value is not None}
            yield ToolIntent(tool=step.tool, arguments=arguments)


def _at(path: Json, value: Json) -> Json:
    """Look up `$message.NAME` or `$context.PATH`; None for values that are unknown before the run."""
    if not isinstance(path, str) or not path.startswith("$"):
        return None
    for part in path[1:].split("."):
        value = value.get(part) if isinstance(value, dict) else None
    return value


def fields_wrong(
    case: UtteranceCase, classification: IntentClassification, pack: Pack
) -> str | None:
    """Describe the fields that were read wrongly; None when all are right."""
    numbered = _numbered(
        _taken_from_results(calls_of(classification.wishes, pack, case.context), pack)
    )
    wrong = [
        f"{tool}.{name}: {numbered.get(tool, {}).get(name)!r} instead of {value!r}"
        for tool, fields in case.fields.items()
        for name, value in fields.items()
        if not same(value, numbered.get(tool, {}).get(name))
    ]
    if case.missing and set(case.missing) != set(classification.missing_evidence):
        asked = ", ".join(classification.missing_evidence) or "nothing"
        wrong.append(f"missing: {asked} instead of {', '.join(case.missing)}")
    return "; ".join(wrong) or None


def _numbered(calls: Sequence[ToolIntent]) -> dict[str, Mapping[str, Json]]:
    """Arguments by tool; the second call of a tool is `TOOL#2`."""
    counts: Counter[str] = Counter()
    numbered: dict[str, Mapping[str, Json]] = {}
    for call in calls:
        counts[call.tool] += 1
        number = counts[call.tool]
        numbered[call.tool if number == 1 else f"{call.tool}#{number}"] = call.arguments
    return numbered


def _taken_from_results(calls: Sequence[ToolIntent], pack: Pack) -> list[ToolIntent]:
    """The calls with what they leave to the results of earlier ones, as far as those were told it."""
    by_tool: dict[str, Mapping[str, Json]] = {}
    completed = []
    for call in calls:
        tool = pack.tool(call.tool)
        taken = {
            name: by_tool[dependency.tool][field]
            for dependency in (tool.depends_on if tool else ())
            for name, field in dependency.fills.items()
            if field in by_tool.get(dependency.tool, {})
        }
        completed.append(call.model_copy(update={"arguments": {**taken, **call.arguments}}))
        by_tool[call.tool] = completed[-1].arguments
    return completed


def same(expected: Json, actual: Json) -> bool:
    """Return whether a value is the expected one, or one of those that are equally right."""
    if isinstance(expected, dict):
        if "any_of" in expected:
            return any(same(option, actual) for option in expected["any_of"])
        return isinstance(actual, dict) and all(
            same(value, actual.get(key)) for key, value in expected.items()
        )
    if isinstance(expected, list):
        fits = isinstance(actual, list) and len(actual) == len(expected)
        return fits and all(map(same, expected, actual))
    if isinstance(expected, str):
        return isinstance(actual, str) and _plain(expected) == _plain(actual)
    if expected is None or isinstance(expected, bool):
        return actual is expected
    return type(actual) in (int, float) and abs(actual - expected) < 0.005


def _plain(text: str) -> str:
    """Normalize a text for comparison."""
    one_kind = text.replace("’", "'").replace(",", " ")
    return " ".join(one_kind.casefold().split()).strip(_PUNCTUATION)


NEEDS_APPROVAL = Tier.T2


class MarkedUtterance(FrozenModel):
    """A case with its scores. None: that aspect of the case is not scored."""

    case: UtteranceCase
    read: IntentClassification
    intent_right: bool
    domain_right: bool | None = None
    tools_right: bool | None = None
    fields_right: bool | None = None
    tier_right: bool | None = None
    problems: tuple[str, ...] = ()
    """Description of each wrong reading."""
    wrongly_executed: bool = False
    """Something would be done that nobody asked for: anything at all where a question or a refusal
    was right, or another tool that needs approval."""
    unapproved: bool = False
    """It needs approval, and would be done without."""
    seconds: float = 0.0

    @property
    def right(self) -> bool:
        return not self.problems


async def score_roofing(cases: Iterable[UtteranceCase]) -> list[MarkedUtterance]:
    """The cases read by the embedded classifier, with the pack they are about."""
    pack = load_pack(shipped_packs() / "roofing")
    return await score_utterances(cases, EmbeddedClassifier(pack, FieldExtractor(pack)), pack)


async def score_utterances(
    cases: Iterable[UtteranceCase], classifier: Classifier, pack: Pack
) -> list[MarkedUtterance]:
    """Read, judge and score each case, with the time of reading and judging."""
    return [await _score(case, classifier, pack) for case in cases]


async def _score(case: UtteranceCase, classifier: Classifier, pack: Pack) -> MarkedUtterance:
    message = case.message
    began = time.perf_counter()
    reading = await classifier.read(message)
    classification = judge(
        message, reading, pack,
        classification_id="bench", find_conflict=find_conflict, find_ungrounded=nothing_ungrounded,
        classifier=classifier.name,
    )  # fmt: skip
    return compared(case, classification, pack, seconds=time.perf_counter() - began)


def nothing_ungrounded(
    message: Message, intents: Sequence[ToolIntent]
) -> list[tuple[UngroundedArgument, ...]]:
    """Mark nothing: what Podium reads itself is grounded, and benchmarks perform nothing."""
    return [() for _ in intents]


def compared(
    case: UtteranceCase, classification: IntentClassification, pack: Pack, *, seconds: float = 0.0
) -> MarkedUtterance:
    """Score one classification."""
    case = _as_far_as_it_went(case, classification)
    tools = _tools(case, classification, pack)
    problems: dict[str, str | None] = {
        "intent": _unless(classification.intent in case.intents, "intent", classification.intent, case.intents),
        "domain": _unless(case.domain in (None, classification.domain), "domain", classification.domain, case.domain),
        "tools": _unless(not case.tools or tools == case.tools, "tools", tools, case.tools),
        "fields": fields_wrong(case, classification, pack),
        "tier": _unless(
            case.tier in (None, classification.risk_tier), "tier", classification.risk_tier, case.tier
        ),
    }  # fmt: skip
    return MarkedUtterance(
        case=case,
        read=classification,
        intent_right=not problems["intent"],
        domain_right=None if case.domain is None else not problems["domain"],
        tools_right=None if not case.tools else not problems["tools"],
        fields_right=None if not (case.fields or case.missing) else not problems["fields"],
        tier_right=None if case.tier is None else not problems["tier"],
        problems=tuple(problem for problem in problems.values() if problem),
        wrongly_executed=_wrongly_executed(case, classification, pack),
        unapproved=classification.intent is Intent.EXECUTE
        and classification.risk_tier < NEEDS_APPROVAL <= _inherent(classification.wishes, pack),
        seconds=seconds,
    )


def _as_far_as_it_went(case: UtteranceCase, classification: IntentClassification) -> UtteranceCase:
    """Drop the expected tools where a lookup is one right answer of several: the other answers name no tool."""
    if case.may_execute and len(case.intents) > 1 and classification.intent is not Intent.EXECUTE:
        nothing: dict[str, Json] = {"domain": None, "tools": (), "fields": {}, "tier": None}
        return case.model_copy(update=nothing)
    return case


def _unless(right: bool, name: str, actual: Json, expected: Json) -> str | None:
    return None if right else f"{name}: {_as_text(actual)} instead of {_as_text(expected)}"


def _as_text(value: Json) -> str:
    if isinstance(value, tuple):
        return ", ".join(map(str, value)) or "nothing"
    return str(value)


def _tools(
    case: UtteranceCase, classification: IntentClassification, pack: Pack
) -> tuple[str, ...]:
    if classification.wishes:
        return tuple(call.tool for call in calls_of(classification.wishes, pack, case.context))
    return classification.tool_candidates


def _wrongly_executed(
    case: UtteranceCase, classification: IntentClassification, pack: Pack
) -> bool:
    if classification.intent is not Intent.EXECUTE:
        return False
    calls = calls_of(classification.wishes, pack, case.context)
    others = [call for call in calls if call.tool not in case.tools]
    return not case.may_execute or _inherent(others, pack) >= NEEDS_APPROVAL


def _inherent(intents: Sequence[ToolIntent], pack: Pack) -> Tier:
    """The tier by the registry and its tables, whatever was computed for the message."""
    tiers = [
        highest(tool_arithmetic(tool, {}, pack))
        for intent in intents
        for tool in tools_of(intent, pack)
    ]
    return max(tiers, default=Tier.T0)

"""Score of messages understood, over the corpus of utterances."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence

from podium.core.decisions import Tier
from podium.core.model import FrozenModel, Json
from podium.core.packs import Pack
from podium.core.plan_approval import UngroundedArgument
from podium.jobs.operator.bench.field_score import calls_of, fields_wrong
from podium.jobs.operator.bench.utterances import UtteranceCase
from podium.jobs.operator.judgement.directives import find_conflict
from podium.jobs.operator.judgement.embedded import EmbeddedClassifier
from podium.jobs.operator.judgement.fields import FieldExtractor
from podium.jobs.operator.judgement.judge import judge
from podium.jobs.operator.judgement.tiers import highest, tool_arithmetic, tools_of
from podium.jobs.operator.models import Intent, IntentClassification, Message, ToolIntent
from podium.jobs.operator.ports import Classifier
from podium.tools.packs import load_pack, shipped_packs

NEEDS_APPROVAL = Tier.T2


class MarkedUtterance(FrozenModel):
    """A case and what was made of it. None: that aspect of the case is not scored."""

    case: UtteranceCase
    read: IntentClassification
    intent_right: bool
    domain_right: bool | None = None
    tools_right: bool | None = None
    fields_right: bool | None = None
    tier_right: bool | None = None
    problems: tuple[str, ...] = ()
    """Each thing that was read otherwise, in words."""
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
    """Read, judge and mark each case, with the time that reading and judging took."""
    return [await _score(case, classifier, pack) for case in cases]


async def _score(case: UtteranceCase, classifier: Classifier, pack: Pack) -> MarkedUtterance:
    message = case.message
    began = time.perf_counter()
    reading = await classifier.read(message)
    classification = judge(
        message, reading, pack,
        classification_id="bench", find_conflict=find_conflict, find_ungrounded=_nothing_ungrounded,
        classifier=classifier.name,
    )  # fmt: skip
    return compared(case, classification, pack, seconds=time.perf_counter() - began)


def _nothing_ungrounded(
    message: Message, intents: Sequence[ToolIntent]
) -> list[tuple[UngroundedArgument, ...]]:
    """No marks: what Podium reads itself is grounded, and nothing is done here."""
    return [() for _ in intents]


def compared(
    case: UtteranceCase, classification: IntentClassification, pack: Pack, *, seconds: float = 0.0
) -> MarkedUtterance:
    """The marks of one classification."""
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

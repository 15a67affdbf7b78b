"""Layer 1: a classifier's reading held against directives and registry, with the evidence each tool needs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile

from podium.core.decisions import Tier, TierTerm
from podium.core.model import Json
from podium.core.packs import Pack, PackTool, Skill, most_specific
from podium.core.plan_approval import UngroundedArgument
from podium.jobs.operator.judgement.embedded.lexicon import ACTION_WORDS, READ
from podium.jobs.operator.judgement.ground_check import FindUngrounded
from podium.jobs.operator.judgement.tiers import (
    ASKS_A_PERSON,
    highest,
    reason_of,
    terms_of_wishes,
    tools_of,
)
from podium.jobs.operator.models import (
    Conflict,
    Directive,
    Intent,
    IntentClassification,
    Message,
    Reading,
    Wish,
)


def with_context(wish: Wish, pack: Pack, message: Message) -> Wish:
    """The wish with what the context says under the names of its arguments. The context wins."""
    properties = _properties(pack.tool(wish.tool) or pack.skill(wish.tool))
    given = {name: message.context[name] for name in properties if name in message.context}
    if not given:
        return wish
    marks = tuple(each for each in wish.ungrounded if each.field not in given)
    return wish.model_copy(update={"arguments": {**wish.arguments, **given}, "ungrounded": marks})


def required_of(wishes: Sequence[Wish], pack: Pack) -> tuple[str, ...]:
    """Every field that the wishes need, once each, in order."""
    found: dict[str, None] = {}
    for wish in wishes:
        entry = pack.tool(wish.tool) or pack.skill(wish.tool)
        for name in _required(entry):
            found[name] = None
    return tuple(found)


def missing_of(wishes: Sequence[Wish], pack: Pack, message: Message) -> tuple[str, ...]:
    """What nobody gave: neither the words, nor the context, nor a tool that comes before."""
    tools = {wish.tool for wish in wishes}
    found: dict[str, None] = {}
    for wish in wishes:
        for name in _lacking(wish, pack, message, tools):
            found[name] = None
    return tuple(found)


def _lacking(wish: Wish, pack: Pack, message: Message, tools: set[str]) -> Iterator[str]:
    tool, skill = pack.tool(wish.tool), pack.skill(wish.tool)
    if skill is not None:
        yield from (name for name in skill.needs_context if name not in message.context)
    filled = _filled(tool, tools) if tool else set()
    for name in _required(tool or skill):
        if name not in wish.arguments and name not in filled:
            yield name
    choice = _one_of(tool or skill)
    if choice and not any(name in wish.arguments or name in filled for name in choice):
        yield " or ".join(choice)


def _filled(tool: PackTool, tools: set[str]) -> set[str]:
    """Arguments that the results of other tools of the plan will give."""
    return {name for each in tool.depends_on if each.tool in tools for name in each.fills}


def _required(entry: PackTool | Skill | None) -> tuple[str, ...]:
    return () if entry is None else tuple(entry.input_schema.get("required", ()))


def _one_of(entry: PackTool | Skill | None) -> tuple[str, ...]:
    """Fields of which the schema wants at least one: `anyOf` over single required names."""
    branches = entry.input_schema.get("anyOf", ()) if entry else ()
    found = [branch.get("required", ()) for branch in branches if isinstance(branch, dict)]
    return tuple(names[0] for names in found if len(names) == 1)


def _properties(entry: PackTool | Skill | None) -> dict[str, Json]:
    found: dict[str, Json] = {} if entry is None else entry.input_schema.get("properties", {})
    return found


SURE_ENOUGH = 0.55
"""Less confidence than this is a question."""
FAINTEST = 0.25
"""Less than this is no understanding at all, and one question would not settle it."""

FindConflict = Callable[[Message, Reading, Pack], Conflict | None]


@dataclass(frozen=True)
class Verdict:
    """What becomes of a reading, and why."""

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
    """The classification of a message. Nothing of the reading passes that the registry does not know.

    `resolved` has for each wish the arguments that Podium itself knows; they go before what was read.
    """
    conflict = find_conflict(message, reading, pack) or _contract_conflict(reading, pack)
    given = zip(reading.wishes, resolved or [{}] * len(reading.wishes), strict=True)
    known = [(wish, more) for wish, more in given if _entry(pack, wish.tool) is not None]
    marked = zip(known, find_ungrounded(message, [wish for wish, _ in known]), strict=True)
    wishes = tuple(
        with_context(_completed(wish, more, marks), pack, message) for (wish, more), marks in marked
    )
    missing = missing_of(wishes, pack, message)
    verdict = _verdict(reading, wishes, missing, conflict, pack)
    if missing and verdict.question and (lookups := _lookups_before(wishes, pack, message)):
        verdict = _looking_up_first(lookups, missing, verdict)
        wishes, missing = lookups, ()
    terms = _terms(reading, wishes, pack, message.provenance)
    return IntentClassification(
        classification_id=classification_id,
        intent=verdict.intent,
        domain=_domain(reading, wishes, pack),
        urgency=reading.urgency,
        tool_candidates=_candidates(reading, wishes, pack),
        required_fields=required_of(wishes, pack),
        missing_evidence=missing,
        risk_tier=highest(terms),
        risk_reason=reason_of(terms),
        confidence=round(reading.confidence, 4),
        reasoning=verdict.reasoning,
        wishes=wishes if verdict.intent is Intent.EXECUTE or missing else (),
        arithmetic=terms,
        question=verdict.question,
        conflict=verdict.conflict,
        classifier=classifier,
    )


def _completed(wish: Wish, more: Mapping[str, Json], marks: Sequence[UngroundedArgument]) -> Wish:
    """The wish with what Podium knows, and the marks of what nobody said."""
    left = tuple(mark for mark in marks if mark.field not in more)
    return wish.model_copy(update={"arguments": {**wish.arguments, **more}, "ungrounded": left})


def _verdict(
    reading: Reading,
    wishes: Sequence[Wish],
    missing: Sequence[str],
    conflict: Conflict | None,
    pack: Pack,
) -> Verdict:
    if conflict is not None:
        return Verdict(Intent.REFUSE, f"Directive conflict - {conflict.because}", conflict)
    if reading.intent is Intent.REFUSE:
        return Verdict(Intent.REFUSE, reading.reasoning or "No registered tool does this")
    if reading.intent is Intent.CLARIFY or reading.confidence < SURE_ENOUGH:
        return _unsure(reading, pack)
    if not wishes:
        return Verdict(Intent.REFUSE, reading.reasoning or "No registered tool does this")
    if missing:
        question = " ".join(_questions(wishes, missing, pack))
        return Verdict(Intent.CLARIFY, "Insufficient evidence to proceed", question=question)
    return Verdict(Intent.EXECUTE, reading.reasoning)


def _lookups_before(wishes: Sequence[Wish], pack: Pack, message: Message) -> tuple[Wish, ...]:
    """The lookups that come before a call which lacks evidence, without the mark that nobody asked for them.

    They read, they were given all they need, and every value was said. Words of strangers look nothing up.
    """
    fitting = takewhile(lambda wish: _looks_up(wish, pack, message), wishes)
    return tuple(wish.model_copy(update={"ungrounded": ()}) for wish in fitting)


def _looks_up(wish: Wish, pack: Pack, message: Message) -> bool:
    tool = pack.tool(wish.tool)
    if tool is None or message.provenance or missing_of([wish], pack, message):
        return False
    verb = tool.name.rpartition(".")[2].partition("_")[0]
    reads = ACTION_WORDS.get(verb) == frozenset({READ})
    changes = bool(tool.undo or tool.verify) or tool.tier >= ASKS_A_PERSON
    return reads and not changes and not any(mark.field for mark in wish.ungrounded)


def _looking_up_first(lookups: Sequence[Wish], missing: Sequence[str], verdict: Verdict) -> Verdict:
    names = ", ".join(dict.fromkeys(wish.tool for wish in lookups))
    because = f"Looks up {', '.join(missing)} with {names} first; nothing else is done yet"
    return Verdict(Intent.EXECUTE, because, question=verdict.question)


def _unsure(reading: Reading, pack: Pack) -> Verdict:
    """A question where one answer settles it, else a no."""
    names = [name for name in _named(reading) if _entry(pack, name) is not None]
    if reading.question or (names and reading.confidence >= FAINTEST):
        question = reading.question or f"Which did you mean: {', '.join(names[:3])}?"
        return Verdict(Intent.CLARIFY, reading.reasoning or "Ambiguous intent", question=question)
    return Verdict(Intent.REFUSE, reading.reasoning or "Too unclear for one question to settle")


def _contract_conflict(reading: Reading, pack: Pack) -> Conflict | None:
    """An invented tool, field or domain."""
    for wish in reading.wishes:
        entry = _entry(pack, wish.tool)
        if entry is None:
            because = f"{wish.tool!r} is not in the registry of pack {pack.name!r}"
            return Conflict(directive=Directive.CONTRACT, because=because)
        known = entry.input_schema.get("properties", {})
        invented = [name for name in wish.arguments if name not in known]
        if invented:
            because = f"{wish.tool} has no field {invented[0]!r}"
            return Conflict(directive=Directive.CONTRACT, because=because)
        if holds_reference(wish.arguments):
            because = f"an argument of {wish.tool} refers to another call, which only plans do"
            return Conflict(directive=Directive.CONTRACT, because=because)
    return None


def _terms(
    reading: Reading, wishes: Sequence[Wish], pack: Pack, provenance: Sequence[str]
) -> tuple[TierTerm, ...]:
    considered = wishes or [Wish(tool=name) for name in reading.candidates[:1]]
    terms = terms_of_wishes(considered, pack, provenance)
    if terms:
        return terms
    row = next((row for row in pack.registry.domains if row.name == reading.domain), None)
    if row is not None:
        because = f"default of domain {row.name!r}; no tool is chosen"
        return (TierTerm(tier=row.default_tier, because=because),)
    return (TierTerm(tier=Tier.T0, because="no tool is chosen, so nothing would be done"),)


def _domain(reading: Reading, wishes: Sequence[Wish], pack: Pack) -> str:
    """That of the first tool; a classifier's own word only where there is none."""
    named = [wish.tool for wish in wishes] or list(reading.candidates)
    for name in named:
        if found := domain_of(pack, name):
            return found
    known = {row.name for row in pack.registry.domains}
    return reading.domain if reading.domain in known else "system"


def domain_of(pack: Pack, name: str) -> str:
    """The domain a tool or skill belongs to; empty when there is none."""
    entry = _entry(pack, name)
    if entry is None:
        return ""
    row = most_specific(pack.registry, name)
    return entry.domain or (row.name if row else "")


def _candidates(reading: Reading, wishes: Sequence[Wish], pack: Pack) -> tuple[str, ...]:
    if wishes:
        return tuple(tool.name for wish in wishes for tool in tools_of(wish, pack))
    return tuple(name for name in reading.candidates if _entry(pack, name) is not None)


def _named(reading: Reading) -> list[str]:
    return list(dict.fromkeys([*(wish.tool for wish in reading.wishes), *reading.candidates]))


def _questions(wishes: Sequence[Wish], missing: Sequence[str], pack: Pack) -> Iterator[str]:
    for name in missing:
        asks = (_asked(_entry(pack, wish.tool), name) for wish in wishes)
        yield next((each for each in asks if each), f"What is the {name.replace('_', ' ')}?")


def _asked(entry: PackTool | Skill | None, name: str) -> str:
    properties: Mapping[str, Json] = entry.input_schema.get("properties", {}) if entry else {}
    shape = properties.get(name)
    return str(shape.get("x-ask", "")) if isinstance(shape, dict) else ""


def holds_reference(value: Json) -> bool:
    """Whether a name in it begins with `$`: what plans write themselves comes from nobody else."""
    if isinstance(value, Mapping):
        inner = any(map(holds_reference, value.values()))
        return inner or any(str(name).startswith("$") for name in value)
    return isinstance(value, list) and any(map(holds_reference, value))


def _entry(pack: Pack, name: str) -> PackTool | Skill | None:
    return pack.tool(name) or pack.skill(name)

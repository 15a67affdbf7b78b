"""Score of one answer against the outcomes that a corpus accepts."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum

from benchmarks.conversations.corpus import ExpectedCall, Outcome, Session, Turn
from benchmarks.conversations.records import same_run
from podium.core.decisions import Tier
from podium.core.model import FrozenModel, Json
from podium.core.packs import Pack
from podium.jobs.operator.judgement.embedded.tokens import ACTION_VERBS, READ
from podium.jobs.operator.models import OperatorAnswer, PlanStep

Resolve = Callable[[Json], Json]
"""Turns `$lead.sarah` and `$turn.1.lead_id` into values."""
Owned = Callable[[str, str], Json]
"""The id of a record to which another one belongs, by that one's id and a name such as `job_id`."""
_WORD = re.compile(r"[^\W_]+")
_DAYS = ("date", "time", "datetime", "period")


class Verdict(StrEnum):
    RIGHT = "right"
    ASKED = "asked back"
    HARMLESS = "wrong, harmless"
    ACTS = "wrong and acts"
    REFUSED = "false refusal"


class Score(FrozenModel):
    """Verdict on one message."""

    session: str
    number: int
    text: str
    kinds: tuple[str, ...]
    alone: bool
    """True for a message without a session."""
    verdict: Verdict
    precise: bool = True
    """False for a question that asks for another argument, or offers other records, than expected."""
    answered: str = ""
    expected: str = ""
    by_directive: bool = False
    seconds: float = 0.0

    @property
    def right(self) -> bool:
        return self.verdict is Verdict.RIGHT


def is_plan(answer: OperatorAnswer) -> bool:
    return answer.status in ("planned", "analyzed") and answer.plan is not None


def changes(pack: Pack, tool: str) -> bool:
    """Return whether a tool does more than read."""
    entry = pack.tool(tool)
    verb = tool.rpartition(".")[2].partition("_")[0]
    reads = ACTION_VERBS.get(verb) == frozenset({READ})
    return entry is None or bool(entry.undo or entry.verify) or not (reads or entry.tier is Tier.T0)


class Judge:
    """Compares the answer to one message with what is expected."""

    def __init__(self, packs: Sequence[Pack], turn: Turn, resolve: Resolve, owned: Owned) -> None:
        self._packs, self._turn, self._resolve, self._owned = packs, turn, resolve, owned

    def verdict(self, answer: OperatorAnswer) -> tuple[Verdict, bool]:
        """The verdict, and whether a question asked for the right thing."""
        matching = [
            outcome for outcome in self._turn.expect.outcomes if self._matches(outcome, answer)
        ]
        if matching:
            return Verdict.RIGHT, any(self._precise(outcome, answer) for outcome in matching)
        if is_plan(answer):
            return (Verdict.ACTS if self._acts(answer) else Verdict.HARMLESS), False
        if self._turn.expect.calls is None:
            return Verdict.HARMLESS, False
        asked = answer.status == "clarify"
        return (Verdict.ASKED if asked else Verdict.REFUSED), False

    def _matches(self, outcome: Outcome, answer: OperatorAnswer) -> bool:
        if outcome.calls is not None:
            return (
                is_plan(answer)
                and self._calls_match(outcome.calls, answer)
                and self._listed(outcome, answer)
            )
        if outcome.ask is not None:
            return answer.status == "clarify"
        if outcome.refuse is not None:
            return answer.status == "refused"
        return answer.status in ANSWERED

    def _precise(self, outcome: Outcome, answer: OperatorAnswer) -> bool:
        if outcome.ask is None:
            return True
        missing = set(answer.classification.missing_evidence) if answer.classification else set()
        offered = [option.id for option in getattr(answer, "options", ())]
        wanted = [self._resolve(key) for key in outcome.offers]
        return set(outcome.missing) <= missing and set(wanted) <= set(offered)

    def _listed(self, outcome: Outcome, answer: OperatorAnswer) -> bool:
        """Return whether the answer lists everything that it does not use, in some words of it."""
        listed = words_of(" ".join(not_used_of(answer)))
        return all(words_of(phrase) & listed for phrase in outcome.not_used)

    def _calls_match(self, calls: Sequence[ExpectedCall], answer: OperatorAnswer) -> bool:
        steps = answer.plan.steps if answer.plan else ()
        return len(steps) == len(calls) and all(
            self._call_matches(call, step, calls, steps)
            for call, step in zip(calls, steps, strict=True)
        )

    def _acts(self, answer: OperatorAnswer) -> bool:
        """Return whether a planned call changes something that no right answer changes."""
        calls = [call for outcome in self._turn.expect.outcomes for call in outcome.calls or ()]
        steps = answer.plan.steps if answer.plan else ()
        return any(
            self._changes(step.tool)
            and not any(self._call_matches(call, step, calls, steps) for call in calls)
            for step in steps
        )

    def _changes(self, tool: str) -> bool:
        return any(changes(pack, tool) for pack in self._packs if pack.tool(tool)) or not any(
            pack.tool(tool) for pack in self._packs
        )

    def _call_matches(
        self,
        call: ExpectedCall,
        step: PlanStep,
        calls: Sequence[ExpectedCall],
        steps: Sequence[PlanStep],
    ) -> bool:
        if call.tool != step.tool:
            return False
        for name, expected in call.arguments.items():
            actual = self._from_earlier(step.arguments.get(name), steps)
            if not self._value_matches(expected, actual, calls):
                return False
        extra = {k: v for k, v in step.arguments.items() if k not in call.arguments}
        return all(self._may_be_extra(step.tool, name, value) for name, value in extra.items())

    def _from_earlier(self, value: Json, steps: Sequence[PlanStep]) -> Json:
        """The argument to which a reference to the result of an earlier call amounts."""
        if not (isinstance(value, dict) and isinstance(value.get("$from"), list)):
            return value
        number, name = value["$from"]
        earlier = next((step for step in steps if step.number == number), None)
        if earlier is None or name in earlier.arguments:
            return earlier.arguments[name] if earlier else value
        owners = [self._owned(str(known), name) for known in earlier.arguments.values()]
        return next((owner for owner in owners if owner), value)

    def _value_matches(self, expected: Json, actual: Json, calls: Sequence[ExpectedCall]) -> bool:
        if isinstance(expected, dict) and set(expected) <= {"contains", "lacks", "absent"}:
            if expected.get("absent"):
                return actual in (None, "")
            text = plain(actual)
            has = all(plain(part) in text for part in expected.get("contains", ()))
            return has and not any(plain(part) in text for part in expected.get("lacks", ()))
        if isinstance(expected, str) and expected.startswith("$call."):
            return isinstance(actual, dict) and "$from" in actual
        return same(self._resolve(expected), actual, self._item_matches)

    def _item_matches(self, expected: Mapping[str, Json], actual: Json) -> bool:
        return isinstance(actual, dict) and all(
            self._value_matches(value, actual.get(name), ()) for name, value in expected.items()
        )

    def _may_be_extra(self, tool: str, name: str, value: Json) -> bool:
        """An argument that nobody expects may have its default, or what the message says."""
        entry = next((found for pack in self._packs if (found := pack.tool(tool))), None)
        shape = entry.properties.get(name, {}) if entry else {}
        if value == shape.get("default") or (isinstance(value, dict) and "$from" in value):
            return True
        if shape.get("x-kind") in _DAYS:
            return "date" in self._turn.kinds
        if str(shape.get("x-kind", "")).startswith("id:"):
            return True
        said = words_of(self._turn.text)
        synonyms = shape.get("x-words", {}).get(str(value), ()) if "enum" in shape else ()
        if any(words_of(str(word)) <= said for word in (str(value).replace("_", " "), *synonyms)):
            return True
        digits = re.sub(r"\D", "", str(value))
        return len(digits) > 2 and digits[-6:] in re.sub(r"\D", "", self._turn.text)


ANSWERED = ("answered", "dropped")
"""Statuses of an answer that calls nothing and asks nothing."""


def same(expected: Json, actual: Json, item: Callable[[Mapping[str, Json], Json], bool]) -> bool:
    if isinstance(expected, bool) or isinstance(actual, bool):
        return expected is actual
    if isinstance(expected, int | float):
        return isinstance(actual, int | float) and abs(expected - actual) < 0.005
    if isinstance(expected, list):
        pairs = zip(expected, actual, strict=False) if isinstance(actual, list) else ()
        return (
            isinstance(actual, list)
            and len(actual) == len(expected)
            and all(same(a, b, item) for a, b in pairs)
        )
    if isinstance(expected, dict):
        return item(expected, actual)
    if not (isinstance(expected, str) and isinstance(actual, str)):
        return bool(expected == actual)
    if plain(expected) == plain(actual):
        return True
    return expected.startswith("run_") and same_run(expected, actual)


def plain(value: Json) -> str:
    """A text without regard to case, spaces and kinds of apostrophes."""
    return re.sub(r"\s+", "", str(value if value is not None else "")).replace("’", "'").casefold()


def words_of(text: str) -> set[str]:
    return {match.group().casefold() for match in _WORD.finditer(text)}


def scored(
    judge: Judge, answer: OperatorAnswer, session: Session, number: int, seconds: float
) -> Score:
    turn = session.turns[number - 1]
    verdict, precise = judge.verdict(answer)
    conflict = answer.classification.conflict if answer.classification else None
    return Score(
        session=session.id, number=number, text=turn.text, kinds=turn.kinds,
        alone=len(session.turns) == 1, verdict=verdict, precise=precise, answered=shown(answer), expected=expected_text(turn.expect), seconds=seconds,
        by_directive=conflict is not None,
    )  # fmt: skip


def not_used_of(answer: OperatorAnswer) -> tuple[str, ...]:
    return answer.classification.not_used if answer.classification else ()


def shown(answer: OperatorAnswer) -> str:
    if is_plan(answer) and answer.plan:
        text = "; ".join(f"{step.tool} {dict(step.arguments)}" for step in answer.plan.steps)
        unused = not_used_of(answer)
        return text + (f" | not used: {', '.join(unused)}" if unused else "")
    classification = answer.classification
    if classification is None:
        return f"{answer.status}: {answer.reason or '; '.join(answer.next_actions[:2])}"
    missing = (
        f" missing {', '.join(classification.missing_evidence)}"
        if classification.missing_evidence
        else ""
    )
    calls = "; ".join(f"{call.tool} {dict(call.arguments)}" for call in classification.wishes)
    return f"{answer.status}: {classification.question or classification.reasoning}{missing} [{calls or ', '.join(classification.tool_candidates)}]"


def expected_text(outcome: Outcome) -> str:
    if outcome.calls is not None:
        text = "; ".join(f"{call.tool} {dict(call.arguments)}" for call in outcome.calls)
        return text + (f" | not used: {', '.join(outcome.not_used)}" if outcome.not_used else "")
    return (
        f"ask: {outcome.ask}"
        if outcome.ask
        else f"refuse: {outcome.refuse}"
        if outcome.refuse
        else f"answer: {outcome.says}"
    )

"""Expected readings: what a sentence of a pack must be read as, and how a reading differs from it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Annotated

from pydantic import BeforeValidator, Field

from podium.core.decisions import Tier
from podium.core.json_schema import with_defaults
from podium.core.model import FrozenModel, Json, NonEmpty
from podium.core.packs import Pack, PackTool, Skill, Utterance
from podium.jobs.operator.bench.score import NEEDS_APPROVAL, nothing_ungrounded, same
from podium.jobs.operator.judgement.directives import find_conflict
from podium.jobs.operator.judgement.embedded import EmbeddedClassifier
from podium.jobs.operator.judgement.fields import FieldExtractor
from podium.jobs.operator.judgement.judge import judge
from podium.jobs.operator.judgement.tiers import tools_of
from podium.jobs.operator.models import Intent, IntentClassification, Message, Reading, ToolIntent

NOW = datetime(2026, 11, 16, 9, tzinfo=UTC)
"""Time at which sentences of packs are read: a Monday morning. `tomorrow` is the 17th of November 2026."""


class ExpectedCall(FrozenModel):
    """A call that a sentence asks for, with all arguments that it gives."""

    tool: NonEmpty
    arguments: dict[str, Json] = Field(default_factory=dict)


def _several(value: Json) -> Json:
    return (value,) if isinstance(value, str) else value


class Expectation(FrozenModel):
    """A sentence and what is right to make of it."""

    say: NonEmpty
    intents: Annotated[tuple[Intent, ...], BeforeValidator(_several)] = (Intent.EXECUTE,)
    """Accepted intents. Where nothing may be done, a question is often as right as a refusal."""
    calls: tuple[ExpectedCall, ...] = ()
    missing: tuple[str, ...] = ()
    """Arguments that must be asked for."""
    context: dict[str, Json] = Field(default_factory=dict)

    @property
    def text(self) -> str:
        """The expectation on one line, for a person."""
        if self.calls:
            return "; ".join(map(call_text, self.calls))
        return " or ".join(self.intents)


class ReadSentence(FrozenModel):
    """A sentence as it was read, and how that differs from what is right."""

    expectation: Expectation
    classification: IntentClassification
    calls: tuple[ExpectedCall, ...]
    differences: tuple[str, ...]
    changes_at_once: bool = False
    """The reading would change records without anybody being asked."""

    @property
    def right(self) -> bool:
        return not self.differences

    @property
    def is_executed(self) -> bool:
        return self.classification.intent is Intent.EXECUTE

    @property
    def text(self) -> str:
        """The reading on one line."""
        read = "; ".join(map(call_text, self.calls))
        if self.is_executed:
            return read
        reason = self.classification.question or self.classification.reasoning
        return f"{read} " * bool(read) + f"{self.classification.intent}: {reason}"


def call_text(call: ExpectedCall) -> str:
    arguments = (
        f"{name}={json.dumps(value, ensure_ascii=False)}" for name, value in call.arguments.items()
    )
    return f"{call.tool} {', '.join(arguments)}".rstrip()


def example_expectation(subject: PackTool | Skill, example: Utterance) -> Expectation:
    """Expect of an example of a registry that it is read as its tool, with exactly its arguments."""
    contexts = subject.needs_context if isinstance(subject, Skill) else ()
    return Expectation(
        say=example.say,
        calls=(ExpectedCall(tool=subject.name, arguments=example.arguments),),
        context={name: {} for name in contexts},
    )


class SentenceReader:
    """Reads sentences with the embedded classifier of one pack, up to the point where a plan would be made."""

    def __init__(self, pack: Pack) -> None:
        self._pack = pack
        self._classifier = EmbeddedClassifier(pack, FieldExtractor(pack))

    def read(self, expectation: Expectation) -> ReadSentence:
        message = Message(text=expectation.say, context=expectation.context, now=NOW)
        reading = self._classifier.reading(message)
        classification = judge(
            message,
            reading,
            self._pack,
            resolved=self._resolved(message, reading),
            classification_id="bench",
            find_conflict=find_conflict,
            find_ungrounded=nothing_ungrounded,
            classifier=self._classifier.name,
        )
        calls = tuple(self._call(intent, message) for intent in classification.wishes)
        return ReadSentence(
            expectation=expectation,
            classification=classification,
            calls=calls,
            differences=tuple(self._differences(expectation, classification, calls)),
            changes_at_once=classification.intent is Intent.EXECUTE
            and classification.risk_tier < NEEDS_APPROVAL
            and any(self._changes(intent) for intent in classification.wishes),
        )

    def _resolved(self, message: Message, reading: Reading) -> list[dict[str, Json]]:
        """The exact text for arguments that take it. What comes from records is not there to be read."""
        return [
            {
                name: message.text
                for name, shape in self._properties(intent.tool).items()
                if shape.get("x-resolve") == "message"
            }
            for intent in reading.calls
        ]

    def _properties(self, name: str) -> Mapping[str, dict[str, Json]]:
        subject = self._pack.tool(name) or self._pack.skill(name)
        return subject.input_schema.get("properties", {}) if subject else {}

    def _call(self, intent: ToolIntent, message: Message) -> ExpectedCall:
        """The call without what its context gives."""
        read = {
            name: value for name, value in intent.arguments.items() if name not in message.context
        }
        return ExpectedCall(tool=intent.tool, arguments=read)

    def _changes(self, intent: ToolIntent) -> bool:
        return any(tool.tier > Tier.T0 for tool in tools_of(intent, self._pack))

    def _differences(
        self,
        expectation: Expectation,
        classification: IntentClassification,
        calls: Sequence[ExpectedCall],
    ) -> Iterator[str]:
        missing = classification.missing_evidence
        accepted = set(expectation.intents)
        if missing and calls and not expectation.missing:
            # The right call, but the sentence does not give all that it needs: a question is right.
            accepted.add(Intent.CLARIFY)
        if classification.intent not in accepted:
            yield f"{classification.intent} instead of {' or '.join(expectation.intents)}"
        if expectation.missing and set(expectation.missing) != set(missing):
            yield f"asks for {_listed(missing)} instead of {_listed(expectation.missing)}"
        if expectation.calls and (calls or classification.intent in accepted):
            yield from self._call_differences(expectation.calls, calls)

    def _call_differences(
        self, expected: Sequence[ExpectedCall], calls: Sequence[ExpectedCall]
    ) -> Iterator[str]:
        names, expected_names = [call.tool for call in calls], [call.tool for call in expected]
        if names != expected_names:
            yield f"{_listed(names)} instead of {_listed(expected_names)}"
            return
        for wanted, call in zip(expected, calls, strict=True):
            yield from self._argument_differences(wanted, call)

    def _argument_differences(self, expected: ExpectedCall, call: ExpectedCall) -> Iterator[str]:
        schema = {"type": "object", "properties": dict(self._properties(call.tool))}
        arguments = with_defaults(schema, call.arguments)
        wanted = with_defaults(schema, expected.arguments)
        for name in dict.fromkeys((*wanted, *arguments)):
            if name not in arguments:
                yield f"{name} is not read; it is {_short(wanted[name])}"
            elif name not in wanted:
                yield f"{name} is read as {_short(arguments[name])}; the sentence does not give it"
            elif not same(wanted[name], arguments[name]):
                yield f"{name} is read as {_short(arguments[name])} instead of {_short(wanted[name])}"


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names) or "nothing"


def _short(value: Json) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 80 else f"{text[:77]}…"

"""The embedded classifier on the pack that is shipped: what its registry gives as examples is understood."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

import pytest

from podium.core.model import Json
from podium.core.packs import Pack, PackTool, Skill
from podium.jobs.operator.judgement.embedded import EmbeddedClassifier
from podium.jobs.operator.judgement.fields import FieldExtractor
from podium.jobs.operator.models import Intent, Message, Reading
from podium.tools.packs import load_pack, shipped_packs

NOW = datetime(2026, 11, 16, 9, tzinfo=UTC)


@pytest.fixture(scope="module")
def pack() -> Pack:
    return load_pack(shipped_packs() / "roofing")


def subjects(pack: Pack) -> Iterator[PackTool | Skill]:
    yield from pack.registry.tools
    yield from pack.registry.skills


def readings(pack: Pack) -> Iterator[tuple[str, str, Reading]]:
    """Every example of the registry: what it is an example of, the sentence, how it is read."""
    classifier = EmbeddedClassifier(pack, FieldExtractor(pack))
    for subject in subjects(pack):
        needed = subject.needs_context if isinstance(subject, Skill) else ()
        context: dict[str, Json] = {name: {} for name in needed}
        for example in subject.examples:
            message = Message(text=example.say, context=context, now=NOW)
            yield subject.name, example.say, classifier.reading(message)


def test_nearly_every_example_of_a_registry_is_read_as_what_it_is_an_example_of(pack: Pack) -> None:
    read = list(readings(pack))
    right = [
        name
        for name, _, reading in read
        if [tool_intent.tool for tool_intent in reading.calls] == [name]
    ]
    assert len(right) >= 0.96 * len(read)


def test_hardly_an_example_is_taken_for_another_tool_that_changes_something(pack: Pack) -> None:
    read = list(readings(pack))
    wrong = [
        (name, say, tool_intent.tool)
        for name, say, reading in read
        for tool_intent in reading.calls
        if tool_intent.tool != name
        and tool_intent.tool not in _steps(pack, name)
        and not _reads(pack, tool_intent.tool)
    ]
    assert len(wrong) <= 0.01 * len(read), wrong


def test_every_tool_and_skill_can_be_asked_for_by_its_name(pack: Pack) -> None:
    classifier = EmbeddedClassifier(pack, FieldExtractor(pack))
    for subject in subjects(pack):
        reading = classifier.reading(Message(text=f"please run {subject.name}", now=NOW))
        assert reading.intent is Intent.EXECUTE
        assert [tool_intent.tool for tool_intent in reading.calls] == [subject.name]


def _steps(pack: Pack, name: str) -> set[str]:
    skill = pack.skill(name)
    return {step.tool for step in skill.steps} if skill else set()


def _reads(pack: Pack, name: str) -> bool:
    tool = pack.tool(name)
    return tool is not None and (tool.tier == 0 or name.split(".")[-1] in ("get", "find"))

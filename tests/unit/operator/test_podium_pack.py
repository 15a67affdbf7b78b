"""The pack that comes first: Podium and its project in plain words, read without a model."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from podium.core.decisions import Tier
from podium.core.errors import PackInvalid
from podium.core.packs import Pack
from podium.jobs.operator.judgement.directives import find_conflict
from podium.jobs.operator.judgement.embedded import EmbeddedClassifier
from podium.jobs.operator.judgement.fields import FieldExtractor
from podium.jobs.operator.judgement.tiers import highest, tool_arithmetic
from podium.jobs.operator.models import Intent, Message, Reading
from podium.jobs.operator.services import SERVICES
from podium.tools.packs import load_pack, shipped_packs
from tests.unit.packs.bikes import registry_with, write_pack

WEDNESDAY = datetime(2026, 11, 18, 9, tzinfo=UTC)


@pytest.fixture(scope="module")
def pack() -> Pack:
    return load_pack(shipped_packs() / "podium")


def _read(pack: Pack, text: str) -> Reading:
    classifier = EmbeddedClassifier(pack, FieldExtractor(pack))
    return classifier.reading(Message(text=text, now=WEDNESDAY))


@pytest.mark.parametrize(
    ("text", "tool", "arguments"),
    [
        ("what is waiting for me", "inbox.list", {}),
        ("anything that needs my attention?", "inbox.list", {}),
        ("what is running", "runs.list", {"status": "running"}),
        ("which runs failed this week", "runs.list", {"status": "failed"}),
        ("show run 9d1f5a6b", "runs.show", {"run_id": "9d1f5a6b"}),
        ("show the last run", "runs.show", {}),
        ("why did the last run fail", "runs.get_failure", {}),
        ("why did run 9d1f5a6b fail?", "runs.get_failure", {"run_id": "9d1f5a6b"}),
        ("cancel the last run", "runs.cancel", {}),
        ("run the tests", "project.run_checks", {}),
        ("are the tests passing", "project.run_checks", {}),
        ("how much did we spend this week", "costs.show", {"from": "2026-11-16", "to": "2026-11-22"}),
        ("how much did we spend today", "costs.show", {"from": "2026-11-18", "to": "2026-11-18"}),
        ("system status", "system.status", {}),
    ],
)  # fmt: skip
def test_a_sentence_is_read_as_its_tool(
    pack: Pack, text: str, tool: str, arguments: dict[str, Any]
) -> None:
    reading = _read(pack, text)
    assert (reading.intent, [call.tool for call in reading.calls]) == (Intent.EXECUTE, [tool])
    assert reading.calls[0].arguments == arguments


@pytest.mark.parametrize(
    "text",
    [
        "fix the failing discount test",
        "please add retries to the http client",
        "rename User to Account everywhere",
        "could you bump the version to 2.1",
        "make the build faster",
    ],
)
def test_a_command_about_the_code_is_a_task(pack: Pack, text: str) -> None:
    reading = _read(pack, text)
    assert (reading.intent, reading.candidates) == (Intent.EXECUTE, ("project.start_task",))


@pytest.mark.parametrize(
    "text",
    [
        "don't fix the failing test",
        "should we refactor the parser?",
        "how do I add a feature",
        "fix it",
        "why did you cancel the run",
        "bake a cake",
    ],
)
def test_what_asks_for_no_task_starts_none(pack: Pack, text: str) -> None:
    assert "project.start_task" not in [call.tool for call in _read(pack, text).calls]


def test_what_starts_or_ends_work_needs_a_person_and_looking_does_not(pack: Pack) -> None:
    tiers = {tool.name: highest(tool_arithmetic(tool, {}, pack)) for tool in pack.registry.tools}
    assert {name for name, tier in tiers.items() if tier >= Tier.T2} == {
        "runs.cancel",
        "project.start_task",
    }
    assert tiers["project.run_checks"] is Tier.T1


def test_nobody_cancels_all_runs_at_once(pack: Pack) -> None:
    message = Message(text="cancel all runs", now=WEDNESDAY)
    assert find_conflict(message, _read(pack, message.text), pack) is not None


def test_the_registry_names_every_service_and_no_other(pack: Pack) -> None:
    assert [tool.handler for tool in pack.registry.tools] == [
        {"service": name} for name in SERVICES
    ]


def test_a_pack_of_somebody_else_gets_none_of_the_services(tmp_path: Path) -> None:
    folder = write_pack(
        tmp_path / "bikes", registry_with("/tools/0/handler", {"service": "cancel"})
    )
    with pytest.raises(PackInvalid, match="only packs that ship with Podium"):
        load_pack(folder)

"""Every answer has the five blocks, whatever came in; what cannot be read leaves no trace."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from podium.app.packs import open_pack
from podium.jobs.operator import Operator
from podium.jobs.operator.answer_blocks import blocks
from podium.jobs.operator.models import Conflict, Directive, OperatorAnswer, Reading
from podium.jobs.operator.testing import sure
from tests.unit.operator.core.shop import Shop, cli_for, operator_for

TITLES = re.compile(
    r"^\[(INTENT|PLAN|RESULT|TOOL IMPACT|RISKS / GATES|NEXT ACTIONS)\]$", re.MULTILINE
)
READINGS = {
    "add": sure(("things.add", {"name": "lamp"})),
    "add nothing": sure(("things.add", {})),
    "add a number": sure(("things.add", {"name": 7})),
    "publish": sure(("things.add", {"name": "lamp"}), ("things.publish", {})),
    "untried": sure(("os.untried", {})),
    "perhaps": sure(("things.add", {"name": "lamp"}), confidence=0.4),
    "mumble": Reading.model_validate({"intent": "clarify", "confidence": 0.1}),
}


def must_be_five(answer: OperatorAnswer) -> str:
    text = blocks(answer)
    titles = TITLES.findall(text)
    assert titles[1] in ("PLAN", "RESULT")
    assert [titles[0], *titles[2:]] == ["INTENT", "TOOL IMPACT", "RISKS / GATES", "NEXT ACTIONS"]
    assert re.search(r"^  1\. \S", text.partition("[NEXT ACTIONS]")[2], re.MULTILINE)
    return text


@pytest.mark.sample(4)
@pytest.mark.parametrize(
    ("message", "mode", "context", "code", "words"),
    [
        ("", "execute", None, 3, "the message is empty"),
        (" \n\t ", "execute", None, 3, "the message is empty"),
        ("x" * 1_000_000, "execute", None, 4, "1000000 characters"),
        ("add\x00", "execute", None, 4, "control character"),
        ("add \x1b[31m", "execute", None, 4, "control character"),
        ("add \ud800", "execute", None, 4, "control character"),
        ("add", "destroy", None, 4, "unknown mode 'destroy'; modes: analyze"),
        ("add", None, None, 4, "unknown mode"),
        ("add", "execute", ["a list"], 4, "must be an object"),
        ("add", "execute", {"x": float("nan")}, 4, "not plain JSON"),
        ("add", "execute", {"x": object()}, 4, "not plain JSON"),
        ("add", "execute", {"x": "y" * 3_000_001}, 4, "the limit is 3000000"),
        (None, "execute", None, 4, "must be text"),
    ],
)
async def test_bad_input_gets_a_clear_answer_and_nothing_is_written(
    tmp_path: Path, message: Any, mode: Any, context: Any, code: int, words: str
) -> None:
    shop = Shop(tmp_path)
    async with shop.podium() as podium:
        answer = await operator_for(podium, READINGS).process(message, mode, context)
    text = must_be_five(answer)
    assert answer.exit_code == code
    assert words in text
    assert len(text) < 5_000
    assert not (shop.project / ".podium").exists()


async def test_the_golden_answers(tmp_path: Path) -> None:
    """The shapes that others parse."""
    shop = Shop(tmp_path)
    async with shop.podium() as podium:
        operator = operator_for(podium, READINGS)
        missing = must_be_five(await operator.process("add nothing", "execute"))
        failed = must_be_five(await operator.process("add a number", "execute"))
        untried = must_be_five(await operator.process("untried", "execute"))
        unknown = must_be_five(await operator.process("dance", "execute"))
        planned = must_be_five(await operator.process("publish", "plan"))
        cli = cli_for(podium, open_pack(podium, "shop"), READINGS)
        conflict = Conflict(
            directive=Directive.CONTINUITY, because="operation endangers worker stability"
        )
        strict = Operator(_with_conflict(cli, conflict))
        against = must_be_five(await strict.process("add", "execute"))
    assert (
        "[INTENT]\nDomain: things\nIntent: refuse\nConfidence: 90%\n"
        "Reasoning: Directive conflict - operation endangers worker stability\n" in against
    )
    assert (
        "[RISKS / GATES]\nConflicting directive: operational_continuity\nSeverity: blocking\n"
        in against
    )
    assert (
        "Intent: clarify\nConfidence: 90%\nReasoning: Insufficient evidence to proceed\n" in missing
    )
    assert "[NEXT ACTIONS]\n  1. Provide missing: name\n" in missing
    assert (
        "[PLAN]\nStatus: quality_gate_failed\n"
        "Reason: Schema validation failed for tool things.add" in failed
    )
    assert "\nSchema correct: false" in failed
    assert "Worker safe: false (tool os.untried is experimental)" in untried
    assert "Intent: refuse" in unknown
    assert "verify: SELECT id, name, status FROM things WHERE id = :id" in planned
    assert "things.publish after things.add: Required predecessor" in planned
    assert "Risk tier: T2\nApproval required: yes\nRisk reason: T2 = max(" in planned
    assert "Safer alternative: os.shelf: looking changes nothing" in planned


@pytest.mark.parametrize(("message", "intent"), [("perhaps", "clarify"), ("mumble", "refuse")])
async def test_doubt_is_a_question_and_more_doubt_a_no(
    tmp_path: Path, message: str, intent: str
) -> None:
    shop = Shop(tmp_path)
    async with shop.podium() as podium:
        answer = await operator_for(podium, READINGS).process(message, "execute")
    assert f"Intent: {intent}" in must_be_five(answer)
    assert answer.exit_code == (3 if intent == "clarify" else 4)
    assert not (shop.project / ".podium").exists()


async def test_results_report_receipts_cost_and_the_way_back(tmp_path: Path) -> None:
    shop = Shop(tmp_path)
    async with shop.podium() as podium:
        operator = operator_for(podium, READINGS)
        answer = await operator.process("publish", "execute", explicit_approval=True)
    text = must_be_five(answer)
    assert "[RESULT]\nStatus: succeeded\n" in text
    assert "1. things.add: completed (receipt 1, verified) thing_id=thing_1" in text
    assert "Executed: things.add, things.publish" in text
    assert "Approved by: ann" in text
    assert "podium undo " in text
    assert "Cost: no cost (no cost estimated)" in text


async def test_what_was_asked_before_is_suggested_and_can_be_erased(tmp_path: Path) -> None:
    shop = Shop(tmp_path)
    async with shop.podium() as podium:
        from podium.jobs.operator.composition import habits_of

        operator, habits = operator_for(podium, READINGS), habits_of(podium)
        await operator.process("add", "execute")
        seen = await operator.process("add", "analyze")
        assert seen.suggestions == ("things.add (asked 1 time before)",)
        assert [habit.status for habit in habits.all()] == ["succeeded", "analyzed"]
        assert habits.forget("add") == 2
        assert habits.all() == []


def _with_conflict(cli: Any, conflict: Conflict) -> Any:
    from dataclasses import replace

    return replace(cli, find_conflict=lambda *_: conflict)

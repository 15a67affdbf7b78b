"""Questions to people: shown in full, or with a statement of what is left out."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import pytest

from podium.core.decisions import Approval, Tier
from podium.core.plan_approval import ApprovedCall, PlanQuestion, question_in
from podium.jobs.operator.answer_blocks import blocks
from podium.jobs.operator.models import OperatorAnswer
from podium.jobs.operator.plan_gate import MAX_SUMMARY, summary_of
from podium.jobs.operator.testing import sure
from podium.render.argument_text import exact_lines, exactly, value_text
from tests.unit.operator.core.shop import Shop, operator_for

LONG = "Dear Kim, " + "all is well. " * 60 + "PS: pay to BSB 000-000 instead"


def question(*calls: dict[str, Any], **more: Any) -> PlanQuestion:
    asked = [
        ApprovedCall(number=number, tool="mail.send", tier=Tier.T3, arguments=arguments)
        for number, arguments in enumerate(calls, start=1)
    ]
    return PlanQuestion(message="write to them", calls=tuple(asked), **more)


def test_a_short_plan_is_summed_up_whole() -> None:
    given = {"to": "kim@example.com", "n": 2, "ref": {"$from": [1, "id"]}}
    assert summary_of(question(given, irreversible=("mail.send",), undoes="run_1#2")) == (
        "plan of 1 call for: 'write to them'\n"
        "  cannot be undone: mail.send\n"
        "  reverses receipt run_1#2\n"
        "  1. mail.send (T3) to='kim@example.com', n=2, ref=(from 1: id)"
    )


def test_a_long_value_is_summed_up_by_beginning_end_what_is_left_out_and_a_digest() -> None:
    summary = summary_of(question({"text": LONG}))
    digest = hashlib.sha256(LONG.encode()).hexdigest()[:12]
    assert "text='Dear Kim, all" in summary
    assert f"[{len(LONG) - 300} characters left out; sha256 of the whole {digest}]" in summary
    assert "pay to BSB 000-000 instead'" in summary


def test_calls_and_arguments_for_which_there_is_no_room_are_counted() -> None:
    summary = summary_of(question(*[{"text": LONG}] * 40, irreversible=("mail.send",)))
    shown_calls = summary.count(". mail.send (T3)")
    more = f"and {40 - shown_calls} more calls; `podium approvals ID` shows all"
    assert 0 < shown_calls < 40
    assert summary.endswith(more)
    assert "cannot be undone: mail.send" in summary
    assert len(summary) <= MAX_SUMMARY
    crowded = summary_of(question({f"name_{number}": "x" * 100 for number in range(50)}))
    assert "more arguments; `podium approvals ID` shows all" in crowded


def test_a_summary_hides_nothing() -> None:
    summary = summary_of(question({"text": "a\u202eb\nc", "list": ["\x1b"], "x\n2. y": 1}))
    assert r"text='a\u202eb\nc'" in summary
    assert r'list=["\u001b"]' in summary
    assert summary.count("\n") == 1


@pytest.mark.parametrize(
    ("value", "lines"),
    [
        ("plain", ["  a: plain"]),
        ("", ['  a: ""']),
        (" x ", ['  a: " x "']),
        ("x, amount=5", ['  a: "x, amount=5"']),
        ("(from 1: phone)", ['  a: "(from 1: phone)"']),
        ({"$from": [1, "phone"]}, ["  a: (from 1: phone)"]),
        ({"$from": [[1, "id"], [2, "id"]]}, ["  a: (from 1: id), (from 2: id)"]),
        ({"$from": "x"}, ['  a: {"$from": "x"}']),
        ("(03) 9123 4567", ["  a: (03) 9123 4567"]),
        ("2026-11-15T20:16:57+00:00", ["  a: 2026-11-15T20:16:57+00:00"]),
        (1234567890123.45, ["  a: 1234567890123.45"]),
        (True, ["  a: yes"]),
        (None, ["  a: -"]),
        (["a, b", "c"], ['  a: ["a, b", "c"]']),
        ("one\r\n  2. two\n", ["  a:", "    | one", "    |   2. two", "    |"]),
        ("x" * 5000, ["  a: " + "x" * 5000]),
    ],
)
def test_an_argument_is_shown_whole_and_as_nothing_else(value: Any, lines: list[str]) -> None:
    assert list(exact_lines({"a": value}, indent=2)) == lines


def test_a_large_record_is_written_over_several_lines_and_none_is_left_out() -> None:
    lines = list(exact_lines({"rows": [{"n": number} for number in range(300)]}, indent=2))
    assert sum('"n": ' in line for line in lines) == 300
    assert all(line.startswith("  ") for line in lines)


def test_only_unmistakable_arguments_are_on_the_line_of_their_call() -> None:
    output, lines = exactly({"to": "kim", "text": "x, to=bob", "x=y, to": 1, "rows": [1]}, indent=7)
    assert output == 'to=kim, text="x, to=bob"'
    assert lines == ['       "x=y, to": 1', "       rows: [1]"]


def test_a_reference_that_is_none_is_shown_as_it_is() -> None:
    for broken in ([], None, [1], ["x", 1], [[1, "a"], "b"]):
        assert value_text({"$from": broken}).startswith('{"$from": ')


async def asked(tmp_path: Path, text: str) -> tuple[OperatorAnswer, Approval]:
    readings = {"write": sure(("mail.send", {"to": "kim@example.com", "text": text}))}
    async with Shop(tmp_path).podium() as podium:
        answer = await operator_for(podium, readings).process("write", "execute")
        store = await podium.store()
        (approval,) = await store.read(lambda view: view.approvals(run_id=answer.run_id))
    assert answer.status == "awaiting_approval"
    return answer, approval


async def test_whoever_is_asked_for_a_yes_sees_every_argument_whole(tmp_path: Path) -> None:
    answer, _ = await asked(tmp_path, LONG)
    assert f"       text: {LONG}\n" in blocks(answer)


async def test_an_approval_holds_the_plan_call_by_call(tmp_path: Path) -> None:
    _, approval = await asked(tmp_path, LONG)
    kept = question_in(approval)
    assert kept is not None
    assert [(call.number, call.tool, call.tier) for call in kept.calls] == [
        (1, "mail.send", Tier.T3)
    ]
    assert kept.calls[0].arguments == {"to": "kim@example.com", "text": LONG}
    assert (kept.irreversible, kept.estimate.usd) == (("mail.send",), 0.01)
    assert question_in(approval.model_copy(update={"plan_hash": ""})) is None
    assert question_in(approval.model_copy(update={"arguments": {"steps": []}})) is None

"""Scoring of one utterance: what counts as right, and what as done wrongly."""

from __future__ import annotations

from typing import Any

import pytest

from podium.core.decisions import Tier
from podium.core.model import Json
from podium.core.packs import Pack
from podium.jobs.operator.bench.cases import UtteranceCase
from podium.jobs.operator.bench.command import tally_of
from podium.jobs.operator.bench.score import calls_of, compared, same
from podium.jobs.operator.models import (
    Conflict,
    Directive,
    Intent,
    IntentClassification,
    ToolIntent,
    Urgency,
)
from podium.tools.packs import load_pack, shipped_packs


@pytest.fixture(scope="module")
def pack() -> Pack:
    return load_pack(shipped_packs() / "roofing")


def _case(**changes: Any) -> UtteranceCase:
    fields = {
        "half": "tuning",
        "say": "finalize quote abc123",
        "class": "plain",
        "intent": "execute",
        "domain": "quote",
        "tools": ["quote.finalize"],
        "fields": {"quote.finalize": {"quote_id": "abc123"}},
        "tier": "T2",
    }
    return UtteranceCase.model_validate({**fields, **changes})


def _read(*intent: ToolIntent, **changes: Any) -> IntentClassification:
    return IntentClassification(
        classification_id="cls_1",
        intent=Intent.EXECUTE,
        domain="quote",
        urgency=Urgency.NORMAL,
        tool_candidates=tuple(wishe.tool for wishe in intent),
        required_fields=(),
        missing_evidence=(),
        risk_tier=Tier.T2,
        risk_reason="",
        confidence=0.9,
        reasoning="",
        wishes=intent,
    ).model_copy(update=changes)


FINALIZE = ToolIntent(tool="quote.finalize", arguments={"quote_id": "abc123"})
DECLINE = ToolIntent(tool="quote.decline", arguments={"quote_id": "abc123"})


def test_what_is_right_in_every_aspect_is_right(pack: Pack) -> None:
    marked = compared(_case(), _read(FINALIZE), pack)
    assert marked.right
    assert not marked.wrongly_executed


def test_different_id_is_a_wrong_field_and_reported_in_words(pack: Pack) -> None:
    other = ToolIntent(tool="quote.finalize", arguments={"quote_id": "abc124"})
    marked = compared(_case(), _read(other), pack)
    assert marked.tools_right
    assert marked.fields_right is False
    assert marked.problems == ("quote.finalize.quote_id: 'abc124' instead of 'abc123'",)


def test_another_tool_that_needs_approval_is_wrongly_executed(pack: Pack) -> None:
    marked = compared(_case(), _read(DECLINE), pack)
    assert marked.wrongly_executed
    assert not marked.unapproved


def test_another_tool_that_only_reads_is_wrong_but_does_no_harm(pack: Pack) -> None:
    reads = ToolIntent(tool="os.get_quote", arguments={"quote_id": "abc123"})
    marked = compared(_case(), _read(reads, risk_tier=Tier.T0), pack)
    assert not marked.right
    assert not marked.wrongly_executed


@pytest.mark.parametrize("intent", ["refuse", "clarify", ["clarify", "refuse"]])
def test_anything_executed_where_nothing_may_be_is_wrongly_executed(
    pack: Pack, intent: str | list[str]
) -> None:
    case = _case(intent=intent, tools=[], fields={}, domain=None, tier=None)
    reads = ToolIntent(tool="os.health_check")
    assert compared(case, _read(reads, risk_tier=Tier.T0), pack).wrongly_executed


def test_where_a_look_is_one_right_answer_a_question_is_right_too_but_no_other_act(
    pack: Pack,
) -> None:
    case = _case(
        intent=["execute", "clarify", "refuse"],
        domain="system",
        tools=["os.get_quote"],
        fields={"os.get_quote": {"quote_id": "abc123"}},
        tier="T0",
    )
    look = ToolIntent(tool="os.get_quote", arguments={"quote_id": "abc123"})
    assert compared(case, _read(look, domain="system", risk_tier=Tier.T0), pack).right
    assert compared(case, _read(intent=Intent.CLARIFY), pack).right
    assert compared(case, _read(FINALIZE), pack).wrongly_executed


def test_a_question_instead_of_a_wrong_act_is_not_executed(pack: Pack) -> None:
    marked = compared(_case(), _read(DECLINE, intent=Intent.CLARIFY), pack)
    assert not marked.wrongly_executed


def test_a_tier_computed_too_low_is_an_act_without_approval(pack: Pack) -> None:
    marked = compared(_case(), _read(FINALIZE, risk_tier=Tier.T1), pack)
    assert marked.unapproved
    assert tally_of([marked]).total.unapproved == 1


def test_what_must_be_asked_for_is_compared(pack: Pack) -> None:
    case = _case(intent="clarify", fields={}, missing=["quote_id"])
    asked = ToolIntent(tool="quote.finalize")
    right = _read(asked, intent=Intent.CLARIFY, missing_evidence=("quote_id",))
    assert compared(case, right, pack).right
    wrong = right.model_copy(update={"missing_evidence": ("lead_id",)})
    assert compared(case, wrong, pack).problems == ("missing: lead_id instead of quote_id",)


def test_a_skill_is_compared_by_its_tools_and_their_arguments(pack: Pack) -> None:
    case = _case(
        tools=["quote.finalize", "email.send_quote"],
        fields={"quote.finalize": {"quote_id": "Q-1"}, "email.send_quote": {"to": "a@example.org"}},
        tier="T3",
    )
    skill = ToolIntent(tool="quote.deliver", arguments={"quote_id": "Q-1", "to": "a@example.org"})
    assert compared(case, _read(skill, risk_tier=Tier.T3), pack).right


def test_step_per_element_is_one_call_in_the_comparison(pack: Pack) -> None:
    context: dict[str, Json] = {"inspection_packet": {"photos": [{}, {}]}}
    calls = calls_of([ToolIntent(tool="inspection.from_packet")], pack, context)
    assert [call.tool for call in calls].count("media.create_asset") == 1


def test_a_step_that_the_context_does_not_call_for_is_no_call(pack: Pack) -> None:
    skill = [ToolIntent(tool="inspection.from_packet")]
    known = {"inspection_packet": {"lead_id": "abc123", "photos": [{}]}}
    new = {"inspection_packet": {"lead": {"name": "Ann"}, "photos": []}}
    assert "leads.create" not in {call.tool for call in calls_of(skill, pack, known)}
    calls = calls_of(skill, pack, new)
    assert calls[0] == ToolIntent(tool="leads.create", arguments={"name": "Ann"})
    assert "media.create_asset" not in {call.tool for call in calls}


def test_the_second_call_of_a_tool_has_fields_of_its_own(pack: Pack) -> None:
    case = _case(
        tools=["quote.finalize", "quote.finalize"],
        fields={"quote.finalize": {"quote_id": "abc123"}, "quote.finalize#2": {"quote_id": "Q-2"}},
    )
    second = ToolIntent(tool="quote.finalize", arguments={"quote_id": "Q-2"})
    assert compared(case, _read(FINALIZE, second), pack).right
    assert not compared(case, _read(second, FINALIZE), pack).right


def test_a_field_that_an_earlier_call_gives_need_not_be_read_again(pack: Pack) -> None:
    case = _case(
        tools=["quote.accept", "job.create"],
        fields={"quote.accept": {"quote_id": "Q-1"}, "job.create": {"quote_id": "Q-1"}},
    )
    accepted = ToolIntent(tool="quote.accept", arguments={"quote_id": "Q-1"})
    assert compared(case, _read(accepted, ToolIntent(tool="job.create")), pack).right
    other = ToolIntent(tool="job.create", arguments={"quote_id": "Q-2"})
    assert not compared(case, _read(accepted, other), pack).right


def test_refused_work_is_counted_by_who_refused_it(pack: Pack) -> None:
    conflict = Conflict(directive=Directive.SAFETY, because="it is forbidden")
    by_directive = _read(intent=Intent.REFUSE, conflict=conflict)
    unread = _read(intent=Intent.REFUSE)
    either = _case(intent=["refuse", "execute"])
    marked = [
        compared(_case(), by_directive, pack),
        compared(_case(), unread, pack),
        compared(_case(), _read(FINALIZE), pack),
        compared(either, by_directive, pack),
    ]

    refused = tally_of(marked).false_refusals

    assert (refused.of, refused.by_directive, refused.no_tool) == (3, 1, 1)


@pytest.mark.parametrize(
    ("expected", "found"),
    [
        ("call John", "Call John."),
        ("12 Smith St, Clayton", "12 Smith St Clayton"),
        ("the dog's out", "the dog’s out"),
        (1200, 1200.0),
        ({"any_of": ["a", "b"]}, "b"),
        (True, True),
        (None, None),
        ([{"kind": "defect"}], [{"kind": "defect", "label": "more"}]),
    ],
)
def test_values_nobody_would_call_different_are_the_same(expected: Any, found: Any) -> None:
    assert same(expected, found)


@pytest.mark.parametrize(
    ("expected", "found"),
    [
        ("abc123", "abc124"),
        ("abc123", None),
        (3, "3"),
        (1, True),
        (True, 1),
        (None, 1),
        (1200, 120),
        ({"any_of": ["a", "b"]}, "c"),
        (["a"], ["a", "b"]),
        ({"kind": "defect"}, "defect"),
    ],
)
def test_values_that_differ_are_not_the_same(expected: Any, found: Any) -> None:
    assert not same(expected, found)

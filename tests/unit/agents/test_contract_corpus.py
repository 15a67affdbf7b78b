"""The corpus of replies: nothing wrong is accepted, and nearly all that is right is."""

from __future__ import annotations

from collections import Counter

import pytest
from pydantic import ValidationError

from podium.cli.commands.bench_contract import rate, score, scores
from podium.testing.replies import BLOCKS, CONTRACTS, Expected, ReplyCase, reply_cases

MARKED = [rate(case) for case in reply_cases()]
WRONGLY_REFUSED = {
    ("broken strings", "an apostrophe in single quotes"),
    ("in the wild", "a comment after the closing brace"),
    ("loose JSON", "a block comment"),
}
"""Shapes an answer is in that are not read yet."""


def test_no_wrong_payload_is_accepted() -> None:
    assert [item.case.name for item in MARKED if item.mark == "accepted"] == []


def test_only_the_known_shapes_are_wrongly_refused() -> None:
    refused = {(item.case.family, item.case.name) for item in MARKED if item.mark == "refused"}
    assert refused == WRONGLY_REFUSED
    assert score("all", MARKED).accuracy > 0.99


def test_what_is_accepted_is_marked_as_found_or_mended_rightly() -> None:
    accepted = [item for item in MARKED if item.found]
    assert [item.case.name for item in accepted if item.found != item.case.expect.found] == []


def test_what_is_refused_is_refused_for_the_reason_a_person_would_give() -> None:
    refused = [item for item in MARKED if item.case.expect.error]
    others = {
        item.case.name: item.problem for item in refused if item.problem != item.case.expect.error
    }
    assert others == {}


def test_every_refusal_can_be_quoted() -> None:
    for item in MARKED:
        if item.words:
            assert item.words.isprintable()
            assert len(item.words) < 1500


def test_the_corpus_is_large_varied_and_without_doubles() -> None:
    cases = reply_cases()
    assert len(cases) >= 500
    assert len(scores(MARKED)) >= 20
    assert Counter((case.family, case.name) for case in cases).most_common(1)[0][1] == 1
    seen = Counter((case.text, case.contract, case.nonce) for case in cases)
    assert seen.most_common(1)[0][1] == 1
    assert {case.contract for case in cases} == {*CONTRACTS, *BLOCKS}


def test_a_family_can_be_read_alone() -> None:
    assert {case.family for case in reply_cases("cut off")} == {"cut off"}
    assert reply_cases("no such") == []


def test_a_case_expects_either_a_payload_or_an_error() -> None:
    with pytest.raises(ValidationError, match="either a payload or an error"):
        Expected()
    with pytest.raises(ValidationError, match="either a payload or an error"):
        Expected(payload={}, error="missing")


def test_a_wrong_expectation_is_seen_as_wrong() -> None:
    case = ReplyCase(
        family="f", name="n", contract="verdict", text='{"verdict": "APPROVE"}',
        expect=Expected(payload={"verdict": "REJECT"}),
    )  # fmt: skip
    assert rate(case).mark == "accepted"
    assert rate(case.model_copy(update={"text": "no"})).mark == "refused"
    assert rate(case.model_copy(update={"expect": Expected(error="missing")})).mark == "accepted"

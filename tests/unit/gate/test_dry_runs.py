"""Dry runs of tools that declare their behaviour in them, and the tier of a call that hands something on."""

from __future__ import annotations

from typing import Any

import pytest

from podium.core.decisions import Access, ApprovalStatus, Decision, Effect, Tier
from tests.unit.gate.gate_harness import approval_for, context_for, gate_of, path, spec, tool_call

RULES = """
rules:
  - {name: filing, tool: file, decision: allow}
  - {name: handing-over, tool: hand_over, decision: ask}
"""
GATE = gate_of(user=RULES)
FILE = spec("file", Tier.T1, in_dry_run="act")
HAND_OVER = spec("hand_over", Tier.T1, in_dry_run="ask", tier_argument="tier")


def filing(mode: str, tool: Any = FILE, **changes: Any) -> Decision:
    call = tool_call(tool.name, paths=(path("a", Access.WRITE),))
    return GATE.decide(call, context_for(tool, mode=mode, **changes))


def handing_over(mode: str, tier: Any = "T1", *, approved: bool = False, **changes: Any) -> Decision:  # fmt: skip
    call = tool_call("hand_over", arguments={"tier": tier})
    approval = approval_for(call, HAND_OVER, **changes) if approved else None
    return GATE.decide(call, context_for(HAND_OVER, mode=mode, approval=approval))


def test_what_is_made_for_review_is_made_in_a_dry_run() -> None:
    assert filing("dry-run").effect is Effect.ALLOW


def test_without_such_a_word_a_dry_run_changes_nothing() -> None:
    refused = filing("dry-run", spec("file", Tier.T1))
    assert (refused.effect, refused.rule) == (Effect.DENY, "mode:dry-run")


def test_a_word_for_dry_runs_counts_for_nothing_in_sensing() -> None:
    assert filing("sensing").rule == "mode:sensing"
    assert handing_over("sensing").rule == "mode:sensing"
    assert handing_over("sensing", approved=True).rule == "mode:sensing"


def test_a_dry_run_does_not_make_for_review_what_people_would_be_asked_about() -> None:
    risky = spec("file", Tier.T3, in_dry_run="act")
    assert filing("supervised", risky).effect is Effect.ASK
    assert filing("dry-run", risky).rule == "mode:dry-run"


def test_a_dry_run_asks_and_does_nothing_with_the_yes() -> None:
    assert handing_over("dry-run").effect is Effect.ASK
    answered = handing_over("dry-run", approved=True)
    assert (answered.effect, answered.rule) == (Effect.DENY, "mode:dry-run")
    assert handing_over("supervised", approved=True).effect is Effect.ALLOW


@pytest.mark.parametrize("status", [ApprovalStatus.PENDING, ApprovalStatus.REJECTED])
def test_an_answer_that_is_no_yes_lets_nothing_through(status: ApprovalStatus) -> None:
    for mode in ("dry-run", "supervised", "autonomous"):
        assert handing_over(mode, approved=True, status=status).effect is not Effect.ALLOW


def test_a_tool_that_asks_in_dry_runs_does_not_act_in_one_where_a_rule_allows_it() -> None:
    allowing = gate_of(user="rules: [{name: all, tool: hand_over, decision: allow}]")
    call = tool_call("hand_over", arguments={"tier": "T1"})
    decision = allowing.decide(call, context_for(HAND_OVER, mode="dry-run"))
    assert (decision.effect, decision.rule) == (Effect.DENY, "mode:dry-run")


@pytest.mark.parametrize(
    ("text", "tier"),
    [("T0", Tier.T1), ("T1", Tier.T1), ("T2", Tier.T2), ("T3", Tier.T3), ("T4", Tier.T4)],
)
def test_what_is_handed_on_is_as_risky_as_it_was_found_to_be(text: str, tier: Tier) -> None:
    assert handing_over("supervised", text).tier is tier


@pytest.mark.parametrize("output", ["", "t2", "T5", "T2 ", 2, None, ["T0"], {}])
def test_what_nobody_found_out_is_the_worst(output: Any) -> None:
    assert handing_over("supervised", output).tier is Tier.T4


def test_a_tool_that_hands_nothing_on_is_not_asked_for_its_tier() -> None:
    plain = spec("hand_over", Tier.T1)
    call = tool_call("hand_over", arguments={"tier": "T4"})
    assert GATE.decide(call, context_for(plain)).tier is Tier.T1

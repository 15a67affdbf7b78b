"""The arithmetic of risk."""

from __future__ import annotations

import pytest

from podium.core.decisions import Access, Decision, Effect, Tier
from tests.unit.gate.gate_harness import (
    command_call,
    context_for,
    decide,
    gate_of,
    path,
    run,
    spec,
    tool_call,
)

GATE = gate_of(user='rules: [{name: all, tool: "*", decision: allow}]')


def terms(decision: Decision) -> list[tuple[Tier, str]]:
    return [(term.tier, term.because) for term in decision.arithmetic]


def test_the_tools_own_tier_is_the_floor() -> None:
    decision = decide(GATE, tool_call("act"), Tier.T1)

    assert decision.tier is Tier.T1
    assert terms(decision) == [(Tier.T1, "act is registered as T1")]


def test_the_tier_is_the_highest_of_the_terms_and_all_are_shown() -> None:
    call = command_call("FOO=1 curl https://example.com", provenance=("github:issue/12",))
    decision = decide(GATE, call)

    assert decision.tier is Tier.T4
    assert terms(decision) == [
        (Tier.T1, "run_command is registered as T1"),
        (Tier.T2, "sets FOO, whose effect is unknown"),
        (Tier.T3, "curl can reach other machines"),
        (Tier.T4, "T3 raised by one because of its provenance: github:issue/12"),
    ]


@pytest.mark.parametrize(
    ("base", "raised"), [(Tier.T0, Tier.T1), (Tier.T2, Tier.T3), (Tier.T4, Tier.T4)]
)
def test_untrusted_provenance_raises_by_one_up_to_the_highest(base: Tier, raised: Tier) -> None:
    assert decide(GATE, tool_call("act", provenance=("web",)), base).tier is raised


@pytest.mark.parametrize(
    ("line", "tier"),
    [
        ("ls", Tier.T1),
        ("rm a", Tier.T2),
        ("pip install a", Tier.T2),
        ("cat /etc/hosts", Tier.T2),
        ("open https://example.com/a", Tier.T1),
        ("open file:///etc/hosts", Tier.T2),
        ("git restore a", Tier.T2),
        ("git checkout main", Tier.T2),
        ("git push", Tier.T3),
        ("ssh host", Tier.T3),
        ("dropdb live", Tier.T4),
        ("rm -rf a", Tier.T4),
        ("sudo ls", Tier.T4),
        ("echo $x", Tier.T4),
    ],
)
def test_commands_raise_the_tier_by_what_they_do(line: str, tier: Tier) -> None:
    assert run(GATE, line).tier is tier


def test_paths_outside_and_deletions_raise_the_tier() -> None:
    assert decide(GATE, tool_call("act", paths=(path("/etc/hosts"),))).tier is Tier.T2
    assert decide(GATE, tool_call("act", paths=(path("a", Access.DELETE),))).tier is Tier.T2
    assert decide(GATE, tool_call("act", paths=(path("a", Access.WRITE),))).tier is Tier.T0


def test_a_tier_above_the_limit_is_asked_with_its_main_reason() -> None:
    decision = decide(GATE, tool_call("act"), Tier.T2)

    assert (decision.effect, decision.rule) == (Effect.ASK, "tier:T2")
    assert decision.reason == "T2 needs a person in supervised mode: act is registered as T2"


def test_limits_are_set_by_mode() -> None:
    gate = gate_of(
        user="""
        rules: [{name: all, tool: "*", decision: allow}]
        max_tier_without_asking: {supervised: T0, autonomous: T2}
        """
    )

    assert decide(gate, tool_call("act"), Tier.T1, mode="supervised").effect is Effect.ASK
    assert decide(gate, tool_call("act"), Tier.T2, mode="autonomous").effect is Effect.ALLOW
    assert decide(gate, tool_call("act"), Tier.T3, mode="autonomous").effect is Effect.ASK


def test_a_project_lowers_limits_and_never_raises_them() -> None:
    user = """
        rules: [{name: all, tool: "*", decision: allow, up_to_tier: T3}]
        max_tier_without_asking: {autonomous: T2}
        """
    lowered = gate_of(user=user, project="max_tier_without_asking: {autonomous: T0}")
    raised = gate_of(
        user='rules: [{name: all, tool: "*", decision: allow}]',
        project="max_tier_without_asking: {autonomous: T4}",
    )

    assert decide(lowered, tool_call("act"), Tier.T1, mode="autonomous").effect is Effect.ASK
    assert decide(raised, tool_call("act"), Tier.T2, mode="autonomous").effect is Effect.ASK


def test_the_tools_own_approvers_are_asked_when_no_rule_names_any() -> None:
    tool = spec("act", Tier.T3, approvals=("ops",))
    assert GATE.decide(tool_call("act"), context_for(tool)).approvers == ("ops",)

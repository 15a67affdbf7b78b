"""Modes, budgets, quotas and approvals."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from podium.core.decisions import (
    Access,
    ApprovalStatus,
    Budget,
    BudgetState,
    Decision,
    Effect,
    Grant,
    Quota,
    QuotaState,
    Tier,
    Usage,
)
from tests.unit.gate.gate_harness import (
    NOW,
    RUN_COMMAND,
    approval_for,
    command_call,
    context_for,
    decide,
    gate_of,
    path,
    run,
    spec,
    tool_call,
)

EVERYTHING = 'rules: [{name: all, tool: "*", decision: allow}]'
GATE = gate_of(user=EVERYTHING)


def test_sensing_reads_and_does_nothing_else() -> None:
    reading = tool_call("look", paths=(path("a"),), provenance=("web",))
    writing = tool_call("look", paths=(path("a", Access.WRITE),))

    assert decide(GATE, reading, mode="sensing").effect is Effect.ALLOW
    assert decide(GATE, writing, mode="sensing").rule == "mode:sensing"
    assert decide(GATE, tool_call("act"), Tier.T1, mode="sensing").rule == "mode:sensing"
    assert run(GATE, "ls", mode="sensing").rule == "mode:sensing"


def test_a_dry_run_reads_and_says_what_would_have_been() -> None:
    assert decide(GATE, tool_call("look"), mode="dry-run").effect is Effect.ALLOW
    acting = decide(GATE, tool_call("act"), Tier.T1, mode="dry-run")
    sending = decide(GATE, tool_call("send"), Tier.T3, mode="dry-run")

    assert (acting.effect, acting.rule) == (Effect.DENY, "mode:dry-run")
    assert "would be allow by rule 'all'" in acting.reason
    assert "would be ask by rule 'tier:T3'" in sending.reason


def test_an_unknown_mode_is_denied() -> None:
    assert decide(GATE, tool_call("look"), mode="yolo").rule == "unknown-mode"


def test_an_unknown_tool_is_denied() -> None:
    assert GATE.decide(tool_call("look"), context_for(None)).rule == "unknown-tool"
    assert GATE.decide(tool_call("look"), context_for(spec("other"))).rule == "unknown-tool"


@pytest.mark.parametrize("attended", [True, False])
def test_whether_somebody_is_there_changes_no_decision(attended: bool) -> None:
    assert decide(GATE, tool_call("act"), Tier.T3, attended=attended).effect is Effect.ASK


@pytest.mark.parametrize(
    ("limit", "used"),
    [
        ({"usd": 1.0}, {"usd": 1.0}),
        ({"tokens": 10}, {"input_tokens": 6, "output_tokens": 4}),
        ({"turns": 3}, {"turns": 4}),
        ({"seconds": 60.0}, {"seconds": 61.0}),
        ({"usd": 0.0}, {}),
    ],
)
def test_a_spent_budget_denies_everything(limit: dict[str, Any], used: dict[str, Any]) -> None:
    state = BudgetState(budget=Budget(scope="run", **limit), used=Usage(**used))
    decision = decide(GATE, tool_call("look"), budgets=(state,))

    assert (decision.effect, decision.rule) == (Effect.DENY, "budget:run")
    assert "spent" in decision.reason


def test_a_budget_with_something_left_denies_nothing() -> None:
    state = BudgetState(budget=Budget(scope="day", usd=1.0, tokens=10), used=Usage(usd=0.99))

    assert decide(GATE, tool_call("look"), budgets=(state,)).effect is Effect.ALLOW


def test_budgets_of_all_layers_become_the_tightest() -> None:
    gate = gate_of(
        user="budgets: [{scope: run, usd: 5, turns: 10}, {scope: day, usd: 20}]",
        project="budgets: [{scope: run, usd: 9, tokens: 1000, turns: 3}]",
    )

    assert gate.budgets == (
        Budget(scope="run", usd=5, tokens=1000, turns=3),
        Budget(scope="day", usd=20),
    )


QUOTAS = """
quotas:
  - {name: mails, tool: "send_*", limit: 5, seconds: 3600}
  - {name: curls, command: "curl *", limit: 1, seconds: 10}
"""


def test_a_call_counts_against_the_quotas_that_mean_it() -> None:
    gate = gate_of(user=f"{EVERYTHING}\n{QUOTAS}")
    mails = Quota(name="mails", limit=5, seconds=3600)
    curls = Quota(name="curls", limit=1, seconds=10)

    assert gate.quotas_for(tool_call("send_mail"), context_for(spec("send_mail"))) == (mails,)
    assert gate.quotas_for(tool_call("look"), context_for(spec("look"))) == ()
    assert gate.quotas_for(command_call("ls && env curl x"), context_for()) == (curls,)


def test_a_full_quota_denies_and_says_when() -> None:
    gate = gate_of(user=f"{EVERYTHING}\n{QUOTAS}")
    quota = Quota(name="mails", limit=5, seconds=3600)

    def at(used: int) -> Decision:
        state = QuotaState(quota=quota, used=used)
        return decide(gate, tool_call("send_mail"), quotas=(state,))

    assert at(4).effect is Effect.ALLOW
    assert (at(5).effect, at(5).rule) == (Effect.DENY, "quota:mails")
    assert "3600 seconds" in at(5).reason


def test_a_projects_quota_cannot_stand_in_for_the_users() -> None:
    loose = 'quotas: [{name: mails, tool: "send_*", limit: 999, seconds: 1}]'
    gate = gate_of(user=f"{EVERYTHING}\n{QUOTAS}", project=loose)

    assert gate.quotas_for(tool_call("send_mail"), context_for(spec("send_mail"))) == (
        Quota(name="mails", limit=5, seconds=3600),
        Quota(name="project:mails", limit=999, seconds=1),
    )


def test_people_have_a_day_unless_the_policy_says_otherwise() -> None:
    assert gate_of().approval_seconds == 86_400
    assert gate_of(user="approval_seconds: 60").approval_seconds == 60
    assert (
        gate_of(user="approval_seconds: 60", project="approval_seconds: 30").approval_seconds == 30
    )
    assert (
        gate_of(user="approval_seconds: 60", project="approval_seconds: 90").approval_seconds == 60
    )


SEND = spec("send", Tier.T3)
SENDING = tool_call("send", arguments={"to": "ann"})


def sent(**changes: Any) -> Decision:
    approval = approval_for(SENDING, SEND, **changes)
    return GATE.decide(SENDING, context_for(SEND, approval=approval))


def test_a_granted_approval_lets_exactly_this_call_pass() -> None:
    decision = sent()

    assert (decision.effect, decision.rule) == (Effect.ALLOW, "approval:apr_1")
    assert decision.reason == "approved by ann"
    assert decision.tier is Tier.T3


def test_an_approval_for_another_digest_does_nothing() -> None:
    other = tool_call("send", arguments={"to": "eve"})
    approval = approval_for(SENDING, SEND)

    assert GATE.decide(other, context_for(SEND, approval=approval)).rule == "tier:T3"
    changed = spec("send", Tier.T3, description="sends twice")
    assert GATE.decide(SENDING, context_for(changed, approval=approval)).rule == "tier:T3"


@pytest.mark.parametrize("status", [s for s in ApprovalStatus if s is not ApprovalStatus.GRANTED])
def test_only_a_granted_approval_counts(status: ApprovalStatus) -> None:
    assert sent(status=status).effect is Effect.ASK


def test_an_approval_counts_before_its_deadline_only() -> None:
    assert sent(deadline=NOW + timedelta(seconds=1)).effect is Effect.ALLOW
    assert sent(deadline=NOW).effect is Effect.ASK


def test_deny_overrides_approval() -> None:
    denying = gate_of(user=f"{EVERYTHING[:-1]}, {{name: never, tool: send, decision: deny}}]")
    approval = approval_for(SENDING, SEND)
    assert denying.decide(SENDING, context_for(SEND, approval=approval)).rule == "never"

    forbidding = gate_of(user=f"{EVERYTHING}\nzones: {{forbidden: [secrets]}}")
    call = tool_call("send", paths=(path("secrets/a"),))
    context = context_for(SEND, approval=approval_for(call, SEND))
    assert forbidding.decide(call, context).rule == "forbidden-zone:forbidden"

    push = command_call("git push")
    context = context_for(approval=approval_for(push, RUN_COMMAND))
    assert GATE.decide(push, context).rule == "git-firewall"


def test_neither_a_missing_rule_nor_a_spent_budget_can_be_approved() -> None:
    approval = approval_for(SENDING, SEND)
    spent = BudgetState(budget=Budget(scope="run", usd=0))

    assert gate_of().decide(SENDING, context_for(SEND, approval=approval)).rule == "no-rule"
    context = context_for(SEND, approval=approval, budgets=(spent,))
    assert GATE.decide(SENDING, context).rule == "budget:run"


def test_an_approval_by_other_people_than_the_policy_wants_is_not_enough() -> None:
    gate = gate_of(user="rules: [{name: s, tool: send, decision: ask, approvals: [ops, owner]}]")

    def by(*groups: str) -> Decision:
        grants = tuple(Grant(by=f"one of {group}", group=group, at=NOW) for group in groups)
        approval = approval_for(SENDING, SEND, grants=grants)
        return gate.decide(SENDING, context_for(SEND, approval=approval))

    assert by("ops").effect is Effect.ASK
    assert by("owner", "ops").effect is Effect.ASK
    assert by("ops", "owner").rule == "approval:apr_1"

"""The gates of the loop: where its two tools and an order's operations may act, how often, and when unasked."""

from __future__ import annotations

from typing import Any

import pytest

from podium.core.decisions import Access, Decision, Effect, Quota, QuotaState, Tier
from podium.jobs.sense import SenseOptions
from podium.jobs.sense.orders.order_tools import order_tools, sense_tools
from podium.jobs.sense.orders.policy import earned_layer, sense_layer, worker_layer
from podium.policy import PolicyLayer, RuleGate, compile_policy, default_policy
from tests.unit.gate.gate_harness import context_for, path, tool_call

OPTIONS = SenseOptions()
LAYOUT = OPTIONS.layout
SPECS = {
    tool.spec.name: tool.spec
    for tool in (*sense_tools(LAYOUT.inbox, LAYOUT.candidates), *order_tools())
}


def gate_with(*layers: PolicyLayer) -> RuleGate:
    return compile_policy([PolicyLayer(origin="built-in", policy=default_policy()), *layers])


EARNED_GATE = gate_with(sense_layer(OPTIONS), earned_layer("api", ("g/docs", "logs"), Tier.T1))


def delivery(gate: RuleGate, mode: str = "autonomous", **changes: Any) -> Decision:
    """Return the gate's decision on delivering the order."""
    place = changes.pop("place", f"{LAYOUT.inbox}/WO-1.yaml")
    role, quotas = changes.pop("role", "sense"), changes.pop("quotas", ())
    provenance = changes.pop("provenance", ())
    payload = {"wo_id": "WO-1", "target": "api", "tier": "T1", "zones": ["g/docs", "logs"]}
    call = tool_call(
        "deliver_order", paths=(path(place, Access.WRITE),), role=role, arguments={**payload, **changes},
        provenance=provenance,
    )  # fmt: skip
    return gate.decide(call, context_for(SPECS["deliver_order"], mode=mode, quotas=quotas))


def operation(tool: str, place: str, access: Access = Access.WRITE) -> Decision:
    """Return the gate's decision on an operation of an order."""
    call = tool_call(tool, paths=(path(place, access),), role="worker")
    return gate_with(worker_layer(OPTIONS)).decide(
        call, context_for(SPECS[tool], mode="autonomous")
    )


@pytest.mark.parametrize("zone", OPTIONS.safe_zones)
def test_operations_act_in_safe_zones(zone: str) -> None:
    assert operation("append_to_file", f"{zone}/a.txt").effect is Effect.ALLOW


@pytest.mark.parametrize(
    "place", ["CLC/a", "CLS/deep/a", "g/core/a.py", "a.txt", "clc/a", ".podium/a", "/etc/a", "gg/docs/a"]
)  # fmt: skip
def test_operations_act_nowhere_else(place: str) -> None:
    assert operation("append_to_file", place).effect is Effect.DENY


@pytest.mark.parametrize(
    "folder", [LAYOUT.inbox, LAYOUT.claimed, LAYOUT.done, LAYOUT.parked, LAYOUT.acks]
)
def test_an_order_that_writes_orders_or_answers_needs_a_person(folder: str) -> None:
    decision = operation("append_to_file", f"{folder}/WO-2.yaml")
    assert (decision.effect, decision.tier) == (Effect.ASK, Tier.T2)


def test_the_loop_writes_candidates_and_orders_and_nothing_else() -> None:
    gate = gate_with(sense_layer(OPTIONS))
    call = tool_call(
        "file_candidate",
        paths=(path(f"{LAYOUT.candidates}/WO-1.yaml", Access.WRITE),),
        role="sense",
    )
    assert gate.decide(call, context_for(SPECS["file_candidate"])).effect is Effect.ALLOW
    assert delivery(gate).effect is Effect.ASK
    for place in ("g/docs/a.yaml", "CLC/a.yaml", f"{LAYOUT.acks}/WO-1.ack.json"):
        assert delivery(gate, place=place).effect is Effect.DENY


def test_only_the_loop_delivers() -> None:
    assert delivery(gate_with(sense_layer(OPTIONS)), role="worker").effect is Effect.DENY


def test_both_quotas_are_the_loops_own() -> None:
    quotas = {
        quota.name: (quota.limit, quota.seconds) for quota in sense_layer(OPTIONS).policy.quotas
    }
    assert quotas == {"orders-per-hour": (12, 3_600), "orders-per-day": (50, 86_400)}


def test_a_quota_that_is_used_up_refuses_also_what_was_granted() -> None:
    hourly = Quota(name="orders-per-hour", limit=2, seconds=3_600)
    decision = delivery(EARNED_GATE, quotas=(QuotaState(quota=hourly, used=2),))
    assert (decision.effect, decision.rule) == (Effect.DENY, "quota:orders-per-hour")


def test_granted_autonomy_delivers_unasked_in_autonomous_mode_alone() -> None:
    decision = delivery(EARNED_GATE)
    assert (decision.effect, decision.rule) == (Effect.ALLOW, "earned-autonomy")
    assert delivery(EARNED_GATE, "supervised").effect is Effect.ASK
    assert delivery(EARNED_GATE, "dry-run").effect is Effect.ASK
    assert delivery(EARNED_GATE, "sensing").effect is Effect.DENY


def test_granted_autonomy_is_for_some_of_its_zones_too() -> None:
    assert delivery(EARNED_GATE, zones=["logs"]).effect is Effect.ALLOW


@pytest.mark.parametrize(
    "changes",
    [
        {"tier": "T2"},
        {"tier": "odd"},
        {"tier": None},
        {"target": "db"},
        {"zones": ["g/docs", "g/tools"]},
        {"zones": ["g/tools"]},
        {"zones": []},
        {"zones": None},
    ],
)
def test_what_goes_beyond_a_grant_is_asked_about(changes: dict[str, Any]) -> None:
    assert delivery(EARNED_GATE, **changes).effect is Effect.ASK


def test_an_agents_words_lead_to_no_delivery_by_a_grant_for_a_lower_tier() -> None:
    """Words of the web make a call one tier riskier, and the grant is for T1."""
    assert delivery(EARNED_GATE, provenance=("web",)).effect is Effect.ASK


@pytest.mark.parametrize(
    "place", ["g/docs/planning_rules.yaml", f"{LAYOUT.candidates}/WO-1.yaml", LAYOUT.log]
)
def test_files_that_steer_or_report_the_loop_are_changed_by_no_order_unasked(place: str) -> None:
    gate = gate_with(worker_layer(SenseOptions(rules="g/docs/planning_rules.yaml")))
    call = tool_call("append_to_file", paths=(path(place, Access.WRITE),), role="worker", arguments={"path": place, "content": "x"})  # fmt: skip
    context = context_for(SPECS["append_to_file"], mode="autonomous")
    assert gate.decide(call, context).effect is Effect.ASK

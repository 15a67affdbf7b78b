"""The gate whose decisions are written down beforehand."""

from __future__ import annotations

from podium.core.decisions import Call, Decision, Effect, GateContext, Quota, Tier
from podium.ports import Gate
from podium.testing import FixedClock, ScriptedGate, decision

CALL = Call(run_id="run_a", step_key="edit", index=0, tool="write_file")
CONTEXT = GateContext(tool=None, now=FixedClock().now())


def test_decisions_are_given_in_order_and_then_everything_is_denied() -> None:
    careful = decision(Effect.ASK, "look first", Tier.T3)
    gate: Gate = (scripted := ScriptedGate([Effect.ALLOW, careful]))
    assert gate.decide(CALL, CONTEXT).effect is Effect.ALLOW
    assert gate.decide(CALL, CONTEXT) == careful
    denied = gate.decide(CALL, CONTEXT)
    assert (denied.effect, "'write_file'" in denied.reason) == (Effect.DENY, True)
    assert scripted.judged == [CALL] * 3


def test_a_function_may_decide() -> None:
    def judge(call: Call, context: GateContext) -> Decision:
        return decision(Effect.ALLOW if call.tool == "read_file" else Effect.DENY)

    gate = ScriptedGate(judge)
    assert gate.decide(CALL, CONTEXT).effect is Effect.DENY
    reading = CALL.model_copy(update={"tool": "read_file"})
    assert gate.decide(reading, CONTEXT).effect is Effect.ALLOW


def test_a_function_that_crashes_denies() -> None:
    def judge(call: Call, context: GateContext) -> Decision:
        raise RuntimeError("no idea")

    denied = ScriptedGate(judge).decide(CALL, CONTEXT)
    assert (denied.effect, "no idea" in denied.reason) == (Effect.DENY, True)


def test_quotas_budgets_and_patience_are_as_given() -> None:
    quota = Quota(name="calls", limit=1, seconds=1)
    gate = ScriptedGate(quotas=(quota,), approval_seconds=5)
    assert gate.quotas_for(CALL, CONTEXT) == (quota,)
    assert (gate.budgets, gate.approval_seconds) == ((), 5)
